"""Define the status of a broker in its networks: its connectors, and the bridges of other brokers to it.

Plain values, part of the status that a node writes every second (`NodeStatus.network`). Counts are since the node
started; times are milliseconds since the epoch, 0: never.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.selector_prefixes import condition_of


class BridgeConnectionState(StrEnum):
    """Where a connector's way to another broker stands."""

    STOPPED = "stopped"  #: by an operator, or it does not start by itself
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"  #: the last attempt failed; the next one comes at `next_attempt_ms`
    GAVE_UP = "gave up"  #: after maxReconnectAttempts


@dataclass(slots=True)
class DemandStats:
    """One subscription of a bridge at its source: for whom it is there."""

    destination: str  #: native form
    selector: str = ""
    priority: int = 0
    durable: bool = False
    static: bool = False  #: whoever consumes
    path: list[str] = field(default_factory=list)  #: brokers from the source to who wants it
    consumers: list[str] = field(
        default_factory=list
    )  #: their ids, as advisories have them; of durable ones their names
    forwarded: int = 0  #: since it is there
    aside: str = ""  #: why nothing of it, or not all, crosses for now: a broker refuses it

    @property
    def condition(self) -> str:
        """Return the selector as its clients wrote it, without what their protocol puts before it."""
        return condition_of(self.selector)


@dataclass(slots=True)
class BridgeStats:
    """One direction. What concerns a queue only it counts: a message that may not cross stays there."""

    direction: str  #: `out`: from this broker; `in`: to it (duplex)
    source: str  #: the broker that has the messages
    target: str  #: the broker that wants them
    forwarded: int = 0
    forwarded_bytes: int = 0  #: of bodies
    dropped_by_ttl: int = 0  #: of topics, which had crossed as many bridges as they may
    duplicates: int = 0  #: copies this broker had already; of `out` they are counted at the target
    refused: int = 0  #: for temporary destinations that were gone
    under_way: int = 0  #: passed on, not confirmed by the target
    queued: int = 0  #: messages in the queues and durable subscriptions it consumes; known of `out` only
    demand: int = 0  #: subscriptions at the source


@dataclass(slots=True)
class BridgeConnectionStats:
    """A connector's way to one broker, or to the first of some that answers."""

    addresses: list[str]
    state: BridgeConnectionState = BridgeConnectionState.STOPPED
    remote: str = ""  #: the name of the broker there, once it is known
    address: str = ""  #: of the present connection
    protocol: str = ""  #: of the present connection: STOMP or OpenWire
    connected_ms: int = 0
    last_error: str = ""
    last_error_ms: int = 0
    attempts: int = 0  #: that failed, in a row
    next_attempt_ms: int = 0
    connections: int = 0  #: made so far
    bridges: list[BridgeStats] = field(default_factory=list)


@dataclass(slots=True)
class ConnectorStats:
    """One network connector, without its password."""

    name: str
    uri: str
    running: bool  #: it is to have its bridges
    duplex: bool = False
    definition: JsonObject = field(default_factory=dict)  #: see brokerapp.network.connectors
    ways: list[BridgeConnectionStats] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  #: what goes wrong with what it bridges, a sentence each


@dataclass(slots=True)
class InboundBridgeStats:
    """A bridge of another broker to this one."""

    broker: str
    connection: str  #: the id of its connection here
    client_id: str
    address: str
    user: str
    connected_ms: int
    received: int = 0  #: messages it brought
    duplicates: int = 0  #: of their copies, those that were here already
    given: int = 0  #: messages it took (duplex, and bridges of other makers)
    dropped_by_ttl: int = 0  #: of topics, which it did not get


@dataclass(slots=True)
class NetworkStats:
    """The place of one node's broker in its network."""

    connectors: list[ConnectorStats] = field(default_factory=list)
    incoming: list[InboundBridgeStats] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, JsonValue]) -> NetworkStats:
        """Build the object from the result of to_json."""
        return NetworkStats(
            [_connector(each) for each in data.get("connectors", ())],
            [InboundBridgeStats(**each) for each in data.get("incoming", ())],
        )


def _connector(data: Mapping[str, JsonValue]) -> ConnectorStats:
    return ConnectorStats(**{**data, "ways": [_way(each) for each in data["ways"]]})


def _way(data: Mapping[str, JsonValue]) -> BridgeConnectionStats:
    bridges = [BridgeStats(**each) for each in data["bridges"]]
    return BridgeConnectionStats(**{**data, "state": BridgeConnectionState(data["state"]), "bridges": bridges})
