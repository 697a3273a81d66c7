"""Test rows of ActiveMQ's own tests of networks that no other test covers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.config import Authentication, User
from brokerapp.model.definitions import Definitions, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import BridgeConnectionState
from brokerapp.model.settings import SelectorCacheSettings
from tests.protocol.networking import (
    bridged,
    bridges_of,
    destinations_of,
    running,
    to,
    wait_for_demand,
    wait_for_no_demand,
)
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

Chain = tuple[RunningNode, RunningNode, RunningNode]


@pytest.fixture(scope="module")
def chain(store) -> Iterator[Chain]:
    """A, B and C; bridges in both directions between A and B, and B and C, may be crossed by all there is."""
    both = {"duplex": "true", "networkTTL": "3"}
    with running(store) as c, running(store, to(c.port, **both)) as b, running(store, to(b.port, **both)) as a:
        wait_until(lambda: bridged(a) and bridged(b), "the bridges")
        yield a, b, c


def under_way(node: RunningNode) -> int:
    """Messages that its bridges passed on and that are not confirmed yet."""
    stats = node.ask(lambda admin: admin.networks.stats())
    return sum(each.under_way for one in stats.connectors for way in one.ways for each in way.bridges)


def held(node: RunningNode, destination: Destination) -> int:
    """Bytes of messages in memory, and messages that consumers of a destination have, or that wait for them."""

    def found() -> int:
        broker = node.node.broker
        consumers = [each for client in broker.clients.values() for each in client.subscriptions.values()]
        mine = [each for each in consumers if destination in each.destinations]
        return broker.quotas.held_bytes + sum(len(each.unacked) + len(each.pending) for each in mine)

    return node.look(found)


@pytest.mark.scenario("NB-41", "NB-42", "NB-43")
def test_a_request_is_answered_over_three_brokers_and_nothing_of_its_answers_is_left(chain, connect, name):
    a, b, c = chain
    client, service = connect(port=a.port), connect(port=c.port)
    service.subscribe(f"/queue/{name}")
    wait_for_demand(a, f"queue://{name}")
    client.subscribe("/temp-queue/answers")
    client.send(f"/queue/{name}", "question", persistent="true", **{"reply-to": "/temp-queue/answers"})
    [request] = service.take()
    service.send(request.headers["reply-to"], f"answer to {request.body}")
    assert client.bodies() == ["answer to question"]
    answers = request.headers["reply-to"].rpartition("/")[2]

    def crosses(node: RunningNode) -> bool:
        return any(answers in each for each in destinations_of(node))

    assert crosses(a)
    assert crosses(b)
    client.leave()
    wait_until(lambda: not crosses(a) and not crosses(b), "the end of the demand for answers")
    service.send(request.headers["reply-to"], "too late", wait=False)  # to nobody; the bridges live
    again = connect(port=a.port)
    again.send(f"/queue/{name}", "again", persistent="true")
    assert service.bodies() == ["again"]
    assert bridged(a)
    assert bridged(b)


@pytest.mark.scenario("NB-37")
def test_demand_ends_along_the_chain_with_the_last_consumer_however_it_goes(chain, connect, name):
    a, b, c = chain
    polite, rude = connect(port=c.port), connect(port=c.port)
    for each in (polite, rude):
        each.subscribe(f"/queue/{name}")
    wait_for_demand(a, f"queue://{name}")
    polite.leave()
    connect(port=a.port).send(f"/queue/{name}", "crosses", persistent="true")
    assert rude.bodies() == ["crosses"]
    rude.connection.transport.disconnect_socket()
    for each in (b, a):
        wait_for_no_demand(each, f"queue://{name}")


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B, also for advisories about producers of `watched`."""
    watched = Destination.topic("ActiveMQ.Advisory.Producer.Topic.watched")
    with running(store) as b:
        connector = replace(to(b.port, duplex="true"), statically_included=(watched,))
        with running(store, connector) as a:
            wait_until(lambda: bridged(a), "the bridge")
            yield a, b


@pytest.mark.scenario("NB-15")
@pytest.mark.parametrize("kind", ["queue", "topic", "durable"])
def test_nothing_is_left_in_memory_of_what_crossed(pair, connect, name, kind):
    a, b = pair
    destination = f"/{'queue' if kind == 'queue' else 'topic'}/{name}"
    consumer, sender = connect(port=b.port, **{"client-id": name}), connect(port=a.port)
    consumer.subscribe(destination, **({"activemq.subscriptionName": name} if kind == "durable" else {}))
    wait_for_demand(a, str(Destination.parse(destination)))
    for number in range(100):
        sender.send(destination, "x" * 1000, persistent="true", wait=number == 99)
    consumer.take(100)
    wait_until(lambda: sum(held(node, Destination.parse(destination)) for node in pair) == 0, "nothing is held")
    wait_until(lambda: not under_way(a), "the receipts")


