"""Restore a broker into an empty data folder and empty stores.

The backup is checked, and its stores are loaded, before anything is written to where it belongs. The parts of the data
folder are prepared in a folder within it and renamed in the end. A store of the operator's own is marked as incomplete
until all keys are in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis

from brokerapp.backup.configuration import restore_configuration
from brokerapp.backup.container import BackupReader, Progress, sync_folder
from brokerapp.backup.data_folder_mark import write_mark
from brokerapp.backup.key_copy import copy_keys, pattern
from brokerapp.backup.manifest import StoreEntry
from brokerapp.backup.staged_store import KEYS_AT_ONCE, StagedStore, batches, prefix_of
from brokerapp.errors import BackupRefused, ConfigurationRefused, StoreUnavailable
from brokerapp.store.client.failures import store_failure
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.pools import blocking_client
from brokerapp.store.memory_limits import check_eviction
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.store.server.server_status import evicts_messages
from brokerapp.system.data_directory import DataDirectory
from brokerapp.system.process_lock import make_private_directory
from brokerapp.system.store_address import without_password

#: The folder in the data folder in which a restore prepares what belongs there.
WORK_FOLDER = ".restore"
#: What an empty data folder may hold.
HARMLESS = frozenset({"lost+found", "backups"})
#: Seconds for a target store to answer.
ANSWER_SECONDS = 60.0

#: Up to which entry of the trace stream an archive that is yet to come has events.
NO_ARCHIVE = ("0-0", 0)

#: Adds parts to the folder that is prepared; returns sentences for the operator.
RestoreParts = Callable[[Path], list[str]]


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


@dataclass(slots=True)
class _Copied:
    """Stores that keys were copied to: what is removed again if the restore fails."""

    clients: list[tuple[redis.Redis, int]] = field(default_factory=list)


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
    check_data_folder(target.data, target.harmless)
    _check_urls(reader, target)
    reader.verify(report)
    mark = RestoredMark(
        target.role or RestoredRole.UNDECIDED, reader.manifest.broker, reader.manifest.host, reader.manifest.made
    )
    try:
        with ExitStack() as undo:
            work = undo.enter_context(_work_folder(target.data))
            copied = undo.enter_context(_removed_on_failure(target))
            for entry in sorted(reader.manifest.stores, key=lambda each: min(each.shards), reverse=True):
                _restore_store(reader, entry, target, mark, work, copied)
                report(f"store of shard {', '.join(map(str, entry.shards))} restored")
            sentences = restore_configuration(reader, work, secret_files)
            if restore_parts is not None:
                sentences += restore_parts(work)
            if target.role is not None:
                write_mark(work, mark)
            if not target.is_of_console:
                DataDirectory(work).remember(target.broker, target.url or None)
            _finish_marks(copied, target, mark)
            _move_up(work, target.data)
    except redis.RedisError as error:
        raise StoreUnavailable(f"a store failed during the restore: {error or type(error).__name__}") from error
    except OSError as error:
        raise BackupRefused(f"the backup cannot be restored to {target.data}: {error.strerror or error}") from error
    return sentences


# -- what must be so before


def check_data_folder(data: Path, harmless: frozenset[str]) -> None:
    """Raise BackupRefused for a data folder that holds something."""
    if not data.exists():
        return
    if not data.is_dir():
        raise BackupRefused(f"{data} is a file: name a folder")
    found = sorted(each.name for each in data.iterdir() if each.name not in harmless)
    if WORK_FOLDER in found:
        raise BackupRefused(f"{data / WORK_FOLDER} is left of a restore that did not end: delete it, and try again")
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise BackupRefused(f"{data} is not empty, it holds {', '.join(found[:3])}{more}: restore into an empty folder")


def _check_urls(reader: BackupReader, target: RestoreTarget) -> None:
    """Raise BackupRefused unless there is an empty store for each shard."""
    shards, found = reader.manifest.shards, reader.manifest
    if 0 not in shards:
        raise BackupRefused(f"{reader.path} has no snapshot of shard 0")
    for number in target.shard_urls:
        if number not in shards[1:]:
            raise BackupRefused(f"the backup has no shard {number}: it has {', '.join(map(str, shards))}")
    if missing := [number for number in shards[1:] if number not in target.shard_urls]:
        options = " ".join(f"--shard {number}=URL" for number in missing)
        raise BackupRefused(f"broker {found.broker} has {len(shards)} shards: name an empty store for each: {options}")
    for number, url in _external(target).items():
        with _client(url, target.broker, number) as client:
            _check_eviction(client, url)
            _check_empty(client, target.broker, number, url)


def _external(target: RestoreTarget) -> dict[int, str]:
    """Return the URLs of the stores that are not in the data folder, by shard."""
    return {**({0: target.url} if target.url else {}), **target.shard_urls}


def _check_eviction(client: redis.Redis, url: str) -> None:
    """Raise BackupRefused for a server that would delete messages when its memory is full."""
    try:
        facts = client.info("memory")
        check_eviction(int(facts.get("maxmemory", 0)), evicts_messages(facts))
    except ConfigurationRefused as error:
        raise BackupRefused(f"{without_password(url)}: {error}") from error
    except (redis.RedisError, OSError) as error:
        raise store_failure(error, url) from error


def _check_empty(client: redis.Redis, broker: str, number: int, url: str) -> None:
    """Raise BackupRefused for a store that holds keys of the broker, unless an incomplete restore left them."""
    try:
        left = client.get(StoreKeys(broker, number).restored)
        if left and RestoredMark.from_json(left).role is RestoredRole.INCOMPLETE:
            _remove_keys(client, broker, number)
            return
        key = _first_key(client, broker, number)
    except (redis.RedisError, OSError) as error:
        raise store_failure(error, url) from error
    if key is not None:
        raise BackupRefused(_holds_broker(url, broker, key))


def _first_key(client: redis.Redis, broker: str, number: int) -> bytes | None:
    """Return a key of the broker beside the mark of a restore; None if there is none."""
    mark = StoreKeys(broker, number).restored.encode()
    found = client.scan_iter(match=pattern(prefix_of(broker, number)), count=KEYS_AT_ONCE)
    return next((key for key in found if key != mark), None)


def _holds_broker(url: str, broker: str, key: bytes) -> str:
    return (
        f"the store {without_password(url)} holds broker {broker} already (key {key.decode(errors='replace')}): "
        "name an empty one, or choose another name for the broker with --name"
    )


@contextmanager
def _client(url: str, broker: str, number: int) -> Iterator[redis.Redis]:
    options = {"protocol": 2, "socket_timeout": ANSWER_SECONDS, "socket_connect_timeout": ANSWER_SECONDS}
    client = blocking_client(url, StoreKeys(broker, number).state, **options)
    try:
        yield client
    finally:
        client.close()


# -- stores


def _restore_store(
    reader: BackupReader, entry: StoreEntry, target: RestoreTarget, mark: RestoredMark, work: Path, copied: _Copied
) -> None:
    """Load a snapshot into a server of its own, and copy its shards to where they belong; shard 0 may stay there."""
    stays = 0 in entry.shards and not target.url
    folder = work / ("store" if stays else f"snapshot-{min(entry.shards)}")
    with StagedStore.prepare(folder, reader, entry) as staged:
        staged.keep_only(entry, reader.manifest.broker, target.broker)
        staged.renew(entry, target.broker, reader.manifest.made)
        if 0 in entry.shards:
            staged.locate_shards(target.broker, target.shard_urls)
            if target.is_of_console:
                staged.align_trace(target.broker, *(target.archived or NO_ARCHIVE))
        for number in entry.shards:
            if (url := _external(target).get(number)) is not None:
                _copy(staged, target, mark, number, url, copied)
                if stays:
                    _remove_keys(staged.client, target.broker, number)
        if stays and target.role is not None:
            staged.mark(target.broker, mark)
    if not stays:
        shutil.rmtree(folder)


def _copy(
    staged: StagedStore, target: RestoreTarget, mark: RestoredMark, number: int, url: str, copied: _Copied
) -> None:
    keys = StoreKeys(target.broker, number)
    client = blocking_client(url, keys.state, protocol=2, socket_timeout=ANSWER_SECONDS)
    incomplete = RestoredMark(RestoredRole.INCOMPLETE, mark.broker, mark.host, mark.made)
    try:
        is_claimed = client.set(keys.restored, incomplete.to_json(), nx=True)
        if is_claimed:  # from here on nothing starts on it
            copied.clients.append((client, number))
        key = _first_key(client, target.broker, number)
    except (redis.RedisError, OSError) as error:
        raise store_failure(error, url) from error
    if not is_claimed:
        raise BackupRefused(f"another restore writes to the store {without_password(url)}: wait for its end")
    if key is not None:  # a broker was started there since the store was checked: its keys stay
        copied.clients.pop()
        client.unlink(keys.restored)
        raise BackupRefused(_holds_broker(url, target.broker, key))
    copy_keys(staged.client, client, prefix_of(target.broker, number))


@contextmanager
def _removed_on_failure(target: RestoreTarget) -> Iterator[_Copied]:
    """Yield the list of stores that keys are copied to; remove those keys if the restore fails."""
    copied = _Copied()
    try:
        yield copied
    except BaseException:
        for client, number in copied.clients:
            with suppress(redis.RedisError, OSError):  # the mark says that it is incomplete
                _remove_keys(client, target.broker, number)
        raise
    finally:
        for client, _ in copied.clients:
            client.close()


def _remove_keys(client: redis.Redis, broker: str, number: int) -> None:
    """Remove all keys of a shard; the mark goes last."""
    kept = StoreKeys(broker, number).restored
    for keys in batches(client.scan_iter(match=pattern(prefix_of(broker, number)), count=KEYS_AT_ONCE), KEYS_AT_ONCE):
        if others := [key for key in keys if key != kept.encode()]:
            client.unlink(*others)
    client.unlink(kept)


def _finish_marks(copied: _Copied, target: RestoreTarget, mark: RestoredMark) -> None:
    """Say that the stores are complete; shard 0 last, and what the broker is to be."""
    for client, number in sorted(copied.clients, key=lambda each: each[1], reverse=True):
        key = StoreKeys(target.broker, number).restored
        if number == 0 and target.role is not None:
            client.set(key, mark.to_json())
        else:
            client.unlink(key)


# -- the data folder


@contextmanager
def _work_folder(data: Path) -> Iterator[Path]:
    """Yield a folder within the data folder; remove it in the end, and on failure the data folder if it is new."""
    is_new = not data.exists()
    make_private_directory(data)
    work = data / WORK_FOLDER
    work.mkdir(mode=0o700)
    try:
        yield work
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        if is_new:
            with suppress(OSError):
                data.rmdir()
        raise
    work.rmdir()


def _move_up(work: Path, data: Path) -> None:
    """Give all that was prepared its place."""
    for each in sorted(work.iterdir()):
        each.rename(data / each.name)
    sync_folder(data)
