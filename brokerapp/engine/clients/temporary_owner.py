"""Represent the client that a temporary destination belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from brokerapp.engine.clients.client import Client
from brokerapp.model.destination import Destination, DestinationKind


@dataclass(frozen=True, slots=True)
class TemporaryOwner:
    """Identify the client that owns a temporary destination, wherever and whenever it connects."""

    client_id: str
    user: str
    kind: DestinationKind
    name: str  #: the client's own
    window_ms: int  #: how long it waits for the client; 0: it does not

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        return {**asdict(self), "kind": str(self.kind)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TemporaryOwner:
        """Parse the result of to_json."""
        return TemporaryOwner(**{**data, "kind": DestinationKind(data["kind"])})

    def is_of(self, client: Client) -> bool:
        """Return whether a client is the owner."""
        mine = client.has_client_id and client.reconnect_ms > 0 and self.window_ms > 0
        return mine and (client.client_id, client.principal.name) == (self.client_id, self.user)


def owner_for(client: Client, kind: DestinationKind, name: str) -> TemporaryOwner:
    """Return the owner of a client's new temporary destination."""
    return TemporaryOwner(client.client_id, client.principal.name, kind, name, client.reconnect_ms)


def session_of_temporary(log: str) -> str:
    """Return the session of the node whose client made a temporary destination, by its name; "" for others."""
    destination = Destination.parse(log)
    if not destination.is_temporary:
        return ""
    client, _, _ = destination.name.rpartition(":")
    node, _, _ = client.rpartition("-")
    return node.rpartition("-")[2]
