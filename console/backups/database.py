"""Back up and restore the console's database: SQLite by its online backup, PostgreSQL by pg_dump and pg_restore."""

from __future__ import annotations

import os
import select
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO
from urllib.parse import quote

from brokerapp.backup.container import BLOCK_BYTES, BackupReader, BackupWriter, temporary_beside
from brokerapp.errors import BackupRefused
from console.ops.database_settings import parse_database

#: Parts of a backup, by the engine of the database.
SQLITE, POSTGRESQL = "database.sqlite3", "database.pgdump"
#: Seconds for which a transaction that is under way, and holds a lock, is waited for.
LOCKED_SECONDS = 60.0
#: Seconds for which a server of PostgreSQL may not answer a connection.
CONNECT_SECONDS = 30
#: Seconds for which a program of PostgreSQL may neither read nor write: it is silent while it builds large indexes.
SILENT_SECONDS = 30 * 60.0
#: Characters of what a program of PostgreSQL says that are passed on.
MAX_SAID = 500


def add_database(writer: BackupWriter, url: str) -> int:
    """Add a consistent copy of the database; return how many bytes it has. Raises BackupRefused, OSError."""
    settings = parse_database(url)
    if settings["ENGINE"].endswith("sqlite3"):
        return _add_sqlite(writer, Path(settings["NAME"]))
    if settings["ENGINE"].endswith("postgresql"):
        return _add_postgresql(writer, settings)
    raise BackupRefused(f"databases of {settings['ENGINE']} cannot be backed up: use SQLite or PostgreSQL")


def _add_sqlite(writer: BackupWriter, path: Path) -> int:
    with sqlite_copy(path, writer.path) as copy:
        writer.add_file(SQLITE, copy)
        return copy.tell()


@contextmanager
def sqlite_copy(path: Path, backup: Path) -> Iterator[BinaryIO]:
    """Yield a copy of a SQLite database that others write to, on the disk of the backup. Raises BackupRefused, OSError.

    It is not encrypted. Its file loses its name before anything is in it: nobody else can open it, and nothing is left
    of it if this process is killed.
    """
    name = temporary_beside(backup)
    name.touch(mode=0o600, exist_ok=False)
    with ExitStack() as opened:
        try:
            file = opened.enter_context(name.open("rb"))
            # Without locks and a journal: nobody else writes to it, and a journal would be a file with a name.
            target = opened.enter_context(closing(sqlite3.connect(f"file:{quote(str(name))}?nolock=1", uri=True)))
            target.execute("PRAGMA journal_mode=OFF")
            target.execute("PRAGMA synchronous=OFF")
        finally:
            name.unlink()
        _copy_sqlite(path, target)
        yield file


def _copy_sqlite(path: Path, target: sqlite3.Connection) -> None:
    try:
        source = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=LOCKED_SECONDS)
        with closing(source):
            source.backup(target)
    except sqlite3.Error as error:
        if "disk is full" in str(error) or "disk I/O" in str(error):
            raise OSError(str(error)) from error
        raise BackupRefused(f"the database {path} cannot be read: {error}") from error


def _add_postgresql(writer: BackupWriter, settings: dict[str, object]) -> int:
    command = [
        _program("pg_dump"), "--format=custom", "--no-owner", "--no-privileges", "--no-password",
        f"--lock-wait-timeout={int(LOCKED_SECONDS * 1000)}",
    ]  # fmt: skip
    with _running(command, settings, stdout=subprocess.PIPE) as program, writer.part(POSTGRESQL) as part:
        assert program.process.stdout is not None
        while block := program.read(program.process.stdout):
            part.write(block)
        program.end("pg_dump failed")
    return part.bytes


class _Program:
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
def _running(command: list[str], settings: dict[str, object], **pipe: int) -> Iterator[_Program]:
    """Run a program of PostgreSQL, and kill it if the context ends before it did.

    What it says goes into a file: a pipe that nothing reads would be full some day, and the program would wait.
    """
    with tempfile.TemporaryFile() as said:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | pipe
        with subprocess.Popen(command, env=_environment(settings), stderr=said, bufsize=0, **streams) as process:
            try:
                yield _Program(process, said)
            finally:
                if process.poll() is None:
                    process.kill()


def check_database(reader: BackupReader, url: str) -> None:
    """Raise BackupRefused for a target into which the database of a backup cannot be restored."""
    settings = parse_database(url)
    is_sqlite = settings["ENGINE"].endswith("sqlite3")
    if reader.has(SQLITE) and not is_sqlite:
        raise BackupRefused("the backup holds a SQLite database: restore it without DATABASE_URL")
    if reader.has(POSTGRESQL) and not settings["ENGINE"].endswith("postgresql"):
        raise BackupRefused("the backup holds a PostgreSQL database: set DATABASE_URL to an empty one")
    if reader.has(SQLITE) and Path(settings["NAME"]).exists():
        raise BackupRefused(f"the database {settings['NAME']} exists: restore into an empty folder")
    if reader.has(POSTGRESQL):
        _program("pg_restore")


def restore_database(reader: BackupReader, url: str, data: Path, work: Path) -> None:
    """Restore the database: a file of the data folder into `work`, which takes its place. Raises BackupRefused."""
    settings = parse_database(url)
    if reader.has(SQLITE):
        path = Path(settings["NAME"])
        inside = path.is_relative_to(data)
        reader.extract(SQLITE, work / path.relative_to(data) if inside else path)
    elif reader.has(POSTGRESQL):
        _restore_postgresql(reader, settings)


def _restore_postgresql(reader: BackupReader, settings: dict[str, object]) -> None:
    command = [
        _program("pg_restore"), "--no-owner", "--no-privileges", "--no-password", "--exit-on-error",
        "--single-transaction", f"--dbname={settings['NAME']}",
    ]  # fmt: skip
    with _running(command, settings, stdin=subprocess.PIPE) as program:
        assert program.process.stdin is not None
        with suppress(BrokenPipeError):  # it says why
            for block in reader.blocks(POSTGRESQL):
                program.write(program.process.stdin, block)
        program.process.stdin.close()
        program.end("pg_restore failed without changes")


def _program(name: str) -> str:
    """Return the path of a program of PostgreSQL. Raises BackupRefused where it is missing."""
    found = shutil.which(name)
    if found is None:
        raise BackupRefused(f"{name} not found: install the client programs of PostgreSQL (postgresql-client)")
    return found


def _environment(settings: dict[str, object]) -> dict[str, str]:
    """Return the variables by which programs of PostgreSQL connect; a password on a command line would be seen."""
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    given = {name: str(settings[key]) for name, key in names.items() if settings.get(key)}
    options = settings.get("OPTIONS") or {}
    if isinstance(options, dict) and "sslmode" in options:
        given["PGSSLMODE"] = str(options["sslmode"])
    return {"PGCONNECT_TIMEOUT": str(CONNECT_SECONDS), **os.environ, **given}


def _one_line(said: str) -> str:
    return "; ".join(line.strip() for line in said.strip().splitlines())[:MAX_SAID] or "it says nothing"
