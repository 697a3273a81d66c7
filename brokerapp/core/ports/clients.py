"""Ports of the parts that answer clients, authorize them and follow their life."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.errors import BrokerError
from brokerapp.model.commands import ClientCommand, ConnectCommand
from brokerapp.model.destination import Destination


class Replies(Protocol):
    """Confirms or refuses what clients request."""

    def confirm(self, client: Client, *receipts: str | None) -> None: ...

    def refuse(self, client: Client, error: BrokerError, receipt: str | None) -> None: ...

    def confirm_after(self, client: Client, receipt: str | None, then: Callable[[], None] | None = None) -> None: ...

    def try_command(self, client: Client, perform: Callable[[Client, Any], None], action: Any) -> None: ...


class Authorizer(Protocol):
    """Decides what clients may do at destinations."""

    access: AuthorizationMap | None

    def require(self, client: Client, verb: str, destination: Destination) -> None: ...

    def require_read(self, client: Client, destination: Destination) -> None: ...

    def may(self, subscription: Subscription, verb: str, destination: Destination) -> bool: ...


class ClusterPort(Protocol):
    """The cluster of brokers that this one is in."""

    def admit(
        self, client: Client, connect: ConnectCommand
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]: ...

    def status(self, *, brief: bool = False) -> Any: ...

    def change(self, change: Any, then: Callable[[str], None]) -> None: ...

    def on_destroyed(self, destination: Destination) -> None: ...
