"""Know what the bridge of another broker says of itself when it connects, and tell it of what concerns bridges. Pure.

A broker that joins by a network connector sends a BrokerInfo before its ConnectionInfo. Behind that it is a client: it
consumes the advisories about consumers, and sends the messages that these want.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.engine.scheduling.delivery_schedule import HEADERS as SCHEDULING
from brokerapp.errors import ProtocolError
from brokerapp.model.broker_path import BRIDGE_DURABLE_PREFIX, PATH_PROPERTY, parse_path
from brokerapp.model.commands import BridgedOrigin, SendCommand
from brokerapp.model.message import escape, unescape
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.openwire.bridged_ids import text_of_bridged_id
from brokerapp.openwire.commands import (
    BrokerId,
    BrokerInfo,
    BrokerSubscriptionInfo,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    MessageCommand,
    MessageDispatch,
)
from brokerapp.openwire.java_properties import parse_properties
from brokerapp.openwire.session.broker_paths import broker_ids_of, path_of
from brokerapp.openwire.session.destinations import openwire_destination

#: The first version of OpenWire whose brokers tell each other their durable subscriptions.
DURABLE_SYNC_VERSION = 12
#: Properties that mean something at the other broker only: what delayed a message there, and its path.
_NOT_PASSED_ON = frozenset({PATH_PROPERTY, *SCHEDULING})
#: How ids of consumers have no session, and the number of the first.
_NO_SESSION, _FIRST = -1, 1


@dataclass(frozen=True, slots=True)
class ConnectingBridge:
    """The bridge of another broker to this one."""

    broker_id: str
    broker: str  #: the name of the broker
    is_duplex: bool  #: it takes messages to there, too
    #: The attributes of its network connector, as they are called in the XML; a password may be among them.
    attributes: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: The durable subscriptions at its broker, where it tells them (syncDurableSubs).
    durable_subscriptions: tuple[ConsumerInfo, ...] | None = None

    @property
    def connector(self) -> str:
        """Return the name of its network connector."""
        return self.attributes.get("name", "")

    @property
    def sends_copies(self) -> bool:
        """Whether it brings a message of a topic once for each subscriber here."""
        return self.attributes.get("conduitSubscriptions") == "false"

    @property
    def wants_durable_subscriptions(self) -> bool:
        """Whether it asks which durable subscriptions there are."""
        return self.attributes.get("syncDurableSubs") == "true"


def connecting_bridge(info: BrokerInfo, own_name: str) -> ConnectingBridge | None:
    """Return the bridge that a BrokerInfo announces; None where it announces none.

    Raises ProtocolError where it is the bridge of no other broker.
    """
    if not info.network_connection:
        return None
    id, name = info.broker_id.value if info.broker_id is not None else "", info.broker_name or ""
    if not id or not name:
        raise ProtocolError("BrokerInfo of a bridge without the id or the name of its broker")
    if own_name in (id, name):
        raise ProtocolError(
            f"a bridge comes from a broker named {name!r}, and so is this one: each broker of a network needs a "
            "brokerName of its own"
        )
    return ConnectingBridge(id, name, info.duplex_connection, parse_properties(info.network_properties or ""))


def mark_bridged(send: SendCommand, message: MessageCommand, ids: BrokerIds) -> None:
    """Let a message be one that a bridge passes on: with the id and the path that it has, and delayed no more."""
    path = path_of(message.broker_path, ids)
    if any(name in send.properties for name in _NOT_PASSED_ON):
        lines = dict(line.partition(":")[::2] for line in send.properties.split("\n") if line)
        path = parse_path(unescape(lines.get(PATH_PROPERTY, ""))) + path  # it came to its broker over STOMP
        send.properties = "".join(f"{name}:{text}\n" for name, text in lines.items() if name not in _NOT_PASSED_ON)
    id = text_of_bridged_id(message.message_id) if message.message_id is not None else ""
    send.bridged_from = BridgedOrigin(id, path)


def stamp_of(message: MessageCommand, user_headers: str) -> str:
    """Return the header lines of a bridged message: its producer, and whether somebody may have had it before."""
    stamp = user_headers if message.user_id is None else f"JMSXUserID:{escape(message.user_id)}\n"
    return stamp + "redelivered:true\n" if message.redelivery_counter else stamp


def with_ids(dispatch: MessageDispatch, ids: BrokerIds) -> MessageDispatch:
    """Let what a bridge is told name brokers by their ids."""
    message = dispatch.message
    if message is not None:
        told, path = message.data_structure, broker_ids_of(path_of(message.broker_path, ids), ids) or None
        if isinstance(told, ConsumerInfo | DestinationInfo) and told.broker_path:
            told = replace(told, broker_path=broker_ids_of(path_of(told.broker_path, ids), ids))
        if path != message.broker_path or told is not message.data_structure:  # others get the message, too
            dispatch.message = replace(message, broker_path=path, data_structure=told)
    return dispatch


def durable_subscriptions_info(broker: str, subscriptions: Iterable[SubscriptionIdentity]) -> BrokerSubscriptionInfo:
    """Return what tells a bridge of the durable subscriptions there are, but for those of bridges."""
    return BrokerSubscriptionInfo(
        broker_id=BrokerId(broker), broker_name=broker,
        subscription_infos=tuple([info for each in subscriptions for info in _durable_consumers(broker, each)]),
    )  # fmt: skip


def _durable_consumers(broker: str, named: SubscriptionIdentity) -> Iterator[ConsumerInfo]:
    """Yield a consumer for each topic of a durable subscription."""
    if not named.durable or named.name.startswith(BRIDGE_DURABLE_PREFIX):
        return
    for number, topic in enumerate(named.topics, _FIRST):
        yield ConsumerInfo(
            consumer_id=ConsumerId(f"{broker} durable {named.client_id} {named.name}", _NO_SESSION, number),
            destination=openwire_destination(topic.stomp), client_id=named.client_id, selector=named.selector,
            subscription_name=named.name, no_local=named.no_local, dispatch_async=True,
        )  # fmt: skip
