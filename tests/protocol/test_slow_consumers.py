"""Test that the backlog of topic subscribers is limited, and that slow consumers are disconnected."""

import time

import pytest

from brokerapp.model.destination import Destination
from tests.protocol.running_node import node_of
from tests.waiting import wait_until

XML = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="slow">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry topic="few.>">
      <pendingMessageLimitStrategy><constantPendingMessageLimitStrategy limit="5"/></pendingMessageLimitStrategy>
    </policyEntry>
    <policyEntry topic="rate.>">
      <pendingMessageLimitStrategy>
        <prefetchRatePendingMessageLimitStrategy multiplier="1.5"/>
      </pendingMessageLimitStrategy>
    </policyEntry>
    <policyEntry topic="priority.>">
      <pendingMessageLimitStrategy><constantPendingMessageLimitStrategy limit="3"/></pendingMessageLimitStrategy>
      <messageEvictionStrategy><oldestMessageWithLowestPriorityEvictionStrategy/></messageEvictionStrategy>
    </policyEntry>
    <policyEntry topic="unique.>">
      <pendingMessageLimitStrategy><constantPendingMessageLimitStrategy limit="3"/></pendingMessageLimitStrategy>
      <messageEvictionStrategy>
        <uniquePropertyMessageEvictionStrategy propertyName="symbol"/>
      </messageEvictionStrategy>
    </policyEntry>
    <policyEntry queue="abort.>">
      <slowConsumerStrategy><abortSlowConsumerStrategy checkPeriod="50" maxSlowDuration="200"/></slowConsumerStrategy>
    </policyEntry>
    <policyEntry topic="abort.>">
      <slowConsumerStrategy><abortSlowConsumerStrategy checkPeriod="50" maxSlowDuration="200"/></slowConsumerStrategy>
    </policyEntry>
    <policyEntry queue="cut.>">
      <slowConsumerStrategy>
        <abortSlowConsumerStrategy checkPeriod="50" maxSlowDuration="200" abortConnection="true"/>
      </slowConsumerStrategy>
    </policyEntry>
    <policyEntry queue="ack.>">
      <slowConsumerStrategy>
        <abortSlowAckConsumerStrategy checkPeriod="50" maxSlowDuration="100" maxTimeSinceLastAck="300"/>
      </slowConsumerStrategy>
    </policyEntry>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


def publish(connect, topic, *messages):
    """Bodies, or pairs of a body and headers."""
    client = connect()
    for each in messages:
        body, headers = each if isinstance(each, tuple) else (each, {})
        client.send(f"/topic/{topic}", body, **headers)


def drained(client):
    """All that a subscriber with prefetch 1 gets, acknowledging one after the other."""
    found = []
    while not found or found[-1] != "end":
        [message] = client.take()
        found.append(message.body)
        client.ack(message)
    return found[:-1]


def slow_subscriber(connect, topic, prefetch=1, **headers):
    client = connect()
    client.subscribe(f"/topic/{topic}", ack="client-individual", prefetch=prefetch, **headers)
    return client


def test_beyond_a_constant_number_the_oldest_go_and_are_counted(connect, node, name):
    topic = f"few.{name}"
    slow, quick = slow_subscriber(connect, topic), connect()
    quick.subscribe(f"/topic/{topic}")
    publish(connect, topic, *map(str, range(20)), "end")
    assert drained(slow) == ["0", "16", "17", "18", "19"]
    assert quick.bodies(20) == [str(number) for number in range(20)]
    assert node.numbers(Destination.topic(topic)).DroppedCount == 15


def test_persistent_messages_that_go_or_expire_while_they_wait_are_dead_letters_once(connect, node, name):
    topic, late = f"few.{name}", str(int(time.time() * 1000) + 200)
    subscribers = [slow_subscriber(connect, topic) for _ in range(2)]
    publish(connect, topic, *[(str(number), {"persistent": "true"}) for number in range(8)])
    publish(connect, topic, "gone without a trace", ("late", {"persistent": "true", "expires": late}))
    wait_until(lambda: int(late) < time.time() * 1000, "it is late")
    publish(connect, topic, "end")
    for each in subscribers:
        assert drained(each) == ["0", "6", "7", "gone without a trace"]
    letters = {letter.body.decode(): letter.headers for letter in node.browse("ActiveMQ.DLQ")}
    assert list(letters) == ["1", "2", "3", "4", "5", "late"]
    causes = {headers["dlqDeliveryFailureCause"] for headers in letters.values()}
    assert causes == {"discarded for a slow subscriber", "expired"}
    assert letters["late"]["original-destination"] == f"/topic/{topic}"
    numbers = node.numbers(Destination.topic(topic))
    assert (numbers.ExpiredCount, numbers.DeadLetterCount) == (2, 6)


