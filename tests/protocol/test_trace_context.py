"""Test that the trace context of a message passes unchanged, whatever way it goes, between STOMP and JMS clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from brokerapp.config import TransportConnector
from brokerapp.model.definitions import CompositeDestination, ForwardTarget, MirroredQueue, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.openwire.commands import (
    ConnectionId,
    LocalTransactionId,
    OpenWireDestination,
    Response,
    TransactionInfo,
)
from brokerapp.openwire.marshalled_values import Long, decode_map, encode_map
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.protocol.clients import StompClient
from tests.protocol.networking import duplex_pair, wait_for_demand
from tests.protocol.openwire_client import OpenWireClient, queue, topic
from tests.protocol.running_node import RunningNode

CONTEXT = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE;x:y",
    "baggage": "user=alice%20b,key=v;prop=1,back\\slash=:",
}
DLQ = "queue://ActiveMQ.DLQ"


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """Two brokers with a duplex bridge, of which the first has virtual destinations."""
    both_protocols = TransportConnector("both", "tcp", "127.0.0.1", 0)
    with duplex_pair(store, connectors=(both_protocols,)) as both:
        target = ForwardTarget(Destination.queue("composed.target"))
        composite = CompositeDestination(Destination.queue("composed"), (target,))
        both[0].define(VirtualTopic("VirtualTopic.>"), composite, MirroredQueue())
        yield both


# -- clients


def native(place: str) -> OpenWireDestination:
    kind, _, name = place.partition("://")
    return topic(name) if kind == "topic" else queue(name)


class Stomp:
    """A STOMP client that reads the trace context of what comes."""

    def __init__(self, port: int) -> None:
        self.client = StompClient(port)

    def send(self, place: str, scheduled: bool, transacted: bool) -> None:
        headers = {**CONTEXT, "persistent": "true"} | ({"AMQ_SCHEDULED_DELAY": "20"} if scheduled else {})
        if transacted:
            self.client.frame("BEGIN", transaction="t")
            headers["transaction"] = "t"
        self.client.send(Destination.parse(place).stomp, "order", **headers)
        if transacted:
            self.client.frame("COMMIT", transaction="t")

    def subscribe(self, place: str) -> None:
        self.client.subscribe(Destination.parse(place).stomp)

    def context(self) -> dict[str, str]:
        [message] = self.client.take(1)
        assert message.body == "order"
        return {name: message.headers.get(name) for name in CONTEXT}

    def leave(self) -> None:
        self.client.leave()


class Jms:
    """A client of OpenWire, as JMS clients are."""

    def __init__(self, port: int) -> None:
        self.client = OpenWireClient(port)
        self.client.producer()

    def send(self, place: str, scheduled: bool, transacted: bool) -> None:
        properties = {**CONTEXT} | ({"AMQ_SCHEDULED_DELAY": Long(20)} if scheduled else {})
        fields = {"marshalled_properties": encode_map(properties)}
        if transacted:
            fields["transaction_id"] = self._transaction(TransactionOperation.BEGIN)
        answer = self.client.ask(self.client.message(native(place), "order", **fields))
        assert type(answer) is Response, answer
        if transacted:
            self._transaction(TransactionOperation.COMMIT_ONE_PHASE)

    def _transaction(self, operation: TransactionOperation) -> LocalTransactionId:
        connection = ConnectionId(self.client.connection_id)
        id = LocalTransactionId(1, connection)
        self.client.ask(TransactionInfo(connection_id=connection, transaction_id=id, type=operation))
        return id

    def subscribe(self, place: str) -> None:
        self.client.consumer(1, native(place))

    def context(self) -> dict[str, str]:
        [dispatch] = self.client.dispatches(1)
        self.client.acknowledge(dispatch)
        found = decode_map(dispatch.message.marshalled_properties)
        return {name: found.get(name) for name in CONTEXT}

    def leave(self) -> None:
        self.client.close()


CLIENTS: dict[str, type[Stomp] | type[Jms]] = {"STOMP": Stomp, "JMS": Jms}


# -- ways


def reject(node: RunningNode, place: str) -> None:
    """A consumer rejects the message."""
    client = StompClient(node.port)
    client.subscribe(Destination.parse(place).stomp, ack="client-individual")
    client.nack(client.take(1)[0])
    client.leave()


def leave_without_ack(node: RunningNode, place: str) -> None:
    """A consumer takes the message and leaves."""
    client = StompClient(node.port)
    client.subscribe(Destination.parse(place).stomp, ack="client-individual")
    client.take(1)
    client.leave()


def move(node: RunningNode, place: str) -> None:
    """An operator moves the message."""
    at = Destination.parse(place)
    assert node.ask(lambda admin: admin.move(at, Destination.queue(f"{at.name}.moved"))) == 1


def copy(node: RunningNode, place: str) -> None:
    """An operator copies the message."""
    at = Destination.parse(place)
    assert node.ask(lambda admin: admin.copy(at, Destination.queue(f"{at.name}.copied"))) == 1


def resubmit(node: RunningNode, place: str) -> None:
    """A consumer rejects the message, and an operator resubmits the dead letter."""
    reject(node, place)
    assert node.ask(lambda admin: admin.resubmit(Destination.parse(DLQ))) == 1


@dataclass(frozen=True)
class Way:
    """Where a message is sent, what is done with it, and where it is read; `N` is a name of its own."""

    to: str = "queue://N"
    at: str = "queue://N"
    then: Callable[[RunningNode, str], None] | None = None  #: before anybody reads it
    is_scheduled: bool = False
    is_transacted: bool = False
    crosses: bool = False  #: read at the other broker


WAYS = {
    "queue": Way(),
    "topic": Way("topic://N", "topic://N"),
    "transaction": Way(is_transacted=True),
    "virtual topic": Way("topic://VirtualTopic.N", "queue://Consumer.a.VirtualTopic.N"),
    "composite queue": Way("queue://composed", "queue://composed.target"),
    "mirrored queue": Way("queue://N", "topic://VirtualTopic.Mirror.N"),
    "scheduled": Way(is_scheduled=True),
    "redelivered": Way(then=leave_without_ack),
    "dead letter": Way(at=DLQ, then=reject),
    "resubmitted": Way(then=resubmit),
    "moved": Way(at="queue://N.moved", then=move),
    "copied": Way(at="queue://N.copied", then=copy),
    "bridge": Way(crosses=True),
}


@pytest.mark.parametrize(
    ("producer", "consumer"), [("STOMP", "STOMP"), ("STOMP", "JMS"), ("JMS", "STOMP"), ("JMS", "JMS")]
)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_trace_context_reaches_the_consumer_as_the_producer_sent_it(pair, name, way, producer, consumer):
    to, at = way.to.replace("N", name), way.at.replace("N", name) if way.at != DLQ else DLQ
    sender, reader = CLIENTS[producer](pair[0].port), CLIENTS[consumer](pair[way.crosses].port)
    if way.then is None:
        reader.subscribe(at)
    if way.crosses:
        wait_for_demand(pair[0], at)
    sender.send(to, way.is_scheduled, way.is_transacted)
    if way.then is not None:
        way.then(pair[0], to)
        reader.subscribe(at)
    assert reader.context() == CONTEXT
    for each in (sender, reader):
        each.leave()


@pytest.mark.parametrize(("producer", "consumer"), [("STOMP", "JMS"), ("JMS", "STOMP")])
def test_a_message_without_trace_context_gets_none(pair, name, producer, consumer):
    reader = CLIENTS[consumer](pair[0].port)
    reader.subscribe(f"queue://{name}")
    sender = CLIENTS[producer](pair[0].port)
    if isinstance(sender, Stomp):
        sender.client.send(f"/queue/{name}", "order")
        [dispatch] = reader.client.dispatches(1)
        assert not dispatch.message.marshalled_properties
    else:
        sender.client.send(queue(name), "order")
        [message] = reader.client.take(1)
        assert not CONTEXT.keys() & message.headers.keys()
    for each in (sender, reader):
        each.leave()
