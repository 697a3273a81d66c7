"""PreparedBranchStore: branches of transactions that wait for their second phase."""

from __future__ import annotations

from brokerapp.store.client.client import StorePart, pairs


class PreparedBranchStore(StorePart):
    """Reads prepared branches; what changes them is part of a commit, see BranchChange."""

    async def summaries(self) -> dict[str, bytes]:
        """Return the summary of each prepared branch, by its id."""
        return {
            id.decode(): summary for id, summary in pairs(await self._client.execute("HGETALL", self._keys.prepared))
        }

    async def read(self, id: str) -> bytes | None:
        """Return what a prepared branch holds; None when there is no such branch."""
        held: bytes | None = await self._client.execute("HGET", self._keys.prepared_held, id)
        return held
