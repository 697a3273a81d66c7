"""Test topics, virtual topics, composites, selectors, mirrored queues and wildcards."""

import pytest

from brokerapp.model.definitions import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeDestination,
    ForwardTarget,
    MirroredQueue,
    VirtualTopic,
)
from brokerapp.model.destination import Destination

queue, topic = Destination.queue, Destination.topic


@pytest.fixture
def define(node):
    yield node.define
    node.define(DEFAULT_VIRTUAL_TOPIC)


def test_every_subscriber_of_a_topic_gets_what_is_sent_while_it_listens(connect, name):
    one, other, late, producer = connect(), connect(), connect(), connect()
    one.subscribe(f"/topic/{name}")
    other.subscribe(f"/topic/{name}", ack="client")
    producer.send(f"/topic/{name}", "a")
    late.subscribe(f"/topic/{name}")
    producer.send(f"/topic/{name}", "b")
    assert one.bodies(2) == other.bodies(2) == ["a", "b"]
    assert late.bodies() == ["b"]
    assert late.has_no_more()


def test_a_topic_subscriber_with_acks_gets_no_more_than_its_prefetch(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}", ack="client", prefetch=2)
    for body in "abcd":
        client.send(f"/topic/{name}", body)
    messages = client.take(2)
    assert client.has_no_more()
    client.ack(messages[1])
    assert client.bodies(2) == ["c", "d"]


@pytest.mark.scenario("SE-21", "SE-23")
def test_topic_subscribers_filter_by_selector(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}", selector="size > 5")
    for size in ("3", "7", "x", "70"):
        client.send(f"/topic/{name}", size, size=size)
    assert client.bodies(2) == ["7", "70"]
    assert client.has_no_more()


@pytest.mark.scenario("SE-02")
def test_selectors_look_into_bodies_of_xml_wherever_they_stand(connect, define, name):
    orders = queue(f"{name}.orders")
    urgent, durable = "XPATH '/order[@urgent]'", "XPATH '/order/item'"
    define(
        CompositeDestination(
            orders, (ForwardTarget(queue(f"{name}.urgent"), urgent), ForwardTarget(queue(f"{name}.items"), durable))
        )
    )
    client, subscriber = connect(), connect(**{"client-id": name})
    subscriber.subscribe(f"/topic/{name}", id="durable", selector=durable, **{"activemq.subscriptionName": "s"})
    subscriber.subscribe(f"/queue/{name}.urgent", id="selective", selector="XPATH 'count(//item) = 2'")
    client.subscribe(f"/queue/{name}.urgent", id="rest", selector="NOT XPATH 'count(//item) = 2'")
    client.subscribe(f"/queue/{name}.items", id="items")
    bodies = ["<order urgent=''/>", "<order urgent=''><item/><item/></order>", "<order><item/></order>", "order"]
    for body in bodies:
        client.send(f"/queue/{name}.orders", body)
        client.send(f"/topic/{name}", body)
    assert sorted(client.bodies(3)) == sorted([bodies[0], *bodies[1:3]])
    assert sorted(subscriber.bodies(3)) == sorted([bodies[1], bodies[1], bodies[2]])
    assert client.has_no_more()
    assert subscriber.has_no_more()


@pytest.mark.scenario("S1-08", "CT-03")
def test_wildcard_subscribers_of_topics_get_each_message_once_and_see_its_topic(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}.>,/topic/{name}.*.b")
    client.send(f"/topic/{name}.a.b", "1")
    client.send(f"/topic/{name}", "2")
    messages = client.take(2)
    assert [each.headers["destination"] for each in messages] == [f"/topic/{name}.a.b", f"/topic/{name}"]
    assert client.has_no_more()


def test_a_message_to_a_topic_that_is_called_like_a_pattern_reaches_no_topic_that_the_pattern_matches(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}.a", id="plain")
    client.subscribe(f"/topic/{name}.>", id="all")
    client.send(f"/topic/{name}.*", "1")
    [message] = client.take(1)
    assert message.headers["subscription"] == "all"
    assert client.has_no_more()


@pytest.mark.scenario("S1-08")
def test_wildcard_consumers_of_queues_get_present_and_later_ones(connect, name):
    client = connect()
    client.send(f"/queue/{name}.old", "1")
    client.subscribe(f"/queue/{name}.*", ack="client-individual")
    client.send(f"/queue/{name}.new", "2")
    client.send(f"/queue/{name}.too.deep", "3")
    messages = client.take(2)
    assert {each.headers["destination"]: each.body for each in messages} == {
        f"/queue/{name}.old": "1",
        f"/queue/{name}.new": "2",
    }
    assert client.has_no_more()
    for message in messages:
        client.ack(message)
    assert client.errors.empty()


