"""Test which consumer gets which message: priorities, exclusive and selective consumers, order."""

from dataclasses import replace

import pytest

from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination
from tests.protocol.running_node import named
from tests.waiting import wait_until


@pytest.fixture
def policy(node):
    """Puts one policy in force."""

    def put(name, kind=Destination.queue, **options):
        async def change(admin):
            entry = PolicyEntry(kind(name), **options)
            return await admin.define(replace(await admin.definitions(), policies=(entry,)), "test")

        node.wait_for_definitions(node.ask(change).version)

    return put


#: More than a node has in memory of a queue.
BACKLOG = 5_000


@pytest.mark.parametrize("first", ["the policy", "the messages"])
def test_a_prioritized_queue_gives_the_most_urgent_first_of_any_backlog(connect, node, name, policy, first):
    if first == "the policy":
        policy(name, prioritized_messages=True)
    client = connect()
    for number in range(BACKLOG):
        client.send(f"/queue/{name}", str(number), wait=False, priority=str(number % 10))
    wait_until(lambda: node.depth(name) == BACKLOG, "all are stored")
    if first == "the messages":
        policy(name, prioritized_messages=True)
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=1_200)
    wanted = sorted(range(BACKLOG), key=lambda number: (-(number % 10), number))
    seen = client.take(1_200)
    assert named(seen) == [*map(str, wanted[:1_200])]
    client.send(f"/queue/{name}", "urgent", priority="9")
    client.ack(seen[0])
    assert client.bodies() == ["urgent"]
    assert node.look(lambda: len(node.node.broker.queues[f"queue://{name}"].ready)) < BACKLOG / 2


def test_a_browser_of_a_prioritized_queue_is_shown_the_most_urgent_first_of_several_pages(connect, node, name, policy):
    policy(name, prioritized_messages=True)
    client, count = connect(), 2 * PAGE_SIZE + 10
    for number in range(count):
        client.send(f"/queue/{name}", str(number), wait=False, priority=str(number % 10))
    wait_until(lambda: node.depth(name) == count, "all are stored")
    client.subscribe(f"/queue/{name}", browser="true")
    wanted = sorted(range(count), key=lambda number: (-(number % 10), number))
    *shown, end = client.take(count + 1)
    assert named(shown) == [*map(str, wanted)]
    assert end.headers["browser"] == "end"


def test_a_durable_subscription_of_a_prioritized_topic_is_given_the_most_urgent_first(connect, name, policy):
    def subscriber():
        client = connect(**{"client-id": name})
        client.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "sub"})
        return client

    policy(name, kind=Destination.topic, prioritized_messages=True)
    subscriber().leave()
    producer = connect()
    for number, priority in enumerate([4, 9, 0, 5, 9]):
        producer.send(f"/topic/{name}", str(number), persistent="true", priority=str(priority))
    assert subscriber().bodies(5) == ["1", "4", "3", "0", "2"]


def test_without_a_policy_priorities_change_nothing(connect, name):
    client = connect()
    for number, priority in enumerate([1, 9, 5]):
        client.send(f"/queue/{name}", str(number), priority=str(priority))
    client.subscribe(f"/queue/{name}")
    assert client.bodies(3) == ["0", "1", "2"]


def test_a_selective_consumer_gets_its_message_from_behind_many_that_nobody_wants(connect, node, name):
    client, unwanted = connect(), 10_000
    client.subscribe(f"/queue/{name}", id="early", selector="colour = 'red'")
    for number in range(unwanted):
        client.send(f"/queue/{name}", str(number), wait=False, colour="blue")
    client.send(f"/queue/{name}", "wanted", colour="red")
    assert client.bodies() == ["wanted"]
    client.unsubscribe("early")
    client.send(f"/queue/{name}", "wanted too", colour="red")
    client.subscribe(f"/queue/{name}", id="late", selector="colour = 'red'")
    assert client.bodies() == ["wanted too"]
    held = node.look(lambda: len(node.node.broker.queues[f"queue://{name}"].ready))
    assert held <= 2_000, "what nobody wants is not held in memory"
    assert node.depth(name) == unwanted


