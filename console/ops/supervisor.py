"""Keep the processes of an installation running, and stop them together.

It knows nothing of Sluice: the parts are a table (processes.py). One thread looks at every child ten times a
second, so that nothing here waits for anything else. Children write straight to their log files and are shown from
there: a supervisor that is busy, stopped or killed never blocks one, and their last words survive it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brokerapp.errors import CONFIGURATION_EXIT_CODE
from brokerapp.system.process_lock import DirectoryLock, end_with_parent, lock_directory, make_private_directory

TICK_SECONDS = 0.1
ASK_SECONDS = 0.25  # between two questions whether a part is ready
FIRST_DELAY_SECONDS = 0.5  # before the first restart; doubles with every death that follows too soon
LONGEST_DELAY_SECONDS = 30.0  # and never more: what is mended comes back by itself
STEADY_SECONDS = 60.0  # who ran this long starts again with the first delay
STILL_SECONDS = 30.0  # until it is said that a part still starts or ends, and between two words about that
GRACE_SECONDS = 10.0
MAX_GRACE_FACTOR = 12.0  # times the grace, however busy the machine is: a minute or four, and then it hangs
LEFTOVER_PATIENCE_SECONDS = 15.0  # for the children of a killed supervisor, which got their TERM when it died
LOG_LIMIT_BYTES = 20_000_000  # of each log; one older file of the same size is kept
SHOWN_AT_ONCE_BYTES = 65_536  # of a log in one tick
PROCESSORS = len(os.sched_getaffinity(0))

#: How often in a row a process must end with CONFIGURATION_EXIT_CODE before everything stops: a cause that passes, as a
#: former node that is still known, has passed then.
REFUSALS = 3

Print = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """Describe a process to keep running.

    It gets SIGTERM when everything stops, also when the supervisor was killed, and SIGKILL `grace` seconds later, on a
    busy machine as many times later as others share each of its processors. With `ready`, those after it in the table
    start when it says yes, and have ended before it is asked to end. It must not wait long for its answer. They wait
    for ever for one that they cannot do without (`is_needed`), and STILL_SECONDS for any other; such a one gets its
    grace also when everything is to stop at once. One that keeps nothing (`is_disposable`) is given no longer because
    the machine is busy, which it may be with this one. Lines with what it says of itself alone (`hidden_lines`)
    stand in its log and are not shown.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: Callable[[], bool] | None = None
    is_needed: bool = False
    is_disposable: bool = False
    grace: float = GRACE_SECONDS
    hidden_lines: re.Pattern[str] | None = None


def restart_delay(deaths: int) -> float:
    """Return seconds to wait before restarting a process that failed `deaths` times in a row."""
    return min(FIRST_DELAY_SECONDS * 2 ** min(deaths - 1, 16), LONGEST_DELAY_SECONDS)


def stop_timeout(grace: float, load: float, processors: int) -> float:
    """Return seconds that a process has to stop, longer while `load` processes compete for the CPU."""
    return grace * min(max(1.0, load / processors), MAX_GRACE_FACTOR)


class PermanentFailure(Exception):
    """A process that its configuration keeps from starting, with the last line that it wrote."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot start: {reason}")


class ProcessLog:
    """Write a process's output to a bounded file, and show new lines."""

    def __init__(self, path: Path, show: Print) -> None:
        self.path, self._show = path, show
        self._shown, self._rest = 0, b""
        self.last_line = ""
        if path.exists():
            path.replace(self._older)
        path.touch(mode=0o600)

    @property
    def _older(self) -> Path:
        return self.path.with_name(self.path.name + ".1")

    def follow(self) -> None:
        """Show the lines written since the last call; rotate the file when it is too long."""
        with self.path.open("rb") as file:
            file.seek(self._shown)
            written = file.read(SHOWN_AT_ONCE_BYTES)
        self._shown += len(written)
        *lines, self._rest = (self._rest + written).split(b"\n")
        if len(self._rest) > SHOWN_AT_ONCE_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self.last_line = line.decode(errors="replace")
            self._show(self.last_line)
        if self._shown > LOG_LIMIT_BYTES:  # children append, so the file may be emptied under them
            shutil.copy(self.path, self._older)
            os.truncate(self.path, 0)
            self._shown = 0


