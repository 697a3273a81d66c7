"""Broker processes: started in a folder of their own, measured with their children, and ended with all of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

#: A broker that does not listen after so many seconds has failed.
START_SECONDS = 60
#: A broker that has not ended so many seconds after SIGTERM is killed.
STOP_SECONDS = 20
#: How the names of the processes begin that are the store of a broker.
STORE = ("valkey", "redis")


class StartFailed(Exception):
    """A peer did not start; the text says why, with the end of its log."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a broker and its children use: CPU seconds since their start, resident bytes now.

    `store_cpu_seconds` is the part of the CPU that a store of the broker uses, where that is a process of its own.
    """

    cpu_seconds: float
    resident_bytes: int
    store_cpu_seconds: float = 0.0


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class BrokerProcess:
    """One process in a session of its own, so that it and its children can be measured and ended together."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        self._stopped = False
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id of the broker itself, which is its process group's too."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the broker itself has not ended."""
        return self._process.poll() is None

    def wait_until_listening(self, port: int) -> None:
        """Return when something accepts connections on this port; raises StartFailed."""
        self._wait(lambda: _listening(port), f"port {port} is not open")

    def wait_for_line(self, line: str) -> None:
        """Return when the process has printed this line; raises StartFailed."""
        self._wait(lambda: line in self.log.read_text(errors="replace").splitlines(), f"no line {line!r}")

    def usage(self) -> Usage:
        """What the process and all its descendants use."""
        cpu, resident, of_store = 0.0, 0, 0.0
        for each in self._family():
            try:
                times, memory, is_store = each.cpu_times(), each.memory_info(), each.name().startswith(STORE)
            except psutil.NoSuchProcess:
                continue
            cpu += times.user + times.system
            of_store += (times.user + times.system) * is_store
            resident += memory.rss
        return Usage(cpu, resident, of_store)

    def stop(self) -> None:
        """End the process and all it started: SIGTERM to itself, then SIGKILL to what is left."""
        if self._stopped:
            return
        self._stopped = True
        family = self._family()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for each in family:
            if each.is_running():
                each.kill()
        # Children whose parent ended first are in no family, but still in the group.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _family(self) -> list[psutil.Process]:
        if self._process.poll() is not None:
            return []
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            ended = self._process.poll()
            if ended is not None or time.monotonic() > deadline:
                why = what if ended is None else f"it ended with status {ended}"
                self.stop()
                raise StartFailed(f"{why}:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.05)


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