@pytest.mark.scenario("CT-03", "SC-01")
def test_a_list_of_queues_and_topics_is_one_subscription(connect, name):
    client = connect()
    client.subscribe(f"/queue/{name}.q,/topic/{name}.t")
    client.send(f"/queue/{name}.q", "q")
    client.send(f"/topic/{name}.t", "t")
    assert client.bodies(2) == ["q", "t"]


@pytest.mark.scenario("CT-01", "CT-02", "CT-05", "SC-01")
def test_a_message_sent_to_a_list_reaches_each_element_once(connect, node, name):
    connect().send(f"/queue/{name}.a,/queue/{name}.b,/queue/{name}.a,{name}.c", "x")
    assert [node.bodies(f"{name}.{each}") for each in "abc"] == [["x"], ["x"], ["x"]]


@pytest.mark.scenario("VT-06", "VT-33", "VT-35", "VT-14")
def test_a_virtual_topic_feeds_its_consumer_queues_also_while_nobody_consumes(connect, node, name):
    virtual = f"VirtualTopic.{name}"
    client, plain = connect(), connect()
    client.send(f"/topic/{virtual}", "before anybody")
    for consumer in "AB":
        client.subscribe(f"/queue/Consumer.{consumer}.{virtual}", id=consumer)
    plain.subscribe(f"/topic/{virtual}")
    client.send(f"/topic/{virtual}", "one")
    by_queue = {each.headers["destination"]: each for each in client.take(2)}
    assert set(by_queue) == {f"/queue/Consumer.{consumer}.{virtual}" for consumer in "AB"}
    for message in by_queue.values():
        assert (message.body, message.headers["original-destination"]) == ("one", f"/topic/{virtual}")
    [message] = plain.take()
    assert (message.body, message.headers["destination"]) == ("one", f"/topic/{virtual}")
    client.unsubscribe("A")
    client.send(f"/topic/{virtual}", "two")
    assert node.bodies(f"Consumer.A.{virtual}") == ["two"]
    assert client.bodies() == ["two"]


@pytest.mark.scenario("VT-01", "F02")
def test_consumers_of_one_consumer_queue_compete(connect, name):
    virtual = f"VirtualTopic.{name}"
    one, other = connect(), connect()
    for client in (one, other):
        client.subscribe(f"/queue/Consumer.A.{virtual}")
    for number in range(4):
        one.send(f"/topic/{virtual}", str(number))
    assert sorted(one.bodies(2) + other.bodies(2)) == ["0", "1", "2", "3"]


@pytest.mark.scenario("VT-37")
def test_without_original_destination_the_copy_names_the_topic(connect, define, name):
    define(VirtualTopic(name=f"{name}.>", prefix="Copy.*.", set_original_destination=False))
    client = connect()
    client.subscribe(f"/queue/Copy.A.{name}.x")
    client.send(f"/topic/{name}.x", "a")
    [message] = client.take()
    assert message.headers["destination"] == f"/topic/{name}.x"
    assert "original-destination" not in message.headers


@pytest.mark.scenario("CD-01", "CD-20", "X01")
def test_a_forward_only_composite_queue_forwards_and_keeps_nothing(connect, node, define, name):
    define(
        CompositeDestination(
            queue(f"{name}.in"), (ForwardTarget(queue(f"{name}.a")), ForwardTarget(topic(f"{name}.b")))
        )
    )
    client = connect()
    client.subscribe(f"/topic/{name}.b")
    client.subscribe(f"/queue/{name}.in", id="own")
    client.send(f"/queue/{name}.in", "x")
    [message] = client.take()
    assert message.headers["destination"] == f"/topic/{name}.b"
    assert message.headers["original-destination"] == f"/queue/{name}.in"
    assert client.has_no_more()
    [kept] = node.browse(f"{name}.a")
    assert kept.original_destination == f"/queue/{name}.in"


@pytest.mark.scenario("CD-02")
def test_an_open_composite_topic_reaches_its_own_subscribers_too(connect, node, define, name):
    define(CompositeDestination(topic(f"{name}.in"), (ForwardTarget(queue(f"{name}.a")),), forward_only=False))
    client = connect()
    client.subscribe(f"/topic/{name}.in")
    client.send(f"/topic/{name}.in", "x")
    assert client.bodies() == ["x"]
    assert node.bodies(f"{name}.a") == ["x"]