@pytest.mark.scenario("NB-39")
def test_temporary_queues_of_either_broker_are_told_of_at_both_while_they_are_consumed(pair, connect):
    listeners = [connect(port=node.port) for node in pair]
    for each in listeners:
        each.subscribe("/topic/ActiveMQ.Advisory.TempQueue", **{"transformation": "jms-advisory-json"})
    owners = [connect(port=node.port) for node in pair for _ in range(5)]
    for owner in owners:
        for number in range(3):
            owner.subscribe(f"/temp-queue/{number}", id=str(number))
    for each in listeners:
        told = each.take(2 * 5 * 3)
        assert all('"operationType":0' in one.body for one in told)
        assert len({json.loads(one.body)["DestinationInfo"]["destination"]["string"] for one in told}) == 2 * 5 * 3
    for owner in owners:
        owner.leave()
    for each in listeners:
        assert all('"operationType":1' in one.body for one in each.take(2 * 5 * 3))
        assert each.has_no_more()


@pytest.mark.scenario("NB-40")
def test_an_answer_that_meets_a_temporary_queue_which_is_gone_ends_no_bridge(pair, connect, name):
    a, b = pair
    asking, answering = connect(port=a.port), connect(port=b.port)
    answering.subscribe(f"/queue/{name}")
    wait_for_demand(a, f"queue://{name}")
    asking.subscribe("/temp-queue/answers")
    asking.send(f"/queue/{name}", "question", persistent="true", **{"reply-to": "/temp-queue/answers"})
    [request] = answering.take()
    back = a.look(lambda: a.node.network.connections[0].bridges[1])
    a.look(lambda: setattr(back, "_on_advisory", lambda _: None))  # it does not hear that they are gone
    for id in [
        each
        for each in a.look(lambda: dict(back._target.connection.on_message_by_subscription))
        if each.endswith("demand")
    ]:
        a.look(lambda id=id: back._target.connection.on_message_by_subscription.update({id: lambda _: None}))
    refused = back.counters.refused
    asking.leave()
    answering.send(request.headers["reply-to"], "too late", persistent="true")
    wait_until(lambda: back.counters.refused == refused + 1, "the refusal")
    dead = connect(port=b.port)
    dead.subscribe("/queue/ActiveMQ.DLQ")
    assert dead.bodies() == ["too late"]
    connect(port=a.port).send(f"/queue/{name}", "goes on", persistent="true")
    assert answering.bodies() == ["goes on"]
    a.ask(lambda admin: admin.networks.stop("bridge"))
    a.ask(lambda admin: admin.networks.start("bridge"))
    wait_until(lambda: bridged(a), "a bridge that hears")


@pytest.mark.scenario("NB-48")
def test_advisories_cross_only_where_they_are_included_statically(pair, connect):
    a, b = pair
    listener = connect(port=b.port)
    for topic in ("watched", "unwatched"):
        listener.subscribe(f"/topic/ActiveMQ.Advisory.Producer.Topic.{topic}", id=topic)
    sender = connect(port=a.port)
    for topic in ("unwatched", "watched"):
        sender.send(f"/topic/{topic}", "m")
    [told] = listener.take()
    assert told.headers["destination"] == "/topic/ActiveMQ.Advisory.Producer.Topic.watched"
    assert told.headers["originBrokerName"] == a.name
    sender.leave()
    assert len(listener.take()) == 1
    assert listener.has_no_more()


@pytest.mark.scenario("NB-61")
def test_operators_see_both_ends_of_a_duplex_bridge_again_after_either_broker_started_anew(store):
    with running(store) as b, running(store, to(b.port, name="duplex", duplex="true")) as a:

        def seen() -> bool:
            [connector] = a.ask(lambda admin: admin.networks.stats()).connectors
            incoming = b.ask(lambda admin: admin.networks.stats()).incoming
            bridges = [(each.source, each.target) for way in connector.ways for each in way.bridges]
            is_up = [way.state for way in connector.ways] == [BridgeConnectionState.CONNECTED]
            return (
                is_up and bridges == [(a.name, b.name), (b.name, a.name)] and [x.broker for x in incoming] == [a.name]
            )

        wait_until(seen, "both ends")
        a.restart()
        wait_until(seen, "both ends after A started anew")
        b.look(lambda: [client.sink.abort() for client in list(b.node.broker.clients.values())])
        wait_until(
            lambda: a.ask(lambda admin: admin.networks.stats()).connectors[0].ways[0].connections == 2, "a new link"
        )
        wait_until(seen, "both ends after B lost it")


