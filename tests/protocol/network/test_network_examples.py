"""Test the examples of the documentation of networks of brokers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.config.reader import parse_config
from brokerapp.model.definitions import Definitions, VirtualTopic
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.network.options.definition import NetworkConnector
from tests.protocol.networking import QUICK, bridged, running, start, to, wait_for_demand
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

QUEUE, TOPIC = Destination.queue, Destination.topic


@pytest.fixture(scope="module")
def b(store) -> Iterator[RunningNode]:
    """The remote broker of all examples."""
    node = start(store)
    yield node
    node.stop()


def written(xml: str, port: int) -> NetworkConnector:
    """The connector of an example, leading to this port."""
    text = (
        f'<broker xmlns="http://activemq.apache.org/schema/core"><networkConnectors>{xml}</networkConnectors></broker>'
    )
    [connector] = parse_config(text, {}).network_connectors
    return replace(connector, uri=f"static:(tcp://127.0.0.1:{port}){QUICK}")


def test_without_conduit_subscriptions_three_consumers_get_ten_of_thirty_messages_each(store, b, connect, name):
    with running(store, to(b.port, conduitSubscriptions="false")) as a:
        queue = f"/queue/{name}"
        clients = [connect(port=node.port) for node in (a, b, b)]
        for client in clients:
            client.subscribe(queue)
        wait_for_demand(a, f"queue://{name}", f"queue://{name}")
        sender = connect(port=a.port)
        for number in range(30):
            sender.send(queue, str(number), persistent="true")
        wait_until(lambda: sum(each.messages.qsize() for each in clients) == 30, "30 messages")
        assert [each.messages.qsize() for each in clients] == [10, 10, 10]


@pytest.mark.scenario("NB-12")
def test_what_is_included_excluded_and_included_statically(store, b, connect):
    example = """<networkConnector uri="static:(tcp://localhost:61617)" name="bridge" conduitSubscriptions="true"
        decreaseNetworkConsumerPriority="false">
      <dynamicallyIncludedDestinations>
        <queue physicalName="include.test.foo"/><topic physicalName="include.test.bar"/>
      </dynamicallyIncludedDestinations>
      <excludedDestinations>
        <queue physicalName="exclude.test.foo"/><topic physicalName="exclude.test.bar"/>
      </excludedDestinations>
      <staticallyIncludedDestinations>
        <queue physicalName="always.include.queue"/><topic physicalName="always.include.topic"/>
      </staticallyIncludedDestinations>
    </networkConnector>"""
    crossing = ("/queue/include.test.foo", "/topic/include.test.bar", "/topic/always.include.topic")
    staying = ("/queue/exclude.test.foo", "/topic/exclude.test.bar", "/queue/other", "/topic/other")
    with running(store, written(example, b.port)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=b.port)
        for number, each in enumerate((*crossing, *staying)):
            consumer.subscribe(each, id=str(number))
        wait_for_demand(a, "queue://include.test.foo", "topic://include.test.bar", "topic://always.include.topic")
        sender = connect(port=a.port)
        for each in (*staying, *crossing, "/queue/always.include.queue"):
            sender.send(each, each, persistent="true")
        assert sorted(consumer.bodies(3)) == sorted(crossing)
        wait_until(lambda: b.bodies("always.include.queue") == ["/queue/always.include.queue"], "what always crosses")
        assert consumer.has_no_more()
        assert (a.bodies("exclude.test.foo"), a.bodies("other")) == (["/queue/exclude.test.foo"], ["/queue/other"])


@pytest.mark.scenario("NB-31")
@pytest.mark.parametrize("included", ["dynamically_included", "statically_included"])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_what_wildcards_include_crosses_and_nothing_else_does(store, b, connect, name, included, kind):
    patterns = {included: (Destination(DestinationKind(kind), f"global.{name}.>"),)}
    options = {"staticBridge": "true"} if included == "statically_included" else {}
    with running(store, replace(to(b.port, **options), **patterns)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        plain, wide = connect(port=b.port), connect(port=b.port)
        for each in ("global", "local"):
            plain.subscribe(f"/{kind}/{each}.{name}.x", id=each)
            wide.subscribe(f"/{kind}/{each}.{name}.wide.>", id=each)
        wanted = [".x", ".wide.>"] if options == {} else [".>"]
        wait_for_demand(a, *[f"{kind}://global.{name}{each}" for each in wanted])
        sender = connect(port=a.port)
        for each in ("local", "global"):
            sender.send(f"/{kind}/{each}.{name}.x", each, persistent="true")
            sender.send(f"/{kind}/{each}.{name}.wide.y", each, persistent="true")
        for consumer in (plain, wide):
            assert consumer.bodies() == ["global"]
            assert consumer.has_no_more()


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_of_what_the_consumer_of_a_wider_pattern_wants_that_part_crosses_which_is_included(
    store, b, connect, name, kind
):
    included = (
        Destination(DestinationKind(kind), f"{name}.in.>"),
        Destination(DestinationKind(kind), f"*.both.{name}"),
    )
    with running(store, replace(to(b.port), dynamically_included=included)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        wide = connect(port=b.port)
        wide.subscribe(f"/{kind}/{name}.>", id="wide")
        wide.subscribe(f"/{kind}/all.*.{name}", id="crossed")
        wait_for_demand(a, f"{kind}://{name}.in.>", f"{kind}://all.both.{name}")
        sender = connect(port=a.port)
        for each in (f"{name}.out", f"{name}.in.x", f"all.neither.{name}", f"all.both.{name}"):
            sender.send(f"/{kind}/{each}", each, persistent="true")
        assert sorted(wide.bodies(2)) == sorted([f"{name}.in.x", f"all.both.{name}"])
        assert wide.has_no_more()


@pytest.mark.parametrize("kind", ["queue", "topic", "durable"])
def test_what_is_excluded_stays_also_when_a_pattern_that_is_consumed_there_takes_it_in(store, b, connect, name, kind):
    kept = Destination(DestinationKind.QUEUE if kind == "queue" else DestinationKind.TOPIC, f"{name}.kept.>")
    with running(store, replace(to(b.port), excluded=(kept,))) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=b.port, **{"client-id": name})
        named = {"activemq.subscriptionName": "all"} if kind == "durable" else {}
        consumer.subscribe(f"{kept.stomp.removesuffix('kept.>')}>", **named)
        wait_for_demand(a, f"{kept.kind.value}://{name}.>")
        sender = connect(port=a.port)
        for each in ("kept.x", "sent"):
            sender.send(kept.stomp.removesuffix("kept.>") + each, each, persistent="true")
        assert consumer.bodies() == ["sent"]
        assert consumer.has_no_more()
        if kind == "queue":
            assert a.bodies(f"{name}.kept.x") == ["kept.x"]
        consumer.unsubscribe()


@pytest.mark.scenario("NB-32")
@pytest.mark.parametrize("how", ['staticBridge="true"', 'destinationFilter="NO_DESTINATION"'])
def test_a_pure_static_network_heeds_no_consumer_and_passes_on_what_is_listed_without_any(store, b, connect, name, how):
    example = f"""<networkConnector uri="static:(tcp://host)" {how}>
      <staticallyIncludedDestinations><queue physicalName="always.{name}"/></staticallyIncludedDestinations>
    </networkConnector>"""
    with running(store, written(example, b.port)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=b.port)
        consumer.subscribe(f"/queue/{name}")
        sender = connect(port=a.port)
        for queue in (name, f"always.{name}"):
            sender.send(f"/queue/{queue}", queue, persistent="true")
        wait_until(lambda: b.bodies(f"always.{name}") == [f"always.{name}"], "what always crosses")
        assert a.bodies(name) == [name]
        assert consumer.has_no_more()


def test_without_advisories_only_what_is_included_statically_crosses(store, connect, name):
    listed = QUEUE(f"always.{name}")
    with (
        running(store, advisory_support=False) as b,
        running(store, replace(to(b.port), statically_included=(listed,))) as a,
    ):
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=b.port)
        consumer.subscribe(f"/queue/{name}", id="1")
        consumer.subscribe(listed.stomp, id="2")
        sender = connect(port=a.port)
        for queue in (QUEUE(name), listed):
            sender.send(queue.stomp, queue.name, persistent="true")
        assert consumer.bodies() == [listed.name]
        assert a.bodies(name) == [name]


@pytest.mark.scenario("NB-60")
def test_two_duplex_connectors_with_names_of_their_own_lead_to_one_broker(store, b, connect, name):
    topics = [TOPIC(f"outgoing.{system}.{name}") for system in ("System1", "System2")]
    connectors = [
        replace(to(b.port, name=f"SYSTEM{number}", duplex="true"), dynamically_included=(topic,))
        for number, topic in enumerate(topics, 1)
    ]
    with running(store, *connectors) as a:
        wait_until(
            lambda: a.look(lambda: [len(way.bridges) for way in a.node.network.connections]) == [2, 2], "four bridges"
        )
        for here, there in ((a, b), (b, a)):
            consumer, sender = connect(port=there.port), connect(port=here.port)
            for topic in topics:
                consumer.subscribe(topic.stomp, id=topic.name)
            wait_for_demand(a, *map(str, topics))
            for topic in topics:
                sender.send(topic.stomp, topic.name)
            assert sorted(consumer.bodies(2)) == sorted(each.name for each in topics)
            assert consumer.has_no_more()
            consumer.leave()


@pytest.mark.scenario("NB-18")
def test_consumers_with_selectors_at_two_brokers_get_theirs_without_conduit(store, b, connect, name):
    with (
        running(store) as c,
        running(
            store,
            to(b.port, name="b", conduitSubscriptions="false"),
            to(c.port, name="c", conduitSubscriptions="false"),
        ) as a,
    ):
        clients = {"red": connect(port=b.port), "blue": connect(port=c.port)}
        for colour, client in clients.items():
            client.subscribe(f"/queue/{name}", selector=f"colour = '{colour}'")
        wait_for_demand(a, f"queue://{name}", f"queue://{name}")
        sender = connect(port=a.port)
        for number in range(10):
            sender.send(f"/queue/{name}", str(number), persistent="true", colour=("red", "blue")[number % 2])
        assert clients["red"].bodies(5) == list("02468")
        assert clients["blue"].bodies(5) == list("13579")


def test_under_conduit_subscriptions_selectors_are_read_where_messages_come(store, b, connect, name):
    with running(store) as c, running(store, to(b.port, name="b"), to(c.port, name="c")) as a:
        consumers = {"red": connect(port=b.port), "blue": connect(port=c.port)}
        for colour, client in consumers.items():
            client.subscribe(f"/queue/{name}", selector=f"colour = '{colour}'")
        wait_for_demand(a, f"queue://{name}", f"queue://{name}")
        sender = connect(port=a.port)
        for number in range(10):
            sender.send(f"/queue/{name}", str(number), persistent="true", colour="red")
        wait_until(
            lambda: (a.depth(name), b.depth(name)) == (0, 0), "all across, and what came to the red one consumed"
        )
        came = consumers["red"].bodies(consumers["red"].messages.qsize())
        assert 0 < len(came) < 10
        assert sorted([*came, *c.bodies(name)]) == list("0123456789")  # the rest stays where nobody wants it


@pytest.mark.scenario("NB-26")
def test_a_virtual_topic_that_is_local_makes_no_copies_of_what_bridges_bring(store, connect, name):
    topic, queue = f"VirtualTopic.{name}", f"Consumer.X.VirtualTopic.{name}"
    of_b = Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>", local=True),))
    of_a = Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>"),))
    with running(store, definitions=of_b) as b, running(store, to(b.port), definitions=of_a) as a:
        consumer, subscriber = connect(port=b.port), connect(port=b.port)
        consumer.subscribe(f"/queue/{queue}")
        subscriber.subscribe(f"/topic/{topic}")
        wait_for_demand(a, f"queue://{queue}", f"topic://{topic}")
        for node in (a, b):
            connect(port=node.port).send(f"/topic/{topic}", f"from {node.name}", persistent="true")
        for each in (consumer, subscriber):
            assert sorted(each.bodies(2)) == sorted(f"from {node.name}" for node in (a, b))
            assert each.has_no_more()
        wait_until(lambda: (a.depth(queue), b.depth(queue)) == (0, 0), "nothing left")


def test_the_messages_of_a_group_cross_one_bridge_to_one_consumer_however_small_the_prefetch(store, b, connect, name):
    with running(store, to(b.port, prefetchSize="2")) as a:
        queue, consumer, other = f"/queue/{name}", connect(port=b.port), connect(port=b.port)
        consumer.subscribe(queue)
        wait_for_demand(a, f"queue://{name}")
        sender = connect(port=a.port)
        for number in range(12):
            sender.send(queue, str(number), persistent="true", JMSXGroupID=f"g{number % 2}")
        assert consumer.bodies(12) == [str(number) for number in range(12)]
        other.subscribe(queue)
        for number in range(4):
            sender.send(queue, str(number), persistent="true", JMSXGroupID=f"g{number % 2}")
        assert consumer.bodies(4) == list("0123")
        assert other.has_no_more()
