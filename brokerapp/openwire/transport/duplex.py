"""What the two halves of a duplex connection ask of each other: a bridge comes over it, and one goes back."""

from __future__ import annotations

from typing import Protocol

from brokerapp.engine.clients.client import Client
from brokerapp.openwire.commands import BaseCommand, DataStructure
from brokerapp.openwire.session.bridges import ConnectingBridge


class DuplexConnection(Protocol):
    """The connection that another broker made, as the bridge back to that one uses it."""

    client: Client  #: the bridge that comes over it

    def send(self, command: DataStructure) -> None:
        """Write a command, at the end of this tick."""

    def close(self) -> None:
        """Flush and close the connection."""


class BridgeBack(Protocol):
    """The bridge that takes messages to the broker that made the connection."""

    def receive(self, command: BaseCommand) -> bool:
        """Handle what answers this bridge, or tells it of consumers there; return whether the command was such."""

    def set_writable(self, is_writable: bool) -> None:
        """Note whether the connection takes more for now."""

    def end(self) -> None:
        """End the bridge: the connection is over."""


class DuplexBridges(Protocol):
    """Makes the bridges back."""

    def start(self, bridge: ConnectingBridge, connection: DuplexConnection) -> BridgeBack:
        """Start the bridge back to a broker whose bridge was let in. Raises ProtocolError where it cannot be."""