def test_a_slow_consumer_does_not_keep_a_selective_one_from_its_messages(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}", id="slow", ack="client-individual", prefetch=1)
    for number in range(4_000):
        client.send(f"/queue/{name}", str(number), wait=False, colour="blue")
    client.take()
    client.subscribe(f"/queue/{name}", id="red", selector="colour = 'red'")
    client.send(f"/queue/{name}", "wanted", colour="red")
    [message] = client.take()
    assert (message.body, message.headers["subscription"]) == ("wanted", "red")


def test_strict_order_fills_one_consumer_before_the_next(connect, name, policy):
    policy(name, strict_order_dispatch=True)
    client = connect()
    for id in ("a", "b"):
        client.subscribe(f"/queue/{name}", id=id, ack="client-individual", prefetch=3)
    for number in range(6):
        client.send(f"/queue/{name}", str(number))
    assert [each.headers["subscription"] for each in client.take(6)] == ["a"] * 3 + ["b"] * 3


def test_priorities_of_consumers_can_be_switched_off(connect, name, policy):
    policy(name, use_consumer_priority=False)
    client = connect()
    client.subscribe(f"/queue/{name}", id="low")
    client.subscribe(f"/queue/{name}", id="high", **{"activemq.priority": "5"})
    for number in range(4):
        client.send(f"/queue/{name}", str(number))
    assert {each.headers["subscription"] for each in client.take(4)} == {"low", "high"}


@pytest.mark.parametrize(("asked", "first"), [("127", "asked"), ("+2", "asked"), ("128", "one"), ("-129", "one")])
def test_a_priority_of_consumers_that_no_byte_can_hold_is_none(connect, name, asked, first):
    client = connect()
    client.subscribe(f"/queue/{name}", id="one", **{"activemq.priority": "1"})
    client.subscribe(f"/queue/{name}", id="asked", **{"activemq.priority": asked})
    for number in range(2):
        client.send(f"/queue/{name}", str(number))
    assert {each.headers["subscription"] for each in client.take(2)} == {first}


@pytest.mark.scenario("EX-01")
@pytest.mark.parametrize("order", [["exclusive", "plain"], ["plain", "exclusive"]])
def test_an_exclusive_consumer_gets_everything_whoever_came_first(connect, name, order):
    client = connect()
    for id in order:
        client.subscribe(f"/queue/{name}", id=id, **({"activemq.exclusive": "true"} if id == "exclusive" else {}))
    for number in range(5):
        client.send(f"/queue/{name}", str(number))
    assert {each.headers["subscription"] for each in client.take(5)} == {"exclusive"}
    client.unsubscribe("exclusive")
    client.send(f"/queue/{name}", "next")
    assert client.take()[0].headers["subscription"] == "plain"
    client.subscribe(f"/queue/{name}", id="back", **{"activemq.exclusive": "true"})
    client.send(f"/queue/{name}", "again")
    assert client.take()[0].headers["subscription"] == "back"


@pytest.mark.scenario("EX-01", "X22")
def test_an_exclusive_consumer_fails_over_to_the_next_one(connect, name):
    client = connect()
    for id in ("plain", "first", "second"):
        client.subscribe(f"/queue/{name}", id=id, **({"activemq.exclusive": "true"} if id != "plain" else {}))
    client.send(f"/queue/{name}", "1")
    assert client.take()[0].headers["subscription"] == "first"
    client.unsubscribe("first")
    client.send(f"/queue/{name}", "2")
    assert client.take()[0].headers["subscription"] == "second"
    client.unsubscribe("second")
    client.send(f"/queue/{name}", "3")
    assert client.take()[0].headers["subscription"] == "plain"


def test_a_prefetch_of_nothing_is_accepted_and_delivers_nothing(connect, name):
    client = connect()
    client.subscribe(f"/queue/{name}", prefetch=0)
    client.send(f"/queue/{name}", "stays")
    assert client.has_no_more()


def test_the_prefetch_of_a_policy_is_a_default(connect, name, policy):
    policy(name, queue_prefetch=2)
    client = connect()
    for number in range(5):
        client.send(f"/queue/{name}", str(number))
    client.subscribe(f"/queue/{name}", id="by policy", ack="client-individual")
    assert client.bodies(2) == ["0", "1"]
    assert client.has_no_more()
    client.subscribe(f"/queue/{name}", id="by itself", ack="client-individual", prefetch=3)
    assert client.bodies(3) == ["2", "3", "4"]
