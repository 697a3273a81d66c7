"""Reads prepared transactions, and ends them in place of their transaction manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from brokerapp.engine.clients.prepared_branch import PreparedSummary
from brokerapp.model import JsonObject, JsonValue
from brokerapp.store.redis import RedisStore


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A distributed transaction that is prepared."""

    id: str
    client_id: str
    user: str
    prepared_ms: int  #: since the epoch
    sends: int
    acks: int
    size: int  #: bytes of messages

    @property
    def since(self) -> datetime:
        """Return when it was prepared."""
        return datetime.fromtimestamp(self.prepared_ms / 1000, UTC)

    @property
    def name(self) -> str:
        """Return its global id as text, as transaction managers log it; "" where it is none."""
        digits = self.id.split(":")[2:3]
        try:
            text = bytes.fromhex("".join(digits)).decode("ascii")
        except ValueError:
            return ""
        return text if text.isprintable() else ""

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return asdict(self)


class TransactionAdmin:
    """Prepared transactions of the broker. `ask` requests from a node."""

    def __init__(self, store: RedisStore, ask: Callable[..., Awaitable[JsonValue]]) -> None:
        self._store, self._ask = store, ask

    async def prepared(self) -> list[PreparedTransaction]:
        """Return all prepared transactions, oldest first."""
        found = await self._store.branches.summaries()
        told = [PreparedTransaction(id=id, **asdict(PreparedSummary.decode(summary))) for id, summary in found.items()]
        return sorted(told, key=lambda each: (each.prepared_ms, each.id))

    async def end(self, id: str, *, commit: bool) -> None:
        """Commit a prepared transaction, or roll it back. Raises TransactionNotFound if there is none."""
        await self._ask("end_transaction", id=id, commit=commit)
