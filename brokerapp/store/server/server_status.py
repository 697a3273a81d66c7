"""ServerStatus: memory, durability, rollbacks and append-only file of the server that holds the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.errors import StartRefused, StoreUnavailable
from brokerapp.store.client.client import StorePart

#: Milliseconds that a server has to say that it has synced what was written; it needs one sync.
WAITAOF_MS = 5_000


@dataclass(frozen=True, slots=True)
class AppendOnlyFileSize:
    """Bytes of the append-only file, bytes its content takes in memory, and whether it is being rewritten."""

    file: int
    held: int
    is_rewritten: bool


def evicts_messages(facts: Mapping[str, Any]) -> bool:
    """Return whether a server deletes keys that never expire when its memory is full, by what INFO says."""
    return str(facts.get("maxmemory_policy", "")).startswith("allkeys")


class ServerStatus(StorePart):
    """Reads what the server says of itself, and controls rewrites of its append-only file."""

    async def memory(self) -> dict[str, Any]:
        """Return bytes used, the server's limit (0: none), the machine's memory, whether it evicts keys, its fsync, and
        how many replicas follow it.

        `fsync` is `off` without an append-only file, `unknown` where the server refuses to say.
        """
        facts = await self._info()
        try:
            fsync = (await self._client.execute("CONFIG", "GET", "appendfsync"))[1].decode()
        except (StoreUnavailable, IndexError):  # hosted servers refuse CONFIG
            fsync = "unknown"
        on = facts.get("aof_enabled") == "1"
        return {
            "used": int(facts.get("used_memory", 0)),
            "limit": int(facts.get("maxmemory", 0)),
            "machine": int(facts.get("total_system_memory", 0)),
            "evicts": evicts_messages(facts),
            "fsync": fsync if on else "off",
            "replicas": int(facts.get("connected_slaves", 0)),
        }

    async def check_confirmation(self, replicas: int) -> None:
        """Raise StartRefused if the server cannot have replicas confirm what it writes, or does not answer now."""
        if replicas:
            try:
                await self._client.execute("WAITAOF", 1, 0, WAITAOF_MS)
            except StoreUnavailable as error:
                raise StartRefused(
                    f"{replicas} replicas: {error}; the store needs appendonly yes, and Redis or Valkey 7.2 or later"
                ) from error

    async def save_replica_count(self, replicas: int) -> None:
        """Save how many replicas confirm changes, confirmed by them. Raises StoreUnavailable when too few are."""
        await self._client.execute_confirmed("SET", self._keys.replicas, replicas)

    async def rollbacks(self) -> dict[str, int]:
        """Return how often the store was rolled back, when that happened last, and how many changes were lost.

        Also when it was restored, and when the backup was made.
        """
        names = ("rollbacks", "rollback_ms", "rollback_changes", "restored_ms", "backup_ms")
        found = await self._client.execute("HMGET", self._keys.state, *names)
        return {name: int(value or 0) for name, value in zip(names, found, strict=True)}

    async def append_only_file_size(self) -> AppendOnlyFileSize:
        """Return the size of the append-only file."""
        facts = await self._info()
        is_rewritten = facts["aof_rewrite_in_progress"] == "1" or facts["aof_rewrite_scheduled"] == "1"
        return AppendOnlyFileSize(int(facts["aof_current_size"]), int(facts["used_memory"]), is_rewritten)

    async def set_rewrite_percentage(self, percentage: int) -> None:
        """Set the growth in percent after which the server rewrites its file; 0: never."""
        await self._client.execute("CONFIG", "SET", "auto-aof-rewrite-percentage", percentage)

    async def start_rewrite(self) -> None:
        """Start a rewrite of the append-only file; it runs in the background."""
        await self._client.execute("BGREWRITEAOF")

    async def _info(self) -> dict[str, str]:
        info: bytes = await self._client.execute("INFO", "memory", "persistence", "replication")
        return dict(line.split(":", 1) for line in info.decode().split("\r\n") if ":" in line)
