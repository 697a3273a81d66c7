"""Back up a broker: its stores and its configuration; a console adds its own parts."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerapp.backup.configuration import add_configuration
from brokerapp.backup.container import BackupWriter, Progress
from brokerapp.backup.encryption import PassphraseKey
from brokerapp.backup.manifest import BackupManifest
from brokerapp.backup.store_snapshots import take_snapshots
from brokerapp.errors import BackupRefused
from brokerapp.store.server.embedded import open_store
from brokerapp.version import VERSION

#: Adds parts to a backup; returns sentences about what was left out, and facts for the manifest by part.
AddParts = Callable[[BackupWriter], tuple[list[str], dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class BackupSource:
    """What to back up. `store` is the folder of an embedded store, which may not be running; else `url` is given."""

    broker: str
    url: str = ""
    store: Path | None = None
    config_file: Path | None = None
    secret_files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that was written."""

    path: Path
    bytes: int
    seconds: float
    pause_ms: float  #: for how long writes were held
    manifest: BackupManifest


def write_backup(
    source: BackupSource,
    path: Path,
    passphrase: str | None,
    report: Progress,
    add_parts: AddParts | None = None,
) -> BackupResult:
    """Write a backup, encrypted if there is a passphrase. Leaves nothing behind when it fails.

    Raises BackupRefused, StoreUnavailable.
    """
    if source.store is not None and not source.store.is_dir():
        raise BackupRefused(f"no store found in {source.store}")
    opened = open_store(source.url or None, source.store or Path(), may_be_in_use=True)
    began = time.monotonic()
    key = PassphraseKey.create(passphrase) if passphrase else None
    try:
        with BackupWriter(path, key) as writer, opened as url:
            taken = take_snapshots(url, source.broker, writer, report)
            if taken.pause_ms:
                report(f"writes to the stores were held for {taken.pause_ms:.0f} ms")
            left_out, facts = add_parts(writer) if add_parts is not None else ([], {})
            left_out += add_configuration(
                writer, is_encrypted=key is not None, config_file=source.config_file, secret_files=source.secret_files
            )
            found = writer.finish(
                BackupManifest(
                    source.broker, socket.gethostname(), taken.made, VERSION,
                    stores=taken.stores, left_out=tuple(left_out), facts=facts,
                )
            )  # fmt: skip
    except OSError as error:
        raise BackupRefused(
            f"the backup cannot be written to {path}: {error.strerror or error}; nothing is left of it"
        ) from error
    for each in left_out:
        report(f"left out: {each}")
    return BackupResult(path, path.stat().st_size, time.monotonic() - began, taken.pause_ms, found)
