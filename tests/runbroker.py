"""`manage.py runbroker` as a process that tests kill, stop, freeze and start again.

It is forked from a server that has imported all that a broker needs: a start costs no seconds of importing.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from brokerapp.management import runbroker
from brokerapp.system.environment import PROJECT

#: Seconds for a broker to start, or to end, on a busy machine.
PATIENCE = 60.0

_processes = get_context("forkserver")
_processes.set_forkserver_preload([__name__])


class Run:
    """One run of the command with these arguments, until it ends or is made to.

    `first` is done in its process before the command; what it says on standard error is added to the file `log`, and
    lines on standard output are `told`, else they wait to be heard.
    """

    def __init__(
        self, *arguments: str | Path, log: Path, first: Callable[[], None] | None = None,
        told: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.log = log
        self._said: queue.Queue[str] = queue.Queue()
        self._told = told or self._said.put
        saying, says = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=_run, args=(list(map(str, arguments)), log, says, first), daemon=True)
        self._process.start()
        says.close()
        threading.Thread(target=self._listen, args=(saying,), daemon=True).start()

    def _listen(self, saying: Connection) -> None:
        with os.fdopen(os.dup(saying.fileno()), encoding="utf-8") as lines:
            saying.close()
            for line in lines:
                self._told(line.strip())
        self._told("")

    def hear(self) -> str:
        """The next line that it says on standard output; "" when it has ended."""
        try:
            return self._said.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"it says nothing:\n{self.errors()}") from None

    def ready(self) -> None:
        """Wait until it takes clients, again where it did so before."""
        line = self.hear()
        assert line == "ready", f"it said {line!r}:\n{self.errors()}"

    def errors(self) -> str:
        """What was said on standard error so far, by the runs before it, too."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it has not ended."""
        if self.is_alive:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.join(PATIENCE)

    def stop(self) -> int | None:
        """SIGTERM; its exit status, None if it does not end."""
        self.signal(signal.SIGTERM)
        self._process.join(PATIENCE)
        return self._process.exitcode


def _run(arguments: list[str], log: Path, saying: Connection, first: Callable[[], None] | None) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    os.dup2(saying.fileno(), 1)
    saying.close()
    os.chdir(PROJECT)
    if first is not None:
        first()
    sys.exit(runbroker.broker(arguments, "manage.py runbroker"))
