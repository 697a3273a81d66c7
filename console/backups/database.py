"""Back up and restore the console's database: SQLite by its online backup, PostgreSQL by pg_dump and pg_restore."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from brokerapp.backup.container import BackupReader, BackupWriter, temporary_beside
from brokerapp.backup.data_folder import TargetFolder
from brokerapp.errors import BackupRefused
from console.backups.postgresql import program_path, running
from console.backups.target_database import MARK, check_empty, claimed
from console.ops.database_settings import parse_database

#: Parts of a backup, by the engine of the database.
SQLITE, POSTGRESQL = "database.sqlite3", "database.pgdump"
#: Seconds for which a transaction that is under way, and holds a lock, is waited for.
LOCKED_SECONDS = 60.0


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
        program_path("pg_dump"), "--format=custom", "--no-owner", "--no-privileges", "--no-password",
        f"--exclude-table={MARK}", f"--lock-wait-timeout={int(LOCKED_SECONDS * 1000)}",
    ]  # fmt: skip
    with running(command, settings, stdout=subprocess.PIPE) as program, writer.part(POSTGRESQL) as part:
        assert program.process.stdout is not None
        while block := program.read(program.process.stdout):
            part.write(block)
        program.end("pg_dump failed")
    return part.bytes


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
        program_path("pg_restore")
        check_empty(settings)


@contextmanager
def restored_database(reader: BackupReader, url: str, folder: TargetFolder) -> Iterator[None]:
    """Restore the database: a file of the data folder where it is prepared, or elsewhere. Raises BackupRefused.

    One that is elsewhere is removed again if the context fails.
    """
    settings = parse_database(url)
    if reader.has(POSTGRESQL):
        with claimed(settings, folder.owner, folder.former):
            _restore_postgresql(reader, settings)
            yield
    elif reader.has(SQLITE):
        path = Path(settings["NAME"])
        if path.is_relative_to(folder.data):
            path = folder.prepared / path.relative_to(folder.data)
        try:
            reader.extract(SQLITE, path)
            yield
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    else:
        yield


def _restore_postgresql(reader: BackupReader, settings: dict[str, object]) -> None:
    command = [
        program_path("pg_restore"), "--no-owner", "--no-privileges", "--no-password", "--exit-on-error",
        "--single-transaction", f"--dbname={settings['NAME']}",
    ]  # fmt: skip
    with running(command, settings, stdin=subprocess.PIPE) as program:
        assert program.process.stdin is not None
        with suppress(BrokenPipeError):  # it says why
            for block in reader.blocks(POSTGRESQL):
                program.write(program.process.stdin, block)
        program.process.stdin.close()
        program.end("pg_restore failed")
