"""Rewriting: the append-only file of a server of our own, how long it is and when it is rewritten."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.store.client.client import StoreClient


@dataclass(frozen=True, slots=True)
class AppendOnlyFileSize:
    """Bytes of the file, those that what it holds takes in memory, and whether it is being rewritten now."""

    file: int
    held: int
    is_rewritten: bool


class AppendOnlyFileControl(StoreClient):
    """See brokerapp.runtime.disk_watch."""

    async def file_size(self) -> AppendOnlyFileSize:
        """How long the file is."""
        lines = (await self._do("INFO", "memory", "persistence")).decode().split("\r\n")
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        is_rewritten = facts["aof_rewrite_in_progress"] == "1" or facts["aof_rewrite_scheduled"] == "1"
        return AppendOnlyFileSize(int(facts["aof_current_size"]), int(facts["used_memory"]), is_rewritten)

    async def let_rewrite(self, percentage: int) -> None:
        """Let the server rewrite its file by itself when it has grown by this percentage; 0: never."""
        await self._do("CONFIG", "SET", "auto-aof-rewrite-percentage", percentage)

    async def rewrite(self) -> None:
        """Let the server begin to rewrite its file."""
        await self._do("BGREWRITEAOF")
