"""Commands about connections and brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.commands.consumers import ConsumerInfo
from brokerapp.openwire.commands.ids import BrokerId, ConnectionId, RemovableId, SessionId
from brokerapp.openwire.commands.values import BaseCommand, OpenWireDestination, WireThrowable
from brokerapp.openwire.commands.wire_fields import (
    array,
    blob,
    boolean,
    byte,
    cached,
    int32,
    int64,
    magic,
    nested,
    string,
    throwable,
)

#: What the WireFormatInfo of every OpenWire peer begins with.
MAGIC = b"ActiveMQ"


@dataclass(slots=True)
class WireFormatInfo:
    """The first command of both sides: version and options, as wire_format_options encodes them."""

    data_type: ClassVar[int] = t.WIRE_FORMAT_INFO
    magic: bytes = magic(MAGIC)
    version: int = int32()
    marshalled_properties: bytes | None = blob()


@dataclass(slots=True)
class BrokerInfo(BaseCommand):
    """A broker introduces itself to a client, or to a broker that it has a bridge to."""

    data_type: ClassVar[int] = t.BROKER_INFO
    broker_id: BrokerId | None = cached(t.BROKER_ID)
    broker_url: str | None = string()
    peer_broker_infos: tuple[BrokerInfo | None, ...] | None = array(t.BROKER_INFO)
    broker_name: str | None = string()
    slave_broker: bool = boolean()
    master_broker: bool = boolean()
    fault_tolerant_configuration: bool = boolean()
    duplex_connection: bool = boolean(since=2)
    network_connection: bool = boolean(since=2)
    connection_id: int = int64(since=2)
    broker_upload_url: str | None = string(since=3)
    network_properties: str | None = string(since=3)


@dataclass(slots=True)
class ConnectionInfo(BaseCommand):
    """A client introduces itself, with user name and password."""

    data_type: ClassVar[int] = t.CONNECTION_INFO
    connection_id: ConnectionId | None = cached(t.CONNECTION_ID)
    client_id: str | None = string()
    password: str | None = string()
    user_name: str | None = string()
    broker_path: tuple[BrokerId | None, ...] | None = array(t.BROKER_ID)
    broker_master_connector: bool = boolean()
    manageable: bool = boolean()
    client_master: bool = boolean(since=2, default=True)
    fault_tolerant: bool = boolean(since=6)
    failover_reconnect: bool = boolean(since=6)
    client_ip: str | None = string(since=8)


@dataclass(slots=True)
class ConnectionControl(BaseCommand):
    """The broker tells a client what to do with its connection, and which other brokers there are."""

    data_type: ClassVar[int] = t.CONNECTION_CONTROL
    close: bool = boolean()
    exit: bool = boolean()
    fault_tolerant: bool = boolean()
    resume: bool = boolean()
    suspend: bool = boolean()
    connected_brokers: str | None = string(since=6, default="")
    reconnect_to: str | None = string(since=6, default="")
    rebalance_connection: bool = boolean(since=6)
    token: bytes | None = blob(since=8)


@dataclass(slots=True)
class ConnectionError(BaseCommand):
    """The connection ends because of this exception."""

    data_type: ClassVar[int] = t.CONNECTION_ERROR
    exception: WireThrowable | None = throwable()
    connection_id: ConnectionId | None = nested(t.CONNECTION_ID)


@dataclass(slots=True)
class SessionInfo(BaseCommand):
    """A client opens a session."""

    data_type: ClassVar[int] = t.SESSION_INFO
    session_id: SessionId | None = cached(t.SESSION_ID)


@dataclass(slots=True)
class RemoveInfo(BaseCommand):
    """A client closes its connection, a session, a consumer or a producer."""

    data_type: ClassVar[int] = t.REMOVE_INFO
    object_id: RemovableId | None = cached(*t.REMOVABLE_IDS)
    #: The highest number of a message that the consumer saw; -1 for none, -2 where that is not known.
    last_delivered_sequence_id: int = int64(since=5, default=-2)


@dataclass(slots=True)
class DestinationInfo(BaseCommand):
    """A client creates or deletes a destination."""

    data_type: ClassVar[int] = t.DESTINATION_INFO
    connection_id: ConnectionId | None = cached(t.CONNECTION_ID)
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    #: 0 to create, 1 to delete.
    operation_type: int = byte()
    timeout: int = int64()
    broker_path: tuple[BrokerId | None, ...] | None = array(t.BROKER_ID)


@dataclass(slots=True)
class KeepAliveInfo(BaseCommand):
    """Shows that the peer lives."""

    data_type: ClassVar[int] = t.KEEP_ALIVE_INFO


@dataclass(slots=True)
class ShutdownInfo(BaseCommand):
    """The peer closes the connection."""

    data_type: ClassVar[int] = t.SHUTDOWN_INFO


@dataclass(slots=True)
class ControlCommand(BaseCommand):
    """A text for the broker, such as `shutdown`."""

    data_type: ClassVar[int] = t.CONTROL_COMMAND
    command: str | None = string()


@dataclass(slots=True)
class FlushCommand(BaseCommand):
    """Asks to have everything written that is buffered."""

    data_type: ClassVar[int] = t.FLUSH_COMMAND


@dataclass(slots=True)
class BrokerSubscriptionInfo(BaseCommand):
    """The durable subscriptions of a broker, for a bridge that synchronizes them."""

    data_type: ClassVar[int] = t.BROKER_SUBSCRIPTION_INFO
    broker_id: BrokerId | None = nested(t.BROKER_ID)
    broker_name: str | None = string()
    subscription_infos: tuple[ConsumerInfo | None, ...] | None = array(t.CONSUMER_INFO)


@dataclass(slots=True)
class PartialCommand:
    """A part of a command that is too long for a datagram."""

    data_type: ClassVar[int] = t.PARTIAL_COMMAND
    command_id: int = int32()
    data: bytes | None = blob()


@dataclass(slots=True)
class LastPartialCommand(PartialCommand):
    """The last part of such a command."""

    data_type: ClassVar[int] = t.LAST_PARTIAL_COMMAND


@dataclass(slots=True)
class ReplayCommand(BaseCommand):
    """Asks to have commands sent again that a datagram lost."""

    data_type: ClassVar[int] = t.REPLAY_COMMAND
    first_nak_number: int = int32()
    last_nak_number: int = int32()
