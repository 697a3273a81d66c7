"""Read the trace stream after an entry, count entries that were lost before it, and trim archived ones.

An entry is one batch of events: `b` its encoding (brokerapp/tracing/encoding.py), `n` the number of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import redis

from analytics.archive.stream_ids import START, position_of
from brokerapp.errors import StoreUnavailable
from brokerapp.store.client.keys import trace_key
from brokerapp.store.client.pools import blocking_client

#: Entries of one read; an entry has a few hundred kilobytes at most.
PAGE = 32
#: Microseconds for which a node may hold back events before it writes them.
NODE_DELAY_US = 2_000_000
_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 30


@dataclass(frozen=True, slots=True)
class StreamPage:
    """Entries that follow a place in the stream, in order."""

    entries: list[tuple[str, bytes]]  #: id and batch
    missed: int  #: entries between that position and the first of these, trimmed unread
    renewed: bool = False  #: whether it is another stream than before, because the store was emptied


class TraceStream:
    """The trace stream of one broker. Raises StoreUnavailable."""

    def __init__(self, redis_url: str, broker: str) -> None:
        self._key = trace_key(broker)
        self._redis = blocking_client(
            redis_url, self._key, socket_connect_timeout=_CONNECT_SECONDS, socket_timeout=_ANSWER_SECONDS
        )

    def close(self) -> None:
        """Close the connection to the store."""
        self._redis.close()

    def read(self, after: str, ordinal: int, limit: int = PAGE) -> StreamPage:
        """Read at most `limit` entries after the one with this id, which was the ordinal-th of the stream.

        Trimming always removes the oldest entries. So nothing was lost while the entry `after` exists (trim keeps it as
        a sentinel). If it does not, the stream's count of entries ever added tells how many were lost.
        """
        info, found = self._look(after, limit + 1)
        if info is None:
            return StreamPage([], 0, renewed=ordinal > 0)
        entries = [(id.decode(), fields[b"b"]) for id, fields in found]
        if entries and entries[0][0] == after:
            return StreamPage(entries[1:], 0)
        missed = info["entries-added"] - info["length"] - ordinal
        if missed < 0 or position_of(info["last-generated-id"].decode()) < position_of(after):
            return StreamPage([], 0, renewed=True)
        return StreamPage(entries[:limit], missed)

    def _look(self, after: str, limit: int) -> tuple[dict | None, list]:
        """Read the stream's information (None without a stream) and its entries from `after` on."""
        try:
            # One transaction: an entry trimmed between the two would look lost.
            pipe = self._redis.pipeline(transaction=True)
            pipe.xinfo_stream(self._key)
            pipe.xrange(self._key, min=after, count=limit)
            info, found = pipe.execute(raise_on_error=False)
        except redis.RedisError as error:
            raise StoreUnavailable(f"the trace stream cannot be read: {error}") from error
        return (info if isinstance(info, dict) else None), found

    def last(self) -> str | None:
        """Return the id of the last entry of the stream; None without a stream."""
        info, _ = self._look("+", 1)
        return info and info["last-generated-id"].decode()

    def first_after(self, id: str) -> str | None:
        """Return the id of the first entry after this one; None without any."""
        _, found = self._look(f"({id}", 1)
        return found[0][0].decode() if found else None

    def end(self) -> tuple[str, int]:
        """Return id and ordinal of the last entry; the start where there is no stream."""
        info, _ = self._look("+", 1)
        return (info["last-generated-id"].decode(), info["entries-added"]) if info else (START, 0)

    def trim(self, archived: str) -> None:
        """Remove the entries before the one of this id, which stays as a sentinel."""
        try:
            self._redis.xtrim(self._key, minid=archived, approximate=False)
        except redis.RedisError as error:
            raise StoreUnavailable(f"the trace stream cannot be trimmed: {error}") from error
