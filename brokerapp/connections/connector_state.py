"""Define what the connections of a node share: its broker's services, and the state of each connector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from brokerapp.connections.cluster_brokers import ClusterBrokers
from brokerapp.connections.log_throttle import LogThrottle
from brokerapp.connections.login import Authenticate, LoginHandler
from brokerapp.connections.read_turns import ReadTurns
from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing.naming_conventions import PLAIN, NamingConventions
from brokerapp.model.commands import ClientCommand
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.model.transport_connector import DEFAULT_LIMITS, PLAIN_STOMP, ConnectionLimits, Transport


class OpenConnection(Protocol):
    """A connection as its connector ends it."""

    def close(self) -> None:
        """Close the connection at once."""

    def stop(self) -> None:
        """Take no more commands; what was asked is still done and answered."""

    def resume(self) -> None:
        """Take commands again after `stop`."""

    def tell_cluster_brokers(self) -> None:
        """Tell the client of the broker's nodes, where its protocol can."""

    @property
    def is_settled(self) -> bool:
        """Return whether the client holds no messages, has no open transaction, and everything it asked is done."""

    @property
    def is_closing(self) -> bool:
        """Return whether the client was told to leave, or leaves."""

    def send_away(self, addresses: Sequence[str]) -> None:
        """Let the client go, after telling it of these addresses of other nodes where its protocol can."""


class ClientRegistryPort(Protocol):
    """Registers clients that have logged in, until they leave."""

    def __contains__(self, client: Client) -> bool: ...

    def disconnect(self, client: Client) -> None: ...

    def leave(self, client: Client, receipt: str | None, then: Callable[[], None]) -> None: ...


class ClientWakeup(Protocol):
    """Schedules rounds of dispatch for clients and their subscriptions."""

    def wake(self, client: Client) -> None: ...

    def resume(self, subscription: Subscription) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientServices:
    """What the connections of clients use of a node and its broker."""

    name: str  #: of the broker, as CONNECTED frames tell it
    session: str  #: what tells this run of this node from all others of the broker
    next_client_id: Callable[[], str]
    login: LoginHandler
    commands: Mapping[type[ClientCommand], Callable[[Client, Any], None]]  #: who performs what clients ask
    clients: ClientRegistryPort
    dispatcher: ClientWakeup
    own_temporary: Callable[[Client, DestinationKind, str], Destination]
    read_turns: ReadTurns  #: handle what connections read in one turn of the event loop
    request_dispatch: Callable[[], None]  #: asks for a round of dispatch at the end of this tick
    durable_subscriptions: Callable[[], Iterable[SubscriptionIdentity]]  #: all there are, for bridges
    broker_ids: BrokerIds  #: of other brokers of the network


@dataclass(slots=True)
class ConnectorState:
    """State shared by all connections of one connector."""

    services: ClientServices
    authenticate: Authenticate | None
    name: str = ""  #: of the connector
    address: str = ""  #: where it listens, as a uri
    limits: ConnectionLimits = DEFAULT_LIMITS
    conventions: NamingConventions = PLAIN
    transport: Transport = PLAIN_STOMP
    connection_count: int = 0  #: open now
    refused_count: int = 0  #: connections over the limit, since the start
    accepted_count: int = 0  #: since the start
    open_connections: set[OpenConnection] = field(default_factory=set)
    foreign_clients: LogThrottle = field(default_factory=LogThrottle)  #: of other protocols
    is_stopping: bool = False  #: no more commands are taken
    cluster_brokers: ClusterBrokers = field(init=False)

    def __post_init__(self) -> None:
        self.cluster_brokers = ClusterBrokers(self.limits.openwire)

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
