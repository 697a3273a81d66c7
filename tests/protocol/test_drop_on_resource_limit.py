"""Test dropOnResourceLimit: a full consumer queue misses a message, the others get it, without an error."""

import itertools

import pytest

from brokerapp.model.destination import Destination
from tests.protocol.running_node import node_of
from tests.waiting import wait_until

SIZE = 1024
#: Messages a limited queue has room for, about.
ROOM = 10

OPTIONS = {
    f"-{concurrent[0]}{transacted[0]}": f'concurrentSend="{concurrent}" transactedSend="{transacted}"'
    for concurrent, transacted in itertools.product(("false", "true"), repeat=2)
}
TOPICS = "\n".join(
    f'<virtualTopic name="drop{short}.>" prefix="C.*." dropOnResourceLimit="true" {options}/>'
    for short, options in OPTIONS.items()
)
XML = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="dropping">
  <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    {TOPICS}
    <virtualTopic name="insist.>" prefix="C.*."/>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="C.limited.>" storeLimit="{SIZE * ROOM}" sendFailIfNoSpace="true"/>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


def create(connect, topic):
    """The two queues; nobody consumes."""
    client = connect()
    for each in ("limited", "other"):
        client.subscribe(f"/queue/C.{each}.{topic}", id=each)
        client.unsubscribe(each)


def depths(node, topic):
    return [node.depth(f"C.{each}.{topic}") for each in ("limited", "other")]


@pytest.mark.scenario("VT-17")
@pytest.mark.parametrize("persistent", ["true", "false"])
@pytest.mark.parametrize("options", OPTIONS)
def test_the_full_queue_misses_what_the_others_get_and_that_is_counted(connect, node, options, persistent, name):
    topic, count = f"drop{options}.{name}", 3 * ROOM
    create(connect, topic)
    client = connect()
    for _ in range(count):
        client.send(f"/topic/{topic}", "x" * SIZE, persistent=persistent)
    assert client.errors.empty()
    limited, other = depths(node, topic)
    assert 0 < limited < count == other
    numbers = node.numbers(Destination.queue(f"C.limited.{topic}"))
    assert (numbers.DroppedCount, numbers.EnqueueCount) == (count - limited, limited)
    client.subscribe(f"/queue/C.limited.{topic}", id="1")
    client.take(limited)
    wait_until(lambda: depths(node, topic)[0] == 0, "it is empty")
    client.send(f"/topic/{topic}", "room again", persistent=persistent)
    assert client.bodies() == ["room again"]


def test_in_a_transaction_what_may_be_dropped_keeps_its_place_in_a_queue_that_gets_others(connect, node, name):
    topic = f"drop-ff.{name}"
    create(connect, topic)
    client = connect()
    client.frame("BEGIN", transaction="t")
    queue = f"C.other.{topic}"
    for body, destination in zip("abcde", (f"/queue/{queue}", f"/topic/{topic}") * 3, strict=False):
        client.send(destination, body, transaction="t")
    client.frame("COMMIT", transaction="t")
    assert node.bodies(queue) == list("abcde")


@pytest.mark.scenario("VT-17")
def test_in_a_transaction_each_message_is_dropped_for_itself(connect, node, name):
    topic = f"drop-ff.{name}"
    create(connect, topic)
    client = connect()
    client.send(f"/topic/{topic}", "x" * SIZE * (ROOM - 1))
    client.frame("BEGIN", transaction="t")
    for body in ("y" * SIZE * 2, "small", "z" * SIZE * 2):
        client.send(f"/topic/{topic}", body, transaction="t")
    client.send(f"/queue/{name}", "beside", transaction="t")
    client.frame("COMMIT", transaction="t")
    assert client.errors.empty()
    assert [body[0] for body in node.bodies(f"C.limited.{topic}")] == ["x", "s"]
    assert [body[0] for body in node.bodies(f"C.other.{topic}")] == ["x", "y", "s", "z"]
    assert node.depth(name) == 1


def test_subscribers_of_the_topic_get_what_its_queues_have_no_room_for(connect, node, name):
    topic = f"drop-ff.{name}"
    create(connect, topic)
    client = connect()
    client.subscribe(f"/topic/{topic}", id="1")
    for _ in range(2 * ROOM):
        client.send(f"/topic/{topic}", "x" * SIZE)
    assert len(client.take(2 * ROOM)) == 2 * ROOM


def test_without_it_a_full_queue_refuses_the_whole_send(connect, node, name):
    topic = f"insist.{name}"
    create(connect, topic)
    client = connect()
    sent = 0
    while client.errors.empty():
        client.send(f"/topic/{topic}", "x" * SIZE)
        sent += 1
        assert sent < 3 * ROOM
    assert client.error().headers["code"] == "limit-exceeded"
    assert depths(node, topic) == [sent - 1, sent - 1]
