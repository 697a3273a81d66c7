"""Reads prepared transactions, and ends them in place of their transaction manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from brokerapp.engine.clients.branch_parts import branch_of
from brokerapp.engine.clients.prepared_branch import PreparedSummary
from brokerapp.model import JsonObject, JsonValue
from brokerapp.store.shards.broker_store import BrokerStore


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

    def __init__(self, store: BrokerStore, ask: Callable[..., Awaitable[JsonValue]]) -> None:
        self._store, self._ask = store, ask

    async def prepared(self) -> list[PreparedTransaction]:
        """Return all prepared transactions, oldest first."""
        found: dict[str, list[PreparedSummary]] = {}
        for id, summary in (await self._store.branches.summaries()).items():
            found.setdefault(branch_of(id), []).append(PreparedSummary.decode(summary))
        told = [_of_parts(name, parts) for name, parts in found.items()]
        return sorted(told, key=lambda each: (each.prepared_ms, each.id))

    async def end(self, id: str, *, commit: bool) -> None:
        """Commit a prepared transaction, or roll it back. Raises TransactionNotFound if there is none."""
        await self._ask("end_transaction", id=id, commit=commit)


def _of_parts(name: str, parts: Sequence[PreparedSummary]) -> PreparedTransaction:
    """Return a transaction by its parts, one for each node where clients took part in it."""
    first = min(parts, key=lambda each: each.prepared_ms)
    return PreparedTransaction(
        id=name, client_id=first.client_id, user=first.user, prepared_ms=first.prepared_ms,
        sends=sum([each.sends for each in parts]), acks=sum([each.acks for each in parts]),
        size=sum([each.size for each in parts]),
    )  # fmt: skip
