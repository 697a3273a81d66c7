"""Know the temporary destinations of other nodes, and adopt those of a node that is gone.

A node has the temporary destinations of its clients, and of clients that may reconnect to it: its session is part of
their names. A client that reconnects to another node takes its own along; their attributes say so. What a node had that
is gone is adopted by one of the others: it waits for clients that may reconnect, and removes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.core.ports import ReconnectWindowPort, TemporaryRecovery
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.model.destination import Destination
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers


@dataclass(frozen=True, slots=True)
class OrphanedTemporary:
    """A temporary destination that another node has."""

    session: str  #: of that node
    owner: TemporaryOwner | None  #: its client, if that may reconnect


class OrphanedTemporaries(NodeObserver):
    """Temporary destinations of other nodes, until their client connects here or their node is gone."""

    def __init__(self, *, peers: Peers, temporaries: TemporaryRecovery, reconnect_window: ReconnectWindowPort) -> None:
        self._peers, self._temporaries, self._reconnect_window = peers, temporaries, reconnect_window
        self._by_destination: dict[Destination, OrphanedTemporary] = {}

    def add(self, destination: Destination, session: str, owner: TemporaryOwner | None) -> None:
        """Note that another node has a temporary destination."""
        self._by_destination[destination] = OrphanedTemporary(session, owner)

    def remove(self, destination: Destination) -> None:
        """Forget a temporary destination that is gone, or that this node has."""
        self._by_destination.pop(destination, None)

    def on_client_connected(self, client: Client) -> None:
        """Take over what a client had at other nodes."""
        for destination, temporary in list(self._by_destination.items()):
            if temporary.owner is not None and temporary.owner.is_of(client):
                self.remove(destination)
                self._temporaries.take_ownership(client, destination, temporary.owner)

    def on_logs_reassigned(self) -> None:
        """Adopt, as their owner, the temporary destinations of nodes that are no members any more."""
        for destination, temporary in list(self._by_destination.items()):
            if self._peers.is_other_member(temporary.session) or not self._peers.is_local(str(destination)):
                continue
            self.remove(destination)
            if temporary.owner is None:
                self._temporaries.remove_orphan(destination)
            else:
                self._reconnect_window.recover(destination, temporary.owner)