def test_a_client_may_ask_for_less_but_not_for_more(connect, name):
    topic = f"few.{name}"
    less = slow_subscriber(connect, topic, **{"activemq.maximumPendingMessageLimit": "2"})
    more = slow_subscriber(connect, topic, **{"activemq.maximumPendingMessageLimit": "20"})
    publish(connect, topic, *map(str, range(20)), "end")
    assert drained(less) == ["0", "19"]
    assert drained(more) == ["0", "16", "17", "18", "19"]


def test_without_a_policy_what_a_client_asks_for_is_not_heard(connect, name):
    client = slow_subscriber(connect, name, **{"activemq.maximumPendingMessageLimit": "2"})
    publish(connect, name, *map(str, range(20)), "end")
    assert drained(client) == [str(number) for number in range(20)]


def test_the_number_may_depend_on_the_prefetch(connect, name):
    topic = f"rate.{name}"
    client = slow_subscriber(connect, topic, prefetch=4)
    publish(connect, topic, *map(str, range(20)), "end")
    assert drained(client) == ["0", "1", "2", "3", "15", "16", "17", "18", "19"]


def test_the_lowest_priority_may_go_first(connect, name):
    topic = f"priority.{name}"
    client = slow_subscriber(connect, topic)
    priorities = (4, 9, 1, 5, 1, 0, 9)
    messages = [(f"{number}-{priority}", {"priority": str(priority)}) for number, priority in enumerate(priorities)]
    publish(connect, topic, *messages, ("end", {"priority": "9"}))
    assert drained(client) == ["0-4", "1-9", "6-9"]


def test_only_the_last_of_each_value_may_be_kept(connect, name):
    topic = f"unique.{name}"
    client = slow_subscriber(connect, topic)
    symbols = ["first", "a", "b", "a", "b", "a", "c"]
    messages = [(f"{number}-{symbol}", {"symbol": symbol}) for number, symbol in enumerate(symbols)]
    publish(connect, topic, *messages)
    [message] = client.take()
    client.ack(message)
    found = []
    for _ in range(3):
        [message] = client.take()
        found.append(message.body)
        client.ack(message)
    assert found == ["4-b", "5-a", "6-c"]


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_consumer_that_is_slow_too_long_loses_its_subscription(connect, node, name, kind):
    where = f"/{kind}/abort.{name}"
    slow, producer = connect(), connect()
    slow.subscribe(where, id="slow", ack="client", prefetch=1)
    for number in range(3):
        producer.send(where, str(number))
    error = slow.error()
    assert error.headers["code"] == "slow-consumer"
    assert "'slow'" in error.body
    assert slow.bodies() == ["0"]
    slow.send(f"/queue/{name}", "the connection lives")
    assert node.depth(name) == 1
    if kind == "queue":
        producer.subscribe(where)
        messages = producer.take(3)
        assert [(each.body, each.headers.get("redelivered")) for each in messages] == [
            ("0", "true"), ("1", None), ("2", None),
        ]  # fmt: skip


def test_a_policy_may_end_the_whole_connection(connect, name):
    slow, producer = connect(), connect()
    slow.subscribe(f"/queue/cut.{name}", ack="client", prefetch=1)
    for number in range(3):
        producer.send(f"/queue/cut.{name}", str(number))
    assert slow.disconnected.wait(20)
    producer.subscribe(f"/queue/cut.{name}")
    assert producer.bodies(3) == ["0", "1", "2"]


def test_a_consumer_that_does_not_acknowledge_is_cut_off_and_one_that_does_is_not(connect, name):
    slow, good, producer = connect(), connect(), connect()
    slow.subscribe(f"/queue/ack.{name}.slow", ack="client")
    good.subscribe(f"/queue/ack.{name}.good", ack="client")
    producer.send(f"/queue/ack.{name}.slow", "1")
    while slow.errors.empty():
        producer.send(f"/queue/ack.{name}.good", "again")
        good.ack(good.take()[0])
    assert slow.error().headers["code"] == "slow-consumer"
    producer.send(f"/queue/ack.{name}.good", "still there")
    assert good.bodies() == ["still there"]


def test_operators_see_who_is_slow_and_what_it_missed(connect, node, name):
    topic = f"few.{name}"
    client = connect(**{"client-id": name})
    client.subscribe(f"/topic/{topic}", ack="client-individual", prefetch=1)
    publish(connect, topic, *map(str, range(20)))

    def seen():
        [status] = node.ask(lambda admin: admin.nodes())
        return [(each["slow"], each["discarded"]) for each in status.connections if each["client_id"] == name]

    wait_until(lambda: seen() == [(True, 14)], "it is shown")
