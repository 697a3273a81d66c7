"""Back up and restore an installation with its console: the broker's parts, the database and recorded traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from brokerapp.backup.broker_backup import AddParts, BackupResult, BackupSource, write_backup
from brokerapp.backup.broker_restore import RestoreParts
from brokerapp.backup.command_line import ConsoleParts
from brokerapp.backup.container import BackupReader, BackupWriter, Progress
from brokerapp.backup.data_folder import HARMLESS, TargetFolder
from brokerapp.system.environment import Environment
from console.backups.database import add_database, check_database, restored_database
from console.backups.recorded_traffic import (
    add_recorded_traffic,
    archived_until,
    check_recorded_traffic,
    restore_recorded_traffic,
)

#: Files of the data folder that hold secrets: they are in encrypted backups only.
SECRET_FILES = ("secret-key", "admin-password")


def source_of(environment: Environment, config_file: Path | None = None) -> BackupSource:
    """Return what to back up of an installation."""
    return BackupSource(
        environment.broker_name, environment.redis_url,
        store=environment.store if environment.owns_store else None,
        config_file=config_file,
        secret_files=tuple(environment.data / name for name in SECRET_FILES),
    )  # fmt: skip


def console_parts(environment: Environment, report: Progress, with_archive: bool) -> AddParts:
    """Return what adds the console's parts to a backup."""

    def add(writer: BackupWriter) -> tuple[list[str], dict[str, Any]]:
        report(f"database: {add_database(writer, environment.database_url):,} bytes")
        left_out = add_recorded_traffic(writer, environment, with_archive)
        if with_archive:
            report("recorded traffic added")
        return left_out, {"console": True}

    return add


def back_up(
    environment: Environment, file: Path, passphrase: str | None, report: Progress, *, with_archive: bool
) -> BackupResult:
    """Write a backup of an installation. Raises BackupRefused, StoreUnavailable."""
    parts = console_parts(environment, report, with_archive)
    return write_backup(source_of(environment), file, passphrase, report, parts)


def restored_parts(environment: Environment, name: str | None) -> ConsoleParts:
    """Return what the restore of an installation has beside that of a broker. `name`: that the broker gets."""

    def broker_of(reader: BackupReader) -> str:
        return name or reader.manifest.broker

    def parts(reader: BackupReader) -> RestoreParts:
        check_database(reader, environment.database_url)
        check_recorded_traffic(reader, environment)
        original = reader.manifest.broker

        @contextmanager
        def restore(folder: TargetFolder) -> Iterator[list[str]]:
            sentences = restore_recorded_traffic(reader, environment, folder.prepared, original, broker_of(reader))
            if broker_of(reader) != environment.broker_name:
                sentences.append(f"set SLUICE_BROKER={broker_of(reader)}: the broker is called so")
            with restored_database(reader, environment.database_url, folder):
                yield sentences

        return restore

    archived: Callable[[BackupReader], tuple[str, int] | None] = lambda reader: archived_until(  # noqa: E731
        reader, environment, reader.manifest.broker
    )
    # A key that a command just made is of no worth without a database; an archive may have been copied before.
    harmless = HARMLESS | {SECRET_FILES[0], environment.archive.name, f"{environment.archive.name}.work"}
    return ConsoleParts(parts, SECRET_FILES, harmless, archived, told="recorded traffic")