class SupervisedProcess:
    """Start, watch and restart one process. All times are monotonic seconds."""

    def __init__(self, part: ProcessSpec, folder: Path, family: int, *, say: Print) -> None:
        self.part, self._say, self._family = part, say, family
        self.log = ProcessLog(folder / f"{part.name}.log", self._show)
        self.process: subprocess.Popen[bytes] | None = None
        self.born = time.monotonic()
        self._started_at = self._due = self._ask_again = self._asked_to_end = 0.0
        self._tell_again = self.born + STILL_SECONDS
        self._is_ready = self._is_killed = self._was_slow = False
        self._was_ready = False
        self._deaths, self._refusals, self._patience = 0, 0, 0.0

    def tick(self, now: float) -> None:
        """Show new output, handle an exit, and start the process when it is due.

        Raises PermanentFailure for one that its configuration keeps from starting; one that was ready before is
        restarted, as the others do their work without it meanwhile.
        """
        self.log.follow()
        if self.process is None:
            if now >= self._due:
                self._start(now)
        elif self.process.poll() is not None:
            self._on_exit(now)

    def ready(self, now: float) -> bool:
        """Return whether the process runs and has reported that it is ready."""
        if self.process is None:
            return False
        if not self._is_ready and now >= self._ask_again:
            self._is_ready = self.part.ready is None or self.part.ready()
            self._ask_again = now + ASK_SECONDS
            self._was_ready = self._was_ready or self._is_ready
            if self._is_ready and self._was_slow:
                self._was_slow = False
                self._say(f"{self.part.name} is ready after {now - self.born:.0f} s")
        return self._is_ready

    def allows_next(self, now: float) -> bool:
        """Return whether the next processes may start; report now and then that it is still starting."""
        if self.ready(now):
            return True
        if now >= self._tell_again:
            self._was_slow, self._tell_again = True, now + STILL_SECONDS
            others = (
                "the processes after it are waiting"
                if self.part.is_needed
                else "the processes after it are being started"
            )
            self._say(
                f"{self.part.name} is still starting after {now - self.born:.0f} s ({_busy()}): it continues, "
                f"{others}, see {self.log.path}"
            )
        return self._was_slow and not self.part.is_needed

    def terminate(self) -> None:
        """Ask the process to stop."""
        self._asked_to_end = time.monotonic()
        self._tell_again = self._asked_to_end + STILL_SECONDS
        if self.process is not None:
            self.process.terminate()

    def has_ended(self, hurry: bool) -> bool:
        """Return whether the process and its children have stopped; called repeatedly after `terminate`."""
        self.log.follow()
        if self.process is not None and self.process.poll() is None:
            waited = time.monotonic() - self._asked_to_end
            # What the machine was busy with is not made up for in the moment in which it is over.
            load = 0.0 if self.part.is_disposable else os.getloadavg()[0]
            self._patience = max(self._patience, stop_timeout(self.part.grace, load, PROCESSORS))
            in_a_hurry = hurry and not self.part.is_needed
            if not self._is_killed and (in_a_hurry or waited > self._patience):
                self._is_killed = True
                self._say(f"{self.part.name} did not stop and was killed")
                self.kill()
            elif time.monotonic() >= self._tell_again:
                self._tell_again = time.monotonic() + STILL_SECONDS
                self._say(f"{self.part.name} is still stopping after {waited:.0f} s ({_busy()})")
            return False
        self.kill()
        return True

    def kill(self) -> None:
        """Kill the process and its children."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _show(self, line: str) -> None:
        if self.part.hidden_lines is None or not self.part.hidden_lines.search(line):
            self._say(f"{self.part.name:<14} | {line}")

    def _start(self, now: float) -> None:
        self._started_at, self._is_ready, self._is_killed = now, False, False
        # For the owner only: Spark writes the token of its clients to its log when a streaming query begins.
        self.log.path.touch()
        self.log.path.chmod(0o600)
        with self.log.path.open("ab") as output:
            self.process = subprocess.Popen(
                self.part.command,
                env=os.environ | {"PYTHONUNBUFFERED": "1"} | self.part.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[self._family],
                process_group=0,  # a Ctrl-C is for the supervisor, which ends its children in order
                preexec_fn=end_with_parent(),
            )

    def _on_exit(self, now: float) -> None:
        assert self.process is not None
        self.kill()  # what it started must not meet what its successor starts
        self.log.follow()
        self._refusals = self._refusals + 1 if self.process.returncode == CONFIGURATION_EXIT_CODE else 0
        if self._refusals >= REFUSALS and not self._was_ready:
            raise PermanentFailure(self.part.name, self.log.last_line.removeprefix("error: "))
        self._deaths = 1 if now - self._started_at > STEADY_SECONDS else self._deaths + 1
        delay = restart_delay(self._deaths)
        self._due = now + delay
        self._say(f"{self.part.name} {_end(self.process.returncode)}; restarting in {delay:g} s")
        self.process = None


class Supervisor:
    """Start the processes in order, keep them running, and stop them in reverse order.

    Raises DirectoryInUse when another supervisor has this folder. Must be run by the main thread.
    """

    def __init__(self, parts: Sequence[ProcessSpec], folder: Path, say: Print) -> None:
        make_private_directory(folder)
        self._claim: DirectoryLock = lock_directory(folder, patience=LEFTOVER_PATIENCE_SECONDS)
        self._parts, self._say = parts, say
        self._logs = folder / "log"
        self._logs.mkdir(mode=0o700, exist_ok=True)
        self._children: list[SupervisedProcess] = []
        self._stops_asked = 0

    def run(self, announce: Callable[[], None]) -> None:
        """Keep everything running until SIGINT, SIGTERM or SIGHUP; `announce` once, when all parts are ready.

        A second signal ends the children without grace, but for those that others cannot do without. Raises
        PermanentFailure, when all have ended, for a part that cannot start.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        waiting, announced = list(self._parts), False
        try:
            while not self._stops_asked:
                now = time.monotonic()
                for child in self._children:
                    child.tick(now)
                may_start_next = announced or all(child.allows_next(now) for child in self._children)
                if waiting and may_start_next:
                    part = waiting.pop(0)
                    self._children.append(SupervisedProcess(part, self._logs, self._claim.family, say=self._say))
                elif not waiting and not announced and all(child.ready(now) for child in self._children):
                    announced = True
                    announce()
                else:
                    time.sleep(TICK_SECONDS)
        finally:
            self._stop()

    def _ask_to_stop(self, *_: object) -> None:
        self._stops_asked += 1

    def _stop(self) -> None:
        self._say("stopping")
        asked: list[SupervisedProcess] = []
        for child in reversed(self._children):
            if child.part.ready is not None:
                self._wait_for(asked)
                asked = []
            child.terminate()
            asked.append(child)
        self._wait_for(asked)
        self._claim.release()
        self._say("stopped")

    def _wait_for(self, children: list[SupervisedProcess]) -> None:
        while children := [child for child in children if not child.has_ended(hurry=self._stops_asked > 1)]:
            time.sleep(TICK_SECONDS / 5)


def _busy() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {PROCESSORS} processors"


def _end(code: int) -> str:
    return f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
