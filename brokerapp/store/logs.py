"""LogStore: the logs that exist, their attributes, depths and sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from brokerapp.model import JsonObject
from brokerapp.store import LogState
from brokerapp.store.client.client import StorePart, pairs

#: Entries removed in one call of `drop`: some milliseconds of the server's time.
DROP_BATCH = 5_000
#: Entries given places by priority in one call, for the same reason.
PRIORITIZED_AT_ONCE = 5_000


class LogStore(StorePart):
    """Reads the state of logs and removes them; the Lua side is dropping.lua and priority_index.lua."""

    async def all_attributes(self) -> dict[str, JsonObject]:
        """Return the attributes of all logs by name."""
        found = await self._client.execute("HGETALL", self._keys.logs)
        return {name.decode(): json.loads(attributes) for name, attributes in pairs(found)}

    async def attributes(self, log: str) -> JsonObject:
        """Return the attributes of one log; empty when it does not exist."""
        found = await self._client.execute("HGET", self._keys.logs, log)
        return json.loads(found) if found else {}

    async def attributes_of(self, logs: Sequence[str]) -> list[JsonObject]:
        """Return the attributes of several logs, in one round trip."""
        found = await self._client.execute("HMGET", self._keys.logs, *logs) if logs else []
        return [json.loads(each) if each else {} for each in found]

    async def depths(self, logs: Sequence[str]) -> dict[str, int]:
        """Return the number of messages in each log."""
        counts = await self._client.execute_many(("XLEN", self._keys.log(log)) for log in logs)
        return dict(zip(logs, counts, strict=True))

    async def used_bytes(self) -> tuple[int, dict[str, int]]:
        """Return the bytes of all stored messages, and of those in each log."""
        total, by_log = await self._client.execute_many(
            [("HGET", self._keys.state, "bytes"), ("HGETALL", self._keys.used)]
        )
        prefix = self._keys.log_prefix
        return int(total or 0), {key.decode().removeprefix(prefix): int(size) for key, size in pairs(by_log)}

    async def temp_used_bytes(self) -> int:
        """Return the bytes of non-persistent messages."""
        return int(await self._client.execute("HGET", self._keys.state, "temp") or 0)

    async def last_seq(self) -> int:
        """Return the sequence number of the last message stored by any node in any log."""
        return int(await self._client.execute("HGET", self._keys.state, "seq") or 0)

    async def last_seqs(self, logs: Sequence[str]) -> dict[str, int]:
        """Return, by log, a number that no message in it exceeds which is stored by now, by whichever node."""
        return dict.fromkeys(logs, await self.last_seq())

    async def recover(self) -> list[LogState]:
        """Return the state of all logs as the last node left them."""
        last = await self.last_seq()
        return await self._states(await self.all_attributes(), last)

    async def recover_logs(self, logs: Sequence[str]) -> list[LogState]:
        """Return the state of those of these logs that exist."""
        last = await self.last_seq()
        known = dict(zip(logs, await self.attributes_of(logs), strict=True))
        return await self._states({name: attributes for name, attributes in known.items() if attributes}, last)

    async def _states(self, logs: Mapping[str, JsonObject], last: int) -> list[LogState]:
        depths = await self.depths(list(logs))
        marks = {
            name.decode(): mark.decode()
            for name, mark in pairs(await self._client.execute("HGETALL", self._keys.marks))
        }
        returned = await self._returned(list(logs))
        return [
            LogState(name, each, depths[name], marks.get(name, ""), last, returned.get(name, {}))
            for name, each in logs.items()
        ]

    async def _returned(self, logs: Sequence[str]) -> dict[str, dict[int, int]]:
        """Return the deliveries of requeued entries, by log."""
        if not int(await self._client.execute("HGET", self._keys.state, "returned") or 0):
            return {}
        found = await self._client.execute_many(("HGETALL", self._keys.returned_prefix + log) for log in logs)
        return {
            log: {int(id.partition(b"-")[0]): int(count) for id, count in pairs(rows)}
            for log, rows in zip(logs, found, strict=True)
            if rows
        }

    async def index_priority(self, log: str, session: str, after: int) -> int:
        """Add the next entries after this number to the priority index of a log that became prioritized.

        The number it came to, to go on from there; 0 when all entries have places. May be repeated.
        """
        keys = self._keys
        places = [keys.state, keys.prioritized, keys.log(log), keys.urgent_prefix + log]
        came_to: int = await self._client.call(
            "prioritize", places, [session, log, keys.payload_prefix, after, PRIORITIZED_AT_ONCE]
        )
        return came_to

    async def drop(self, log: str, session: str, keep: bool = False, *, discarded: bool = False) -> int:
        """Remove a log with its messages, or only its messages (`keep`), and return their number.

        `discarded`: one that was discarded, and not one that was made anew under its name since.

        `session` is the node's, or "" when no node runs; raises Fenced when one does. One that only stands still is
        fenced by it: what it knows of the log is not true any more.
        """
        keys = self._keys
        places = (
            keys.state, keys.logs, keys.used, keys.marks, keys.log(log), keys.nodes, keys.expiring_prefix + log,
            keys.returned_prefix + log, keys.prioritized, keys.urgent_prefix + log,
        )  # fmt: skip
        args = (session, keys.payload_prefix, log, DROP_BATCH, int(keep), keys.node(""), keys.signals, int(discarded))
        removed, left = 0, 1
        while left:
            gone, left = await self._client.call("drop", places, args)
            removed += gone
        return removed

    async def drop_copy(self, log: str, copy: str, session: str, token: str = "") -> int | None:
        """Remove this copy of a log that is in another shard; return its messages, None where it is not there any more.

        With a token, only as long as no other move brings logs here.
        """
        keys = self._keys
        places = [
            keys.state, keys.logs, keys.used, keys.marks, keys.log(log), keys.moving, keys.expiring_prefix + log,
            keys.returned_prefix + log, keys.prioritized, keys.urgent_prefix + log,
        ]  # fmt: skip
        arguments = [session, keys.payload_prefix, log, DROP_BATCH, copy, token]
        removed, left = 0, 1
        while left:
            answer = await self._client.call("drop_copy", places, arguments)
            if answer is None:
                return None
            gone, left = answer
            removed += gone
        return removed
