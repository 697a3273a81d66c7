"""Endpoint: what all connections of one connector share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from brokerapp.core.broker import Broker
from brokerapp.engine.policy.authorization import Principal
from brokerapp.engine.routing.naming_conventions import PLAIN, NamingConventions
from brokerapp.model.transport_connector import DEFAULT_LIMITS, ConnectionLimits
from brokerapp.stomp.protocol_detection import ForeignClientReports

if TYPE_CHECKING:
    from brokerapp.stomp.transport.listener import StompConnection

#: Who a login and passcode belong to, sent from an address; None when they are wrong. Without one anybody may come in.
Authenticate = Callable[[str | None, str | None, str], Awaitable[Principal | None]]


@dataclass(slots=True)
class ConnectorState:
    """What all connections of one listener share."""

    broker: Broker
    authenticate: Authenticate | None
    pump: Callable[[], None]  #: asks for a pump of the broker at the end of this tick
    numbers: Iterator[int]
    name: str = ""  #: of the connector
    limits: ConnectionLimits = DEFAULT_LIMITS
    conventions: NamingConventions = PLAIN
    connections: int = 0  #: open now
    refused: int = 0  #: because there were as many as may be
    accepted: int = 0  #: since it listens
    open: set[StompConnection] = field(default_factory=set)
    foreign: ForeignClientReports = field(default_factory=ForeignClientReports)  #: clients of other protocols
    stopping: bool = False  #: nobody is heard any more

    @property
    def is_full(self) -> bool:
        """Whether a further connection would be one too many."""
        return self.limits.max_connections is not None and self.connections >= self.limits.max_connections

    def abandon(self) -> None:
        """Let go of all, and of whoever still comes."""
        self.stopping = True
        for each in list(self.open):
            each.close()

    def stop(self) -> None:
        """Hear nobody any more."""
        self.stopping = True
        for each in list(self.open):
            each.stop()
