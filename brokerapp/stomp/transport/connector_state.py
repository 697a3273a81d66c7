"""ConnectorState: the settings and counters that all connections of one connector share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from brokerapp.core.broker import Broker
from brokerapp.engine.policy.authorization import Principal
from brokerapp.engine.routing.naming_conventions import PLAIN, NamingConventions
from brokerapp.model.transport_connector import DEFAULT_LIMITS, ConnectionLimits
from brokerapp.stomp.protocol_detection import ForeignClientReports

#: Return the principal of a login and passcode sent from an address; None when they are wrong. A connector without it
#: lets everybody connect.
Authenticate = Callable[[str | None, str | None, str], Awaitable[Principal | None]]


class OpenConnection(Protocol):
    """A connection as its connector ends it."""

    def close(self) -> None:
        """Close the connection at once."""

    def stop(self) -> None:
        """Take no more commands; what was asked is still done and answered."""


@dataclass(slots=True)
class ConnectorState:
    """State shared by all connections of one connector."""

    broker: Broker
    authenticate: Authenticate | None
    request_dispatch: Callable[[], None]  #: asks for a round of dispatch at the end of this tick
    connection_numbers: Iterator[int]
    name: str = ""  #: of the connector
    limits: ConnectionLimits = DEFAULT_LIMITS
    conventions: NamingConventions = PLAIN
    connection_count: int = 0  #: open now
    refused_count: int = 0  #: connections over the limit, since the start
    accepted_count: int = 0  #: since the start
    open_connections: set[OpenConnection] = field(default_factory=set)
    foreign_clients: ForeignClientReports = field(default_factory=ForeignClientReports)  #: of other protocols
    is_stopping: bool = False  #: no more commands are taken

    @property
    def is_full(self) -> bool:
        """Return whether the connector has reached its maximum of connections."""
        return self.limits.max_connections is not None and self.connection_count >= self.limits.max_connections

    def close_all(self) -> None:
        """Close all connections, and each one that is still made."""
        self.is_stopping = True
        for each in list(self.open_connections):
            each.close()

    def stop(self) -> None:
        """Take no more commands on any connection."""
        self.is_stopping = True
        for each in list(self.open_connections):
            each.stop()
