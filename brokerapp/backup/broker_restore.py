"""Restore a broker into an empty data folder and empty stores.

The backup is checked before anything lasting is written. The parts of the data folder are prepared in a folder in it
(data_folder.py), and stores of the operator's are claimed and filled (target_store.py). In the end all is marked as
undecided and moved into place, and only then the broker gets its role. If a restore is killed before the last move, the
next one removes what it did and begins again; after that move it is complete.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import redis

from brokerapp.backup.configuration import restore_configuration
from brokerapp.backup.container import BackupReader, Progress
from brokerapp.backup.data_folder import HARMLESS, STORE, RestoreOwner, TargetFolder, restoring, write_mark
from brokerapp.backup.decision import decide
from brokerapp.backup.manifest import StoreEntry
from brokerapp.backup.staged_store import StagedStore
from brokerapp.backup.target_store import TargetStore, claimed
from brokerapp.errors import BackupRefused, BrokerError, StoreUnavailable
from brokerapp.store.client.failures import failure_reason
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.system.data_directory import DataDirectory

#: Up to which entry of the trace stream an archive that is yet to come has events.
NO_ARCHIVE = ("0-0", 0)

#: Adds parts to the folder that is prepared, or elsewhere, and yields sentences for the operator. What it did elsewhere
#: it removes if its context fails.
RestoreParts = Callable[[TargetFolder], AbstractContextManager[list[str]]]


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """Where to restore a backup, and what becomes of it."""

    data: Path
    broker: str  #: the name that it gets
    role: RestoredRole | None  #: None: it replaces the original
    url: str = ""  #: of the store of shard 0; "": the embedded one
    shard_urls: Mapping[int, str] = field(default_factory=dict)  #: of the other shards
    harmless: frozenset[str] = HARMLESS  #: names that the data folder may hold
    archived: tuple[str, int] | None = None  #: up to which entry of the trace stream the console's archive has events
    is_of_console: bool = False  #: else `runbroker` finds the name of the broker in the data folder


def restore_backup(
    reader: BackupReader,
    target: RestoreTarget,
    report: Progress,
    restore_parts: RestoreParts | None = None,
    secret_files: tuple[str, ...] = (),
) -> list[str]:
    """Restore a backup; return sentences about what the operator has to do.

    Raises BackupRefused, StoreUnavailable; nothing is changed then.
    """
    _check_shards(reader, target)
    found = reader.manifest
    mark = RestoredMark(RestoredRole.UNDECIDED, found.broker, found.host, found.made)
    owner = RestoreOwner(secrets.token_hex(8), mark)
    try:
        with (
            restoring(target.data, owner, target.harmless) as folder,
            claimed(_external(target), target.broker, owner, folder.former) as stores,
        ):
            reader.verify(report)
            work = folder.prepared
            for entry in sorted(found.stores, key=lambda each: min(each.shards), reverse=True):
                _restore_store(reader, entry, target, mark, work, stores)
                report(f"store of shard {', '.join(map(str, entry.shards))} restored")
            sentences = restore_configuration(reader, work, secret_files)
            with restore_parts(folder) if restore_parts is not None else nullcontext([]) as remarks:
                sentences += remarks
                write_mark(work, mark)
                if not target.is_of_console:
                    DataDirectory(work).remember(target.broker, target.url or None)
                for each in stores.values():
                    each.complete()
                folder.move_up()
    except redis.RedisError as error:
        raise StoreUnavailable(f"a store failed during the restore: {failure_reason(error)}") from error
    except OSError as error:
        raise BackupRefused(f"the backup cannot be restored to {target.data}: {error.strerror or error}") from error
    _give_role(target)
    return sentences


def _give_role(target: RestoreTarget) -> None:
    if target.role is RestoredRole.UNDECIDED:
        return
    try:
        decide(target.broker, target.role, data=target.data, url=target.url)
    except BrokerError as error:
        raise type(error)(
            f"the backup was restored to {target.data}, but not yet as what: {error}; say it again with "
            "--replace or --as-copy, without FILE"
        ) from error


def _check_shards(reader: BackupReader, target: RestoreTarget) -> None:
    """Raise BackupRefused unless a store is named for each shard."""
    shards, found = reader.manifest.shards, reader.manifest
    if 0 not in shards:
        raise BackupRefused(f"{reader.path} has no snapshot of shard 0")
    for number in target.shard_urls:
        if number not in shards[1:]:
            raise BackupRefused(f"the backup has no shard {number}: it has {', '.join(map(str, shards))}")
    if missing := [number for number in shards[1:] if number not in target.shard_urls]:
        options = " ".join(f"--shard {number}=URL" for number in missing)
        raise BackupRefused(f"broker {found.broker} has {len(shards)} shards: name an empty store for each: {options}")


def _external(target: RestoreTarget) -> dict[int, str]:
    """Return the URLs of the stores that are not in the data folder, by shard."""
    return {**({0: target.url} if target.url else {}), **target.shard_urls}


def _restore_store(
    reader: BackupReader,
    entry: StoreEntry,
    target: RestoreTarget,
    mark: RestoredMark,
    work: Path,
    stores: Mapping[int, TargetStore],
) -> None:
    """Load a snapshot into a server of its own, and copy its shards to where they belong; shard 0 may stay there."""
    stays = 0 in entry.shards and 0 not in stores
    folder = work / (STORE if stays else f"snapshot-{min(entry.shards)}")
    with StagedStore.prepare(folder, reader, entry) as staged:
        staged.keep_only(entry, reader.manifest.broker, target.broker)
        staged.renew(entry, target.broker, reader.manifest.made)
        if 0 in entry.shards:
            staged.locate_shards(target.broker, target.shard_urls)
            if target.is_of_console:
                staged.align_trace(target.broker, *(target.archived or NO_ARCHIVE))
        for number in entry.shards:
            if number in stores:
                stores[number].fill(staged.client)
                if stays:
                    staged.remove_shard(target.broker, number)
        if stays:
            staged.mark(target.broker, mark)
    if not stays:
        shutil.rmtree(folder)
