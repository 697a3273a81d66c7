"""Copy all keys of one server to another, by their types.

DUMP and RESTORE would need servers of about the same version, and keys below 512 MB; a queue may have more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import redis

from brokerapp.backup.staged_store import KEYS_AT_ONCE, batches
from brokerapp.errors import BackupRefused, StoreUnavailable
from brokerapp.store.client.failures import failure_reason

#: Elements of a key, and bytes of them, that are written in one call.
ELEMENTS_AT_ONCE, BYTES_AT_ONCE = 1_000, 4 * 1024 * 1024
#: Milliseconds for the target to have it all on disk.
SYNC_MS = 60_000

Command: TypeAlias = tuple[Any, ...]
Client: TypeAlias = Any  # of the driver, whose types do not fit its answers


def copy_keys(source: Client, target: Client, prefix: bytes, check: Callable[[], None] = lambda: None) -> int:
    """Copy the keys that begin so, with their expiry; return how many. `check` raises an error that ends it between two
    batches. Raises StoreUnavailable, BackupRefused.
    """
    count = 0
    try:
        for keys in batches(source.scan_iter(match=pattern(prefix), count=KEYS_AT_ONCE), KEYS_AT_ONCE):
            check()
            _write(target, _commands_of(source, keys))
            count += len(keys)
        if not _wait_until_synced(target):
            raise StoreUnavailable(
                f"the target store did not write all keys to its disk within {SYNC_MS / 1000:g} s: "
                "check its disk, and restore the backup again"
            )
    except redis.ResponseError as error:
        raise BackupRefused(f"the target store refused a command: {error}") from error
    except (redis.RedisError, OSError) as error:
        raise StoreUnavailable(f"the target store failed: {failure_reason(error)}") from error
    return count


def _wait_until_synced(target: Client) -> bool:
    """Wait until the target has all on its disk, and return whether it has, or is not meant to."""
    if not target.info("persistence").get("aof_enabled"):
        return True
    with suppress(redis.ResponseError):  # it may not be asked
        if target.config_get("appendfsync").get("appendfsync") == "no":
            return True
    synced: int = target.execute_command("WAITAOF", 1, 0, SYNC_MS)[0]
    return synced > 0


def _write(target: Client, commands: Iterator[Command]) -> None:
    pipe, waiting, size = target.pipeline(transaction=False), 0, 0
    for command in commands:
        pipe.execute_command(*command)
        waiting += 1
        size += sum(len(each) for each in command if isinstance(each, bytes))
        if waiting >= ELEMENTS_AT_ONCE or size >= BYTES_AT_ONCE:
            pipe.execute()
            waiting = size = 0
    if waiting:
        pipe.execute()


def _commands_of(source: Client, keys: list[bytes]) -> Iterator[Command]:
    """Yield the commands that make these keys, whatever they are in the target: a scan may name a key twice."""
    pipe = source.pipeline(transaction=False)
    for key in keys:
        pipe.type(key).pttl(key).memory_usage(key)
    found = pipe.execute()
    for key, kind, left, size in zip(keys, found[::3], found[1::3], found[2::3], strict=True):
        if size is None:  # it has expired since it was scanned
            continue
        yield "UNLINK", key
        yield from _COPIES[kind.decode()](source, key, size)
        if left > 0:
            yield "PEXPIRE", key, left


def _at_once(size: int, length: int) -> int:
    """Return how many elements of a key to read in one call, by their mean size."""
    return max(1, min(ELEMENTS_AT_ONCE, BYTES_AT_ONCE * length // max(1, size)))


def _string(source: Client, key: bytes, _size: int) -> Iterator[Command]:
    if (value := source.get(key)) is not None:  # else it has expired
        yield "SET", key, value


def _hash(source: Client, key: bytes, size: int) -> Iterator[Command]:
    count = _at_once(size, source.hlen(key))
    for rows in batches(source.hscan_iter(key, count=count), count):
        yield "HSET", key, *(each for row in rows for each in row)


def _list(source: Client, key: bytes, size: int) -> Iterator[Command]:
    at, count = 0, _at_once(size, source.llen(key))
    while rows := source.lrange(key, at, at + count - 1):
        yield "RPUSH", key, *rows
        at += len(rows)


def _set(source: Client, key: bytes, _size: int) -> Iterator[Command]:
    for rows in batches(source.sscan_iter(key, count=ELEMENTS_AT_ONCE), ELEMENTS_AT_ONCE):
        yield "SADD", key, *rows


def _sorted_set(source: Client, key: bytes, _size: int) -> Iterator[Command]:
    for rows in batches(source.zscan_iter(key, count=ELEMENTS_AT_ONCE), ELEMENTS_AT_ONCE):
        yield "ZADD", key, *(each for member, score in rows for each in (repr(score), member))


def _stream(source: Client, key: bytes, size: int) -> Iterator[Command]:
    about = source.xinfo_stream(key)
    last, added, removed = about["last-generated-id"], about["entries-added"], about["max-deleted-entry-id"]
    after, count = "-", _at_once(size, about["length"])
    while rows := source.xrange(key, min=after, count=count):
        for id, fields in rows:
            yield "XADD", key, id, *(each for row in fields.items() for each in row)
        after = f"({rows[-1][0].decode()}"
    if last == b"0-0":
        return  # nothing was ever in it
    if not about["length"]:  # an empty stream remembers its last number
        yield "XADD", key, "MAXLEN", 0, last, b"m", b""
    yield "XSETID", key, last, "ENTRIESADDED", added, "MAXDELETEDID", removed


def pattern(prefix: bytes) -> bytes:
    """Return the pattern of keys that begin so."""
    return re.sub(rb"([*?\[\]\\^])", rb"\\\1", prefix) + b"*"


#: By the type of a key.
_COPIES: dict[str, Callable[[Client, bytes, int], Iterator[Command]]] = {
    "string": _string, "hash": _hash, "list": _list, "set": _set, "zset": _sorted_set, "stream": _stream,
}  # fmt: skip
