"""Test what a bridge that speaks OpenWire, as those of ActiveMQ do, may say and is told. See also tests/interop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from brokerapp.openwire.commands import (
    BrokerId,
    BrokerInfo,
    BrokerSubscriptionInfo,
    ConnectionControl,
    ConnectionError,
    ConsumerId,
    ConsumerInfo,
    ExceptionResponse,
    MessageCommand,
    MessageDispatch,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import decode_map, encode_map
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.protocol.clients import StompClient
from tests.protocol.openwire_bridge import OpenWireBridge
from tests.protocol.openwire_client import QUIET, OpenWireSocket, queue, topic
from tests.protocol.running_node import RunningNode, node_of
from tests.waiting import wait_until

_numbers = itertools.count(1)
USERS = """
  <plugins>
    <simpleAuthenticationPlugin><users>
      <authenticationUser username="bridge" password="p" groups="bridges"/>
      <authenticationUser username="app" password="p" groups="apps"/>
    </users></simpleAuthenticationPlugin>
    <authorizationPlugin><map><authorizationMap><authorizationEntries>
      <authorizationEntry queue=">" read="apps,bridges" write="apps,bridges" admin="apps,bridges"/>
      <authorizationEntry topic=">" read="apps,bridges" write="apps,bridges" admin="bridges"/>
    </authorizationEntries></authorizationMap></map></authorizationPlugin>
  </plugins>"""


def xml(more: str = "") -> str:
    """A broker with one connector."""
    connector = '<transportConnector name="openwire" uri="tcp://127.0.0.1:0"/>'
    return (
        f'<broker brokerName="joined-{next(_numbers)}">{more}'
        f"<transportConnectors>{connector}</transportConnectors></broker>"
    )


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(xml(), store) as running:
        yield running


@pytest.fixture
def bridge_to(node) -> Iterator[Callable[..., OpenWireBridge]]:
    """Makes bridges to the node; they end with the test."""
    with ExitStack() as stack:
        yield lambda *said, **more: stack.enter_context(OpenWireBridge(node.port, *said, **more))


def test_a_message_that_a_bridge_passes_on_keeps_its_id_and_the_brokers_that_it_passed(node, bridge_to):
    bridge = bridge_to("classic", "ID:7")
    message = bridge.bridged(queue("kept"), "m", 5, "ID:far", "ID:7", user_id="bob", redelivery_counter=2)
    assert type(bridge.ask(message)) is Response
    consumer = StompClient(node.port)
    consumer.subscribe("/queue/kept", ack="client-individual")
    [got] = consumer.take()
    assert got.headers["message-id"] == "ID:producer-1:1:-1:1:5"
    assert (got.headers["JMSXUserID"], got.headers["redelivered"]) == ("bob", "true")
    paths = node.look(
        lambda: [
            entry.message.path
            for client in node.node.broker.clients.values()
            for each in client.subscriptions.values()
            for entry in each.unacked.values()
        ]
    )
    assert ("ID:far", "classic") in paths
    consumer.ack(got)
    consumer.leave()


def test_the_trace_context_passes_over_a_bridge_of_openwire_unchanged_both_ways(node, bridge_to):
    bridge = bridge_to("classic", "ID:9")
    context = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1,b=x:y",
               "baggage": "user=alice%20b;p=1"}  # fmt: skip
    client = StompClient(node.port)
    client.subscribe("/queue/traced.in")
    message = bridge.bridged(queue("traced.in"), "m", 1, "ID:9", marshalled_properties=encode_map(context))
    assert type(bridge.ask(message)) is Response
    [got] = client.take()
    assert {name: got.headers.get(name) for name in context} == context
    bridge.consumer(1, queue("traced.out"))
    client.send("/queue/traced.out", "m", **context)
    [dispatch] = bridge.dispatches(1)
    passed_on = decode_map(dispatch.message.marshalled_properties)
    assert {name: passed_on.get(name) for name in context} == context
    client.leave()


def test_what_a_broker_hands_over_again_after_it_was_started_anew_is_kept_once(node, bridge_to):
    for id in ("ID:7", "ID:8"):
        bridge = bridge_to("classic", id)
        for destination in (queue("once"), topic("once")):
            assert type(bridge.ask(bridge.bridged(destination, "m", 1, id))) is Response
        bridge.close()
        wait_until(lambda: not node.look(node.node.broker.bridges.incoming), "the end of the bridge")
    assert node.bodies("once") == ["m"]


def test_the_bridge_of_a_broker_is_among_those_that_operators_see(node, bridge_to):
    bridge = bridge_to("seen")
    bridge.ask(bridge.bridged(queue("shown"), "m", 1, "ID:1"))
    bridge.ask(bridge.bridged(queue("shown"), "m", 1, "ID:1"))
    [shown] = [each for each in node.look(node.node.broker.bridges.incoming) if each.broker == "seen"]
    assert (shown.client_id, shown.received, shown.duplicates) == ("nc_seen_outbound", 2, 1)


def test_a_bridge_replaces_its_own_dead_connection_and_that_of_no_other_client(node, bridge_to):
    former, latter = bridge_to("again"), bridge_to("again")
    assert type(latter.answer) is Response
    assert former.is_closed()
    with OpenWireSocket(node.port) as client:
        client.agree(WireFormatOptions())
        assert isinstance(client.connect(client_id="nc_again_outbound"), ExceptionResponse)
    assert type(latter.ask(latter.bridged(queue("a"), "m", 9, "ID:1"))) is Response


@pytest.mark.parametrize("is_id", [False, True])
def test_a_broker_of_the_name_of_this_one_is_told_so(node, is_id):
    name, id = ("other", node.name) if is_id else (node.name, "ID:1")
    with OpenWireSocket(node.port) as client:
        client.agree(WireFormatOptions())
        client.write(BrokerInfo(broker_id=BrokerId(id), broker_name=name, network_connection=True))
        assert "needs a brokerName of its own" in client.next(ConnectionError).exception.message


def test_a_bridge_is_not_told_of_cluster_brokers_of_which_that_of_an_activemq_would_warn(bridge_to):
    bridge = bridge_to("unaware")
    assert type(bridge.answer) is Response
    assert bridge.next(ConnectionControl, seconds=QUIET) is None


def test_only_who_may_be_a_bridge_is_one(store):
    with node_of(xml(USERS), store) as node:
        with OpenWireBridge(node.port, "classic", login=("bridge", "p")) as bridge:
            assert type(bridge.ask(bridge.bridged(queue("a"), "m", 1, "ID:1"))) is Response
        with OpenWireBridge(node.port, "classic", login=("app", "p")) as bridge:
            assert "User app may not be a bridge of classic" in bridge.answer.exception.message


# -- the bridge back of a duplex connection


@pytest.mark.parametrize(
    "attributes", [{"prefetchSize": "many"}, {"excludedDestinations": "[queue://]"}, {"messageTTL": "9" * 5_000}]
)
def test_a_duplex_bridge_with_attributes_that_mean_nothing_is_told_so_and_not_that_it_is_connected(
    node, bridge_to, attributes
):
    bridge = bridge_to("odd", duplex="true", **attributes)
    assert isinstance(bridge.answer, ExceptionResponse)
    assert "attributes that cannot be read" in bridge.answer.exception.message
    assert bridge.is_closed()


def test_demand_that_means_nothing_does_not_keep_messages_from_other_consumers(node, bridge_to, name):
    bridge = bridge_to("demanding", duplex="true")
    bridge.next(ConsumerInfo)  # for advisories
    many = tuple(BrokerId(f"ID:{number}") for number in range(3_000))
    odd = [
        ConsumerInfo(),
        ConsumerInfo(consumer_id=ConsumerId("c", 1, 1)),
        ConsumerInfo(consumer_id=ConsumerId("c", 1, 2), destination=queue("")),
        ConsumerInfo(consumer_id=ConsumerId("c", 1, 3), destination=queue("a..b,>,/,topic://")),
        ConsumerInfo(consumer_id=ConsumerId("c", 1, 4), destination=queue("q"), selector="a = = 1"),
        ConsumerInfo(consumer_id=ConsumerId("c", 1, 5), destination=queue("q"), broker_path=many),
        ConsumerInfo(consumer_id=ConsumerId("c", 1, 6), destination=queue("q"), priority=-128, selector="x" * 60_000),
        ConsumerInfo(consumer_id=ConsumerId("c", 1, 7), destination=topic("t"), subscription_name="\n:\0"),
        RemoveInfo(), RemoveInfo(object_id=ConsumerId("nobody", 1, 1)), RemoveSubscriptionInfo(),
    ]  # fmt: skip
    odd.append(ConsumerInfo(consumer_id=ConsumerId("c", 1, 8), destination=queue(name)))
    about = topic("ActiveMQ.Advisory.Consumer.Queue.q")
    for each in odd:
        message = bridge.message(about, "", content=None, data_type=t.MESSAGE, data_structure=each)
        assert type(bridge.ask(message)) is Response
    sender = StompClient(node.port)
    sender.send(f"/queue/{name}", "m", persistent="true")
    assert bridge.next(MessageCommand).destination == queue(name)
    sender.leave()


# -- demand


def test_a_bridge_is_told_of_consumers_that_come_and_go_and_of_nothing_that_only_sluice_knows(node, bridge_to):
    early = StompClient(node.port)
    early.subscribe("/queue/demand.early", id="1")
    bridge = bridge_to("classic")
    bridge.consumer(1, topic("ActiveMQ.Advisory.Consumer.>,ActiveMQ.Advisory.TempQueue"))
    early.subscribe("/queue/demand.late", id="2")
    early.unsubscribe("2")
    told = [each.message.data_structure for each in bridge.dispatches(3)]
    assert all(each is not None for each in told)
    names = [getattr(each, "destination", None) and each.destination.physical_name for each in told]
    assert names == ["demand.early", "demand.late", None]
    early.leave()


def test_demand_of_brokers_behind_this_one_names_them_by_their_ids(node, bridge_to):
    bridge_to("far", "ID:far")
    behind = StompClient(node.port, **{"sluice-broker": "far", "client-id": "behind"})
    behind.subscribe("/queue/behind", **{"sluice-to": "far", "sluice-path": "far", "sluice-message-ttl": "1"})
    bridge = bridge_to("classic", "ID:2")
    bridge.consumer(1, topic("ActiveMQ.Advisory.Consumer.Queue.behind"))
    told = bridge.next(MessageDispatch).message.data_structure
    assert isinstance(told, ConsumerInfo)
    assert told.network_subscription
    assert told.broker_path == (BrokerId("ID:far"),)
    behind.leave()


@pytest.mark.parametrize(
    ("version", "wish", "is_told"), [(12, "true", True), (12, "false", False), (11, "true", False)]
)
def test_a_bridge_that_synchronizes_durable_subscriptions_is_told_which_there_are(
    node, bridge_to, version, wish, is_told
):
    owner = StompClient(node.port, **{"client-id": "owner"})
    owner.subscribe("/topic/durable", **{"activemq.subscriptionName": "kept", "selector": "a > 1"})
    owner.leave()
    bridge = bridge_to("classic", version=version, syncDurableSubs=wish)
    told = bridge.next(BrokerSubscriptionInfo, seconds=20.0 if is_told else 0.3)
    if not is_told:
        assert told is None
        return
    [info] = [each for each in told.subscription_infos if each.subscription_name == "kept"]
    assert (info.client_id, info.destination) == ("owner", topic("durable"))
    assert info.selector.endswith("a > 1")
    assert told.broker_name == node.name
