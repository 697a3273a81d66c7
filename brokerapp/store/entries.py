"""EntryStore: reads the messages of logs. Reads are bounded by a count and by bytes."""

from __future__ import annotations

from collections.abc import Sequence

from brokerapp.model.stored_message import load_stored
from brokerapp.store import StoredLogEntry
from brokerapp.store.client.client import StorePart
from brokerapp.store.client.library import PREFIX
from brokerapp.store.commit_codec import ROWS_AT_ONCE

#: Bytes of messages after which a read gives no more: bounds what an answer takes in memory.
READ_BYTES = 4 * 1024 * 1024


class EntryStore(StorePart):
    """Reads the messages of logs; the Lua side is entries.lua and priority_index.lua."""

    async def read(self, log: str, after: int, count: int) -> list[StoredLogEntry]:
        """Return up to `count` entries with a sequence number above `after`, in order.

        Fewer when they are large, none only at the end.
        """
        arguments = [self._keys.payload_prefix, after, count, READ_BYTES]
        rows = await self._client.call("read", [self._keys.log(log)], arguments)
        return self._entries(rows)

    async def read_back(self, log: str, before: int, count: int) -> list[StoredLogEntry]:
        """Return up to `count` entries with a sequence number below `before`, newest first.

        Fewer when they are large, none only at the beginning.
        """
        arguments = [self._keys.payload_prefix, before, count, READ_BYTES]
        rows = await self._client.call("read_back", [self._keys.log(log)], arguments)
        return self._entries(rows)

    async def read_by_priority(self, log: str, after: int, count: int) -> list[StoredLogEntry]:
        """Return up to `count` entries of a prioritized log after this order key (engine/entries/message_order.py).

        Fewer when they are large, none only at the end.
        """
        keys = [self._keys.log(log), self._keys.urgent_prefix + log]
        rows = await self._client.call("urgent", keys, [self._keys.payload_prefix, after, count, READ_BYTES])
        return self._entries(rows)

    async def read_by_seq(self, log: str, numbers: Sequence[int]) -> list[StoredLogEntry]:
        """Return those of these entries that exist, in the given order."""
        found: list[StoredLogEntry] = []
        left = list(numbers)
        while left:
            part = left[:ROWS_AT_ONCE]
            ids = [f"{number}-0" for number in part]
            rows = await self._client.call(
                "read_these", [self._keys.log(log)], [self._keys.payload_prefix, READ_BYTES, *ids]
            )
            found += self._entries(rows)
            is_cut = sum(len(stored) for _, stored, *_ in rows) >= READ_BYTES
            left = left[left.index(int(rows[-1][0])) + 1 if is_cut else len(part) :]
        return found

    def _entries(self, rows: Sequence[Sequence[bytes]]) -> list[StoredLogEntry]:
        found = entries_of(rows)
        if found:
            self._client.continuity.advance(seq=max([each.seq for each in found]))
        return found

    async def existing_seqs(self, log: str, numbers: Sequence[int]) -> set[int]:
        """Return which of these entries exist."""
        found: set[int] = set()
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            part = numbers[start : start + ROWS_AT_ONCE]
            rows = await self._client.execute_many(
                ("XRANGE", self._keys.log(log), f"{each}-0", f"{each}-0") for each in part
            )
            found.update(number for number, row in zip(part, rows, strict=True) if row)
        return found

    async def newest_seq(self, log: str) -> int:
        """Return the sequence number of the newest entry; 0 for an empty log."""
        found = await self._client.execute("XREVRANGE", self._keys.log(log), "+", "-", "COUNT", 1)
        return int(found[0][0].partition(b"-")[0]) if found else 0

    async def first_arrivals_ms(self, logs: Sequence[str]) -> list[int]:
        """Return when the first message of each log arrived, milliseconds since the epoch; 0 for an empty log."""
        found: list[bytes | None] = []
        for start in range(0, len(logs), ROWS_AT_ONCE):
            part = logs[start : start + ROWS_AT_ONCE]
            prefix = self._keys.payload_prefix
            found += await self._client.execute_many(
                ("FCALL", f"{PREFIX}first", 1, self._keys.log(log), prefix) for log in part
            )
        return [int(fields.split()[3]) // 1000 if fields else 0 for fields in found]


def entries_of(rows: Sequence[Sequence[bytes]]) -> list[StoredLogEntry]:
    """Return the server's rows (entries.lua, row_of) as entries, without those removed meanwhile."""
    return [
        StoredLogEntry(int(seq), load_stored(stored), int(payload or 0), len(stored), original.decode(), shown.decode())
        for seq, stored, payload, original, shown in rows
        if stored
    ]
