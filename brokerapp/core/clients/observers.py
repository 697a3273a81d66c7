"""Tells observers of clients, consumers and temporary destinations that begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerEvents


class BrokerObservers:
    """Passes events on to every observer, in the order in which these were added."""

    def __init__(self) -> None:
        self._observers: list[BrokerEvents] = []

    def add(self, observer: BrokerEvents) -> None:
        """Tell this observer of everything that happens from now on."""
        self._observers.append(observer)

    @property
    def is_suspended(self) -> bool:
        """Whether some observer lets no clients connect."""
        return any(each.is_suspended for each in self._observers)

    def on_client_connected(self, client: Client) -> None:
        """Tell that a client connected."""
        for each in self._observers:
            each.on_client_connected(client)

    def on_client_disconnected(self, client: Client) -> None:
        """Tell that a client is gone."""
        for each in self._observers:
            each.on_client_disconnected(client)

    def on_consumer_started(self, subscription: Subscription) -> None:
        """Tell that a subscription is served from now on."""
        for each in self._observers:
            each.on_consumer_started(subscription)

    def on_consumer_stopped(self, subscription: Subscription) -> None:
        """Tell that a subscription is served no more."""
        for each in self._observers:
            each.on_consumer_stopped(subscription)

    def on_temporary_added(self, destination: Destination, owner: TemporaryOwner) -> None:
        """Tell that a client of this broker owns a temporary destination."""
        for each in self._observers:
            each.on_temporary_added(destination, owner)

    def on_temporary_removed(self, destination: Destination) -> None:
        """Tell that a temporary destination of a client of this broker is gone."""
        for each in self._observers:
            each.on_temporary_removed(destination)
