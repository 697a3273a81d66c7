"""Run the programs of PostgreSQL: pg_dump, pg_restore and psql."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from brokerapp.backup.container import BLOCK_BYTES
from brokerapp.errors import BackupRefused
from brokerapp.system.process_lock import end_with_parent

#: Seconds for which a server of PostgreSQL may not answer a connection.
CONNECT_SECONDS = 30
#: Seconds for which a program of PostgreSQL may neither read nor write: it is silent while it builds large indexes.
SILENT_SECONDS = 30 * 60.0
#: Characters of what a program of PostgreSQL says that are passed on.
MAX_SAID = 500


class Program:
    """A program of PostgreSQL that runs. It is ended where it neither reads nor writes for too long."""

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self.process, self._said = process, said

    def read(self, stream: IO[bytes]) -> bytes:
        """Return some bytes of its output; none at the end. Raises BackupRefused."""
        if not select.select([stream], [], [], SILENT_SECONDS)[0]:
            raise self._stopped()
        return os.read(stream.fileno(), BLOCK_BYTES)

    def write(self, stream: IO[bytes], data: bytes) -> None:
        """Write bytes to its input. Raises BackupRefused, BrokenPipeError."""
        rest = memoryview(data)
        while rest:
            if not select.select([], [stream], [], SILENT_SECONDS)[1]:
                raise self._stopped()
            rest = rest[os.write(stream.fileno(), rest[: select.PIPE_BUF]) :]

    def end(self, failure: str) -> None:
        """Wait for its end. Raises BackupRefused with what it said if it failed."""
        try:
            status = self.process.wait(SILENT_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._stopped() from None
        if status:
            self._said.seek(0)
            raise BackupRefused(f"{failure}: {_one_line(self._said.read().decode(errors='replace'))}")

    def _stopped(self) -> BackupRefused:
        name = Path(str(self.process.args[0])).name  # type: ignore[index]
        return BackupRefused(f"{name} was stopped: it did nothing for {SILENT_SECONDS:.0f} seconds")


@contextmanager
def running(command: list[str], settings: dict[str, object], **pipe: int) -> Iterator[Program]:
    """Run a program of PostgreSQL, and kill it if the context, or this process, ends before it did.

    What it says goes into a file: a pipe that nothing reads would be full some day, and the program would wait.
    """
    with tempfile.TemporaryFile() as said:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | pipe
        with subprocess.Popen(
            command, env=connection_variables(settings), stderr=said, bufsize=0, preexec_fn=end_with_parent(), **streams
        ) as process:
            try:
                yield Program(process, said)
            finally:
                if process.poll() is None:
                    process.kill()


def program_path(name: str) -> str:
    """Return the path of a program of PostgreSQL. Raises BackupRefused where it is missing."""
    found = shutil.which(name)
    if found is None:
        raise BackupRefused(f"{name} not found: install the client programs of PostgreSQL (postgresql-client)")
    return found


def connection_variables(settings: dict[str, object]) -> dict[str, str]:
    """Return the variables by which programs of PostgreSQL connect; a password on a command line would be seen."""
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    given = {name: str(settings[key]) for name, key in names.items() if settings.get(key)}
    options = settings.get("OPTIONS") or {}
    if isinstance(options, dict) and "sslmode" in options:
        given["PGSSLMODE"] = str(options["sslmode"])
    return {"PGCONNECT_TIMEOUT": str(CONNECT_SECONDS), **os.environ, **given}


def _one_line(said: str) -> str:
    return "; ".join(line.strip() for line in said.strip().splitlines())[:MAX_SAID] or "it says nothing"
