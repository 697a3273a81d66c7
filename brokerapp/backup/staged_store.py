"""Load the snapshot of a store into an embedded server, and make of it what another broker process may use.

Sessions of nodes end, sequence numbers go on beyond those that the original may have given since, and no life of the
original's server is known any more: a node, bridge or client that knew the original finds out that this is another
store (docs/decisions/0021-store-rollback.md). Keys of others, and those that live for seconds, are removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

from brokerapp.backup.container import BackupReader
from brokerapp.backup.manifest import StoreEntry
from brokerapp.errors import BackupRefused, StoreUnavailable
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.library import LIBRARY, PREFIX
from brokerapp.store.client.pools import blocking_client
from brokerapp.store.restored_mark import RestoredMark
from brokerapp.store.server.embedded import EmbeddedStore

T = TypeVar("T")
#: Keys that are read or removed in one call.
KEYS_AT_ONCE = 1_000
#: Keys of what goes on at the moment, and of what is made anew (the table in store/client/keys.py says what each is),
#: and with what names of others of them begin.
_MOMENTARY = frozenset({
    b"lives", b"nodes", b"requests", b"moving", b"shards:move", b"replicas", b"libraries", b"secret", b"restored",
    b"restoring", b"sync-delay",
})  # fmt: skip
_MOMENTARY_PREFIXES = (b"node:", b"requests:", b"request:", b"reply:", b"lease:", b"run-progress:")
#: What the store's state tells of its last rollback.
_OF_ROLLBACKS = ("rollbacks", "rollback_life", "rollback_ms", "rollback_changes")
_FOLDER, _BASE = "appendonlydir", "appendonly.aof.1.base.rdb"
_POLL_SECONDS = 0.1


class StagedStore:
    """A store in a folder, with the content of a snapshot. Raises StoreUnavailable, BackupRefused."""

    def __init__(self, folder: Path) -> None:
        self._store = EmbeddedStore(folder)
        self.client: Any  # of the driver, whose types do not fit its answers

    @staticmethod
    def prepare(folder: Path, reader: BackupReader, entry: StoreEntry) -> StagedStore:
        """Write the snapshot into a new folder, as the file that a server loads first."""
        files = folder / _FOLDER
        files.mkdir(mode=0o700, parents=True)
        reader.extract(entry.part, files / _BASE)
        (files / "appendonly.aof.manifest").write_text(f"file {_BASE} seq 1 type b\n")
        return StagedStore(folder)

    def __enter__(self) -> Self:
        try:
            url = self._store.start()
        except StoreUnavailable as error:
            raise BackupRefused(f"the snapshot of the store cannot be loaded: {error}") from error
        self.client = _one_connection(url)  # one connection: it chooses a database
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._store.stop()

    def keep_only(self, entry: StoreEntry, original: str, broker: str) -> None:
        """Keep the keys of one broker, in database 0 and under its new name, and remove all others."""
        if entry.database:
            self.client.execute_command("SWAPDB", 0, entry.database)
        for name in self.client.info("keyspace"):
            if name != "db0":
                self.client.execute_command("SELECT", name.removeprefix("db"))
                self.client.flushdb()
        self.client.execute_command("SELECT", 0)
        renamed = {prefix_of(original, number): prefix_of(broker, number) for number in entry.shards}
        removed = self._for_each_key(lambda pipe, key: _remove_unless_kept(pipe, key, renamed))
        if broker != original:
            self._for_each_key(lambda pipe, key: _rename(pipe, key, renamed))
        if removed:
            self._rewrite_file()

    def renew(self, entry: StoreEntry, broker: str, made: str) -> None:
        """End all sessions, and let sequence numbers go on beyond those that the original may have given since.

        The function for that counts a rollback. An operator wanted this one: it is noted as a restore instead.
        """
        self.client.function_load(LIBRARY, replace=True)
        noted = {"restored_ms": time.time_ns() // 1_000_000, "backup_ms": _milliseconds(made)}
        for number in entry.shards:
            keys = StoreKeys(broker, number)
            if self.client.exists(keys.state):
                before = self.client.hmget(keys.state, _OF_ROLLBACKS)
                self.client.execute_command(
                    "FCALL", f"{PREFIX}fence_after_rollback", 2, keys.state, keys.nodes, "", 0, 0, keys.signals
                )
                self.client.hdel(keys.state, *_OF_ROLLBACKS)
                known = {name: value for name, value in zip(_OF_ROLLBACKS, before, strict=True) if value is not None}
                self.client.hset(keys.state, mapping={**known, **noted})

    def locate_shards(self, broker: str, urls: Mapping[int, str]) -> None:
        """Note in shard 0 where the other shards are now."""
        key = StoreKeys(broker).shards
        for number, url in urls.items():
            record = json.loads(self.client.hget(key, str(number)) or "{}")
            self.client.hset(key, str(number), json.dumps({**record, "url": url}))

    def remove_shard(self, broker: str, number: int) -> None:
        """Remove the keys of a shard that was copied elsewhere."""
        prefix = prefix_of(broker, number)
        self._for_each_key(lambda pipe, key: key.startswith(prefix) and bool(pipe.unlink(key)))

    def mark(self, broker: str, mark: RestoredMark) -> None:
        """Note in shard 0 what it was restored from."""
        self.client.set(StoreKeys(broker).restored, mark.to_json())

    def align_trace(self, broker: str, archived: str, ordinal: int) -> None:
        """Let the trace stream go on after the last entry that an archive has, which was the ordinal-th.

        Else the archiver would take it for another stream, and archive again what it has, or take entries for lost that
        the archive of the original has.
        """
        key = StoreKeys(broker).trace
        if not self.client.exists(key):
            return
        self.client.xtrim(key, minid=_id_after(archived), approximate=False)
        found = self.client.xinfo_stream(key)
        last = max(found["last-generated-id"].decode(), archived, key=_id_order)
        self.client.execute_command("XSETID", key, last, "ENTRIESADDED", ordinal + found["length"])

    def _for_each_key(self, change: Callable[[Any, bytes], bool]) -> int:
        """Change keys of the database by a pipeline; return how many were changed."""
        count = 0
        for keys in batches(self.client.scan_iter(count=KEYS_AT_ONCE), KEYS_AT_ONCE):
            pipe = self.client.pipeline(transaction=False)
            count += sum([change(pipe, key) for key in keys])
            pipe.execute()
        return count

    def _rewrite_file(self) -> None:
        """Have the server write its file again, without what was removed."""
        self.client.bgrewriteaof()
        while True:
            found = self.client.info("persistence")
            if not (found["aof_rewrite_in_progress"] or found["aof_rewrite_scheduled"]):
                return
            time.sleep(_POLL_SECONDS)


def _one_connection(url: str) -> Any:
    client: Any = blocking_client(url, "", protocol=2)
    return client.client()


def prefix_of(broker: str, shard: int) -> bytes:
    """Return what all keys of a shard begin with."""
    return StoreKeys(broker, shard).state.encode().removesuffix(b"state")


def _remove_unless_kept(pipe: Any, key: bytes, kept: Mapping[bytes, bytes]) -> bool:
    prefix = next((each for each in kept if key.startswith(each)), None)
    if prefix is not None:
        rest = key[len(prefix) :]
        if not (rest in _MOMENTARY or rest.startswith(_MOMENTARY_PREFIXES)):
            return False
    pipe.unlink(key)
    return prefix is None


def _rename(pipe: Any, key: bytes, renamed: Mapping[bytes, bytes]) -> bool:
    prefix = next((each for each in renamed if key.startswith(each)), None)
    if prefix is None:
        return False  # it has its new name
    pipe.rename(key, renamed[prefix] + key[len(prefix) :])
    return True


def _milliseconds(made: str) -> int:
    return int(datetime.fromisoformat(made).timestamp() * 1000)


def _id_order(id: str) -> tuple[int, int]:
    milliseconds, _, number = id.partition("-")
    return int(milliseconds), int(number or 0)


def _id_after(id: str) -> str:
    milliseconds, number = _id_order(id)
    return f"{milliseconds}-{number + 1}"


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most this size."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