@pytest.mark.scenario("NB-52")
@pytest.mark.parametrize("odd", ["a:b", "with space", "50%", "ünï,cödé", "x_inbound_y"])
def test_brokers_of_odd_names_are_bridged(store, connect, name, odd):
    with running(store, name=f"{odd} far") as b, running(store, to(b.port), name=f"{odd} near") as a:
        consumer, subscriber = connect(port=b.port), connect(port=b.port, **{"client-id": name})
        consumer.subscribe(f"/queue/{name}")
        subscriber.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "s"})
        wait_for_demand(a, f"queue://{name}", f"topic://{name}")
        sender = connect(port=a.port)
        for kind in ("queue", "topic"):
            sender.send(f"/{kind}/{name}", kind, persistent="true")
        assert (consumer.bodies(), subscriber.bodies()) == (["queue"], ["topic"])


@pytest.mark.scenario("NB-62")
def test_a_bridge_for_the_time_drains_a_queue_to_another_broker_in_its_order(store, connect, name):
    sent = [str(number) for number in range(200)]
    with running(store) as b, running(store) as a:
        sender = connect(port=a.port)
        for each in sent:
            sender.send(f"/queue/{name}", each, wait=each == sent[-1], persistent="true")
        drain = {**to(b.port, staticBridge="true").to_json(), "statically_included": [f"queue://{name}"]}
        a.ask(lambda admin: admin.networks.put_connector(drain))
        wait_until(lambda: (a.depth(name), b.depth(name)) == (0, len(sent)), "all there, none here")
        a.ask(lambda admin: admin.networks.remove_connector("bridge"))
        assert b.bodies(name) == sent


@pytest.mark.scenario("NB-70")
def test_who_sent_a_message_is_told_behind_a_bridge_too(store, connect, name):
    users = Authentication((User("ann", "a", frozenset({"users"})), User("link", "l", frozenset({"users"}))))
    told = {"authentication": users, "populate_jmsx_user_id": True}
    with running(store, **told) as b, running(store, to(b.port, userName="link", password="l"), **told) as a:
        consumer = connect(port=b.port, login="ann", passcode="a")
        consumer.subscribe(f"/queue/{name}")
        wait_for_demand(a, f"queue://{name}")
        connect(port=a.port, login="ann", passcode="a").send(f"/queue/{name}", "mine", persistent="true")
        [message] = consumer.take()
        assert message.headers["JMSXUserID"] == "ann"


@pytest.mark.scenario("NB-27", "NB-28", "NB-29")
def test_a_selector_aware_virtual_topic_copies_for_consumers_of_another_broker_what_they_take(store, connect, name):
    topic, queue = f"VirtualTopic.{name}", f"Consumer.X.VirtualTopic.{name}"
    aware = Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>", selector_aware=True),))
    queues = Destination.queue("Consumer.*.VirtualTopic.>")
    with (
        running(store) as b,
        running(
            store, replace(to(b.port, conduitSubscriptions="false"), dynamically_included=(queues,)), definitions=aware
        ) as a,
    ):
        red, sender = connect(port=b.port), connect(port=a.port)
        red.subscribe(f"/queue/{queue}", selector="colour = 'red'")
        wait_for_demand(a, f"queue://{queue}")

        def publish() -> None:
            for number in range(6):
                colour = ("blue", "red")[number % 2]
                sender.send(f"/topic/{topic}", f"{colour} {number}", persistent="true", colour=colour)

        publish()  # what nobody takes comes first
        assert red.bodies(3) == ["red 1", "red 3", "red 5"]
        wait_until(lambda: (a.depth(queue), b.depth(queue)) == (0, 0), "nothing is left of the others")
        every = connect(port=b.port)
        every.subscribe(f"/queue/{queue}")
        wait_for_demand(a, f"queue://{queue}", f"queue://{queue}")
        publish()
        wait_until(lambda: red.messages.qsize() + every.messages.qsize() == 6, "all six")
        wait_until(lambda: (a.depth(queue), b.depth(queue)) == (0, 0), "nothing is left")
        assert all(each.body.startswith("red") for each in red.take(red.messages.qsize()))


