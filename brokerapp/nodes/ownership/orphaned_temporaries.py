"""Inherit temporary destinations of nodes that are gone, or delete them.

A node has those that its clients made, and whose clients it waits for: its session is part of their names. A client
that may reconnect and comes to another node takes its own along; their attributes say so. What a node had that is gone
is inherited by one of the others: it waits for those clients that may come back, and removes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.engine.clients.temporary_owner import TemporaryOwner
    from brokerapp.nodes.ports import LocalBroker


@dataclass(frozen=True, slots=True)
class OrphanedTemporary:
    """One that another node has."""

    session: str  #: the session of that node
    owner: TemporaryOwner | None  #: whose it is, if that client may reconnect


class OrphanedTemporaries:
    """A part of the temporary destinations."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self._by_destination: dict[Destination, OrphanedTemporary] = {}

    def add(self, destination: Destination, at: str, belongs: TemporaryOwner | None) -> None:
        """That node has it from now on."""
        self._by_destination[destination] = OrphanedTemporary(at, belongs)

    def remove(self, destination: Destination) -> None:
        """It is gone, or is had here."""
        self._by_destination.pop(destination, None)

    def on_client_connected(self, client: Client) -> None:
        """A client connected here: what it had at other nodes is had here from now on."""
        for destination, stranger in list(self._by_destination.items()):
            if stranger.owner is not None and stranger.owner.is_of(client):
                self.remove(destination)
                self._broker.temporaries.take_ownership(client, destination, stranger.owner)

    def adopt_orphans(self) -> None:
        """Nodes are gone: what they had and is at home here now waits for its client, or goes."""
        homes = self._broker.placement
        for destination, stranger in list(self._by_destination.items()):
            if homes.is_other_member(stranger.session) or not homes.is_local(str(destination)):
                continue
            self.remove(destination)
            if stranger.owner is None:
                self._broker.temporaries.remove(destination)
            else:
                self._broker.reconnect_window.recover(destination, stranger.owner)
