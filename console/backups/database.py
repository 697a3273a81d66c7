"""Back up and restore the console's database: SQLite by its online backup, PostgreSQL by pg_dump and pg_restore."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from brokerapp.backup.container import BLOCK_BYTES, BackupReader, BackupWriter
from brokerapp.errors import BackupRefused
from console.ops.database_settings import parse_database

#: Parts of a backup, by the engine of the database.
SQLITE, POSTGRESQL = "database.sqlite3", "database.pgdump"
#: Seconds for which SQLite waits for a transaction that is under way.
LOCKED_SECONDS = 60.0
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
    with tempfile.TemporaryDirectory(prefix=f".{writer.path.name}.", dir=writer.path.parent) as folder:
        copy = Path(folder) / SQLITE
        copy_sqlite(path, copy)
        writer.add_file(SQLITE, copy)
        return copy.stat().st_size


def copy_sqlite(path: Path, copy: Path) -> None:
    """Copy a SQLite database that others write to. Raises BackupRefused, OSError."""
    copy.touch(mode=0o600)
    try:
        source = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=LOCKED_SECONDS)
        with closing(source), closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        if "disk is full" in str(error) or "disk I/O" in str(error):
            raise OSError(str(error)) from error
        raise BackupRefused(f"the database {path} cannot be read: {error}") from error


def _add_postgresql(writer: BackupWriter, settings: dict[str, object]) -> int:
    command = [_program("pg_dump"), "--format=custom", "--no-owner", "--no-privileges", "--no-password"]
    process = subprocess.Popen(
        command, env=_environment(settings), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process, writer.part(POSTGRESQL) as part:
        while block := process.stdout.read(BLOCK_BYTES):
            part.write(block)
        said = process.stderr.read().decode(errors="replace")
    if process.returncode:
        raise BackupRefused(f"pg_dump failed: {_one_line(said)}")
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
    process = subprocess.Popen(
        command, env=_environment(settings), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stderr is not None
    with process:
        try:
            for block in reader.blocks(POSTGRESQL):
                process.stdin.write(block)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it says why
        said = process.stderr.read().decode(errors="replace")
    if process.returncode:
        raise BackupRefused(f"pg_restore failed without changes: {_one_line(said)}")


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
    return {**os.environ, **given}


def _one_line(said: str) -> str:
    return "; ".join(line.strip() for line in said.strip().splitlines())[:MAX_SAID] or "it says nothing"