@pytest.mark.scenario("NB-30")
def test_what_a_consumer_behind_a_bridge_selected_builds_up_while_it_is_away_and_nothing_else(store, connect, name):
    topic, queue = f"VirtualTopic.{name}", f"Consumer.X.VirtualTopic.{name}"
    included = (Destination.queue("Consumer.*.VirtualTopic.>"),)
    remembering = {
        "definitions": Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>", selector_aware=True),)),
        "selector_cache": SelectorCacheSettings(),
    }
    with running(store) as b:
        connector = replace(to(b.port, conduitSubscriptions="false"), dynamically_included=included)
        with running(store, connector, **remembering) as a:
            red, sender = connect(port=b.port), connect(port=a.port)
            red.subscribe(f"/queue/{queue}", selector="colour = 'red'")
            wait_for_demand(a, f"queue://{queue}")
            red.leave()
            wait_for_no_demand(a, f"queue://{queue}")
            for colour in ("blue", "red"):
                sender.send(f"/topic/{topic}", colour, persistent="true", colour=colour)
            assert a.bodies(queue) == ["red"]
            remembered = a.ask(lambda admin: admin.selectors())
            assert list(remembered[Destination.queue(queue)]) == ["colour = 'red'"]
            again = connect(port=b.port)
            again.subscribe(f"/queue/{queue}", selector="colour = 'red'")
            assert again.bodies() == ["red"]


@pytest.mark.scenario("NB-19")
def test_messages_follow_a_consumer_that_moves_from_broker_to_broker(store, connect, name):
    far = {"networkTTL": "3"}
    with running(store) as c, running(store) as b, running(store, to(b.port, c.port, **far)) as a:
        wait_until(lambda: len(bridges_of(a)) == 2, "the bridges")
        sender, came = connect(port=a.port), []
        for number, node in enumerate((b, c, a)):
            consumer = connect(port=node.port)
            consumer.subscribe(f"/queue/{name}")
            if node is not a:
                wait_for_demand(a, f"queue://{name}")
            for each in range(5):
                sender.send(f"/queue/{name}", f"{number}.{each}", persistent="true")
            came += consumer.bodies(5)
            consumer.leave()
            wait_for_no_demand(a, f"queue://{name}")
        assert came == [f"{number}.{each}" for number in range(3) for each in range(5)]
        assert [node.depth(name) for node in (a, b, c)] == [0, 0, 0]


@pytest.mark.scenario("NB-66")
def test_no_subscription_is_left_of_clients_that_came_and_went_in_any_order(pair, connect, name):
    a, b = pair

    def left() -> list[str]:
        return [each for each in destinations_of(a) if name in each]

    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        clients = [connect(port=b.port) for _ in range(3)]
        for client, destination in zip(clients, (f"/queue/{name}", f"/topic/{name}", f"/topic/{name}"), strict=True):
            client.subscribe(destination)
        wait_for_demand(a, f"queue://{name}", f"topic://{name}")
        for each in order:
            clients[each].leave()
        wait_until(lambda: not left(), "the end of all demand")
    assert a.look(lambda: sum(len(each.consumers._ending) for each in a.node.network.connections[0].bridges)) == 0


@pytest.mark.scenario("NB-24")
def test_in_a_mesh_each_queue_of_a_virtual_topic_gets_one_copy(store, connect, name):
    """As long as the topic itself is bridged, and its queues are not."""
    queues = Destination.queue("Consumer.*.VirtualTopic.>")
    far = {"networkTTL": "6"}
    definitions = Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>"),))
    topic = f"VirtualTopic.{name}"

    def mesh_of(*others: RunningNode):
        connectors = []
        for each in others:
            made = to(each.port, name=each.name, duplex="true", useVirtualDestSubs="true", **far).to_json()
            connectors.append({**made, "excluded": [str(queues)]})
        return connectors

    told = {"definitions": definitions, "use_virtual_dest_subs": True}
    with running(store, **told) as c, running(store, **told) as b, running(store, **told) as a:
        for node, others in ((b, (c,)), (a, (b, c))):
            for each in mesh_of(*others):
                node.ask(lambda admin, each=each: admin.networks.put_connector(each))
        consumers = []
        for node in (a, b, c):
            consumers.append(connect(port=node.port))
            consumers[-1].subscribe(f"/queue/Consumer.{node.name}.{topic}")
        wait_for_demand(a, f"topic://{topic}", f"topic://{topic}", f"topic://{topic}", f"topic://{topic}")
        connect(port=a.port).send(f"/topic/{topic}", "first", persistent="true")
        for each in consumers:
            assert each.bodies() == ["first"]
        wait_until(lambda: not any(map(under_way, (a, b, c))), "the receipts")
        assert all(each.has_no_more() for each in consumers)
