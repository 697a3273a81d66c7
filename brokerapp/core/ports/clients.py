"""Ports of the parts that answer clients, authorize them and follow their life."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import ClientCommand, ConnectCommand
from brokerapp.model.destination import Destination


class Replies(Protocol):
    """Confirms or refuses what clients request."""

    def confirm(self, client: Client, *receipts: str | None) -> None: ...

    def refuse(self, client: Client, error: RequestRefused, receipt: str | None) -> None: ...

    def confirm_after(self, client: Client, receipt: str | None, then: Callable[[], None] | None = None) -> None: ...

    def try_command(self, client: Client, perform: Callable[[Client, Any], None], action: Any) -> None: ...


class Authorizer(Protocol):
    """Decides what clients may do at destinations."""

    access: AuthorizationMap | None

    def require(self, client: Client, verb: str, destination: Destination) -> None: ...

    def require_read(self, client: Client, destination: Destination) -> None: ...

    def may(self, subscription: Subscription, verb: str, destination: Destination) -> bool: ...


class BrokerEvents:
    """Observer of clients, consumers and temporary destinations. What a subclass does not override does nothing."""

    @property
    def is_suspended(self) -> bool:
        """Return whether no clients are accepted for now."""
        return False

    def on_client_connected(self, client: Client) -> None:
        """Note that a client connected that may reconnect."""

    def on_client_disconnected(self, client: Client) -> None:
        """Note that a client is gone."""

    def on_consumer_started(self, subscription: Subscription) -> None:
        """Note that a subscription is served from now on."""

    def on_consumer_stopped(self, subscription: Subscription) -> None:
        """Note that a subscription is served no more."""

    def on_temporary_added(self, destination: Destination, owner: TemporaryOwner) -> None:
        """Note that a client of this broker owns a temporary destination."""

    def on_temporary_removed(self, destination: Destination) -> None:
        """Note that a temporary destination of a client of this broker is gone."""


class ClusterPort(Protocol):
    """The cluster of brokers that this one is in."""

    def admit(
        self, client: Client, connect: ConnectCommand
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]: ...

    def status(self, *, brief: bool = False) -> Any: ...

    def change(self, change: Any, then: Callable[[str], None]) -> None: ...

    def on_destroyed(self, destination: Destination) -> None: ...