@pytest.mark.scenario("CD-03", "CD-05", "X03")
def test_filtered_legs_take_what_their_selector_matches(connect, node, define, name):
    legs = (ForwardTarget(queue(f"{name}.odd"), "odd = 'yes'"), ForwardTarget(queue(f"{name}.five"), "i = 5"))
    define(CompositeDestination(queue(f"{name}.in"), legs, send_when_not_matched=True))
    client = connect()
    for number in range(10):
        client.send(f"/queue/{name}.in", str(number), i=str(number), odd="yes" if number % 2 else "no")
    assert node.bodies(f"{name}.odd") == ["1", "3", "5", "7", "9"]
    assert node.bodies(f"{name}.five") == ["5"]
    assert node.bodies(f"{name}.in") == ["0", "2", "4", "6", "8"]


@pytest.mark.scenario("CD-18", "X12")
def test_a_composite_may_feed_a_virtual_topic(connect, node, define, name):
    virtual = f"VirtualTopic.{name}"
    define(DEFAULT_VIRTUAL_TOPIC, CompositeDestination(queue(name), (ForwardTarget(topic(virtual)),)))
    client = connect()
    client.subscribe(f"/queue/Consumer.A.{virtual}")
    client.send(f"/queue/{name}", "x")
    [message] = client.take()
    assert message.headers["original-destination"] == f"/topic/{virtual}"


@pytest.mark.scenario("CD-12")
def test_a_mirrored_queue_shows_its_messages_to_a_topic(connect, node, define, name):
    define(MirroredQueue())
    client = connect()
    client.subscribe(f"/topic/VirtualTopic.Mirror.{name}")
    client.send(f"/queue/{name}", "x")
    [message] = client.take()
    assert message.headers["destination"] == f"/topic/VirtualTopic.Mirror.{name}"
    assert node.bodies(name) == ["x"]


def test_the_mirror_of_a_consumer_queue_says_what_topic_its_messages_were_sent_to(connect, define, name):
    define(DEFAULT_VIRTUAL_TOPIC, MirroredQueue(prefix="Seen."))
    client, queue = connect(), f"Consumer.A.VirtualTopic.{name}"
    client.subscribe(f"/queue/{queue}")
    client.subscribe(f"/topic/Seen.{queue}", id="mirror")
    client.send(f"/topic/VirtualTopic.{name}", "x")
    shown = {message.headers["destination"]: message.headers.get("original-destination") for message in client.take(2)}
    assert shown[f"/topic/Seen.{queue}"] == f"/topic/VirtualTopic.{name}"


@pytest.mark.scenario("VT-15")
def test_a_selector_aware_queue_gets_only_what_its_consumers_want(connect, node, define, name):
    define(VirtualTopic(name=f"{name}.>", prefix="Aware.*.", selector_aware=True))
    client = connect()
    client.subscribe(f"/queue/Aware.A.{name}.x", selector="colour = 'red'", prefetch=0)
    for colour in ("red", "blue", "red"):
        client.send(f"/topic/{name}.x", colour, colour=colour)
    assert node.bodies(f"Aware.A.{name}.x") == ["red", "red"]
    client.unsubscribe()
    client.send(f"/topic/{name}.x", "lost", colour="red")
    assert node.bodies(f"Aware.A.{name}.x") == ["red", "red"]


@pytest.mark.scenario("RC-01", "X11")
def test_definitions_that_change_while_messages_flow_lose_none(connect, node, define, name):
    """Every message is either stored by the old routing or forwarded by the new one, whichever held when it came."""
    way = f"{name}.in"
    producer = connect()
    for place in ("in", *"abcd"):
        node.ask(lambda admin, place=place: admin.create(queue(f"{name}.{place}")))
    composites = [CompositeDestination(queue(way), (ForwardTarget(queue(f"{name}.{target}")),)) for target in "abcd"]
    sent = 0
    for composite in composites:
        for _ in range(50):
            producer.send(f"/queue/{way}", str(sent), wait=False, persistent="true")
            sent += 1
        define(composite)
        for _ in range(50):
            producer.send(f"/queue/{way}", str(sent), wait=False, persistent="true")
            sent += 1
    producer.send(f"/queue/{way}", str(sent))
    arrived = [int(body) for place in ("in", *"abcd") for body in node.bodies(f"{name}.{place}")]
    assert sorted(arrived) == list(range(sent + 1))
    assert node.bodies(f"{name}.d")[-1] == str(sent)
