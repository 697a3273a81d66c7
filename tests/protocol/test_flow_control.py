"""Test that producers to a full queue are blocked or refused by policy, and nothing is lost."""

import logging
from contextlib import suppress
from dataclasses import replace

import pytest

from brokerapp.core.flow_control import producer_flow
from brokerapp.engine.clients import quotas
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.stomp.frames import encode
from tests.protocol.running_node import node_of
from tests.waiting import wait_until

SIZE = 1024
#: Messages of that size a limited queue has room for, about.
ROOM = 10
LIMIT = SIZE * ROOM
BODY = b"x" * SIZE

XML = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" xmlns:sluice="urn:sluice" brokerName="flow">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="held.>" sluice:storeLimit="{LIMIT}"/>
    <policyEntry queue="warned.>" sluice:storeLimit="{LIMIT}" blockedProducerWarningInterval="100"/>
    <policyEntry queue="Consumer.held.>" sluice:storeLimit="{LIMIT}"/>
    <policyEntry queue="fails.>" sluice:storeLimit="{LIMIT}" sendFailIfNoSpace="true"/>
    <policyEntry queue="times.out.>" sluice:storeLimit="{LIMIT}" sendFailIfNoSpaceAfterTimeout="300"/>
    <policyEntry queue="free.>" memoryLimit="{LIMIT}"/>
    <policyEntry queue="in.memory.>" memoryLimit="{LIMIT}">
      <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>
    </policyEntry>
    <policyEntry queue="in.memory.free.>" memoryLimit="{LIMIT}" producerFlowControl="false">
      <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>
    </policyEntry>
    <policyEntry topic="held.>" memoryLimit="{2 * LIMIT}"/>
    <policyEntry topic="stored.>" sluice:storeLimit="{LIMIT}"/>
    <policyEntry topic="fails.>" memoryLimit="{2 * LIMIT}" sendFailIfNoSpace="true"/>
    <policyEntry topic="free.>" memoryLimit="{2 * LIMIT}" producerFlowControl="false"/>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


def send_to(destination, number, **headers):
    """One SEND whose receipt is the number, in bytes."""
    headers = {"destination": destination, "receipt": str(number), "number": str(number), **headers}
    return encode("SEND", headers, BODY)


def send(queue, number, **headers):
    """One to a queue."""
    return send_to(f"/queue/{queue}", number, **headers)


def fill(client, node, queue):
    """Send, a receipt at a time, until one waits; how many were confirmed."""
    confirmed = 0
    client.socket.settimeout(0.3)
    with suppress(TimeoutError):
        while confirmed < 3 * ROOM:
            client.write(send(queue, confirmed))
            assert client.hear().command == "RECEIPT"
            confirmed += 1
    client.socket.settimeout(20)
    wait_until(lambda: node.numbers(Destination.queue(queue)).BlockedSends == 1, "it waits")
    return confirmed


def consume(raw, queue, count):
    """The numbers of so many messages, each acknowledged at once."""
    consumer, found = raw(), []
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": "1", "ack": "client-individual"})
    for _ in range(count):
        message = consumer.hear()
        found.append(int(message.headers["number"]))
        consumer.tell("ACK", {"id": message.headers["ack"]})
    return found


@pytest.mark.scenario("Q05")
def test_a_producer_of_a_full_queue_waits_for_its_receipt_until_there_is_room(raw, node, name):
    queue, producer, consumer = f"held.{name}", raw(), raw()
    confirmed = fill(producer, node, queue)
    assert ROOM // 2 < confirmed <= ROOM
    assert node.depth(queue) == confirmed
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": "1", "ack": "client-individual"})
    first = consumer.hear()
    consumer.tell("ACK", {"id": first.headers["ack"]})
    assert producer.hear().headers["receipt-id"] == str(confirmed)
    assert [first.headers["number"], *(consumer.hear().headers["number"] for _ in range(confirmed))] == [
        str(number) for number in range(confirmed + 1)
    ]
    numbers = node.numbers(Destination.queue(queue))
    assert numbers.BlockedSends == 1
    assert numbers.TotalBlockedTime > 0


def test_what_was_sent_ahead_arrives_whole_and_in_order(raw, node, name):
    queue, producer, count = f"held.{name}", raw(), 20 * ROOM
    producer.write(b"".join(send(queue, number) for number in range(count)))
    wait_until(lambda: node.numbers(Destination.queue(queue)).BlockedSends > 0, "it waits")
    assert consume(raw, queue, count) == list(range(count))
    assert [producer.hear().headers["receipt-id"] for _ in range(count)] == [str(number) for number in range(count)]


def test_a_held_producer_is_not_read_from_and_takes_no_memory(raw, node, name):
    queue, producer = f"held.{name}", raw()
    producer.socket.settimeout(1.0)
    frame, sent = send(queue, 0, **{"content-length": str(SIZE)}), 0
    with suppress(TimeoutError):
        while sent < 100_000:
            producer.write(frame)
            sent += 1
    assert sent < 100_000, "it was read from although its messages have no room"
    assert node.depth(queue) <= ROOM
    assert node.look(lambda: node.node.broker.flow_control.bytes) < 2 * quotas.WRITE_BYTES[0]


def test_a_client_is_not_read_from_while_it_has_more_on_its_way_than_a_log_may_hold(raw, node, name, monkeypatch):
    commits, seen = node.node.broker.commits, []

    def note(write, original=commits.submit):
        seen.extend(each.is_over_quota for each in write.bytes_by_client if each.pending_bytes > 2 * SIZE * ROOM)
        original(write)

    monkeypatch.setattr(producer_flow, "MIN_ON_ITS_WAY_BYTES", LIMIT)
    monkeypatch.setattr(commits, "submit", note)
    raw().write(b"".join(send(f"held.{name}", number) for number in range(10 * ROOM)))
    wait_until(lambda: node.numbers(Destination.queue(f"held.{name}")).BlockedSends, "the queue is full")
    assert seen
    assert all(seen)


def test_others_go_on_meanwhile(raw, connect, node, name):
    held, other = raw(), connect()
    fill(held, node, f"held.{name}")
    other.subscribe(f"/queue/{name}")
    other.subscribe(f"/topic/{name}", id="t")
    for kind in ("queue", "topic"):
        other.send(f"/{kind}/{name}", kind)
        assert other.bodies() == [kind]


def test_producers_of_a_full_queue_take_turns_and_each_keeps_its_order(raw, node, name):
    queue, producers, count = f"held.{name}", [raw() for _ in range(4)], 5 * ROOM
    for producer, first in zip(producers, range(0, 4 * count, count), strict=True):
        producer.write(b"".join(send(queue, first + number) for number in range(count)))
    wait_until(lambda: node.numbers(Destination.queue(queue)).BlockedSends >= 3, "they wait")
    found = consume(raw, queue, 4 * count)
    for first in range(0, 4 * count, count):
        assert [number for number in found if first <= number < first + count] == list(range(first, first + count))


@pytest.mark.scenario("Q01", "Q02", "Q08")
@pytest.mark.parametrize("persistent", ["true", "false"])
def test_a_full_queue_that_is_to_fail_refuses_at_once(connect, node, name, persistent):
    queue, client, sent = f"fails.{name}", connect(), 0
    while client.errors.empty():
        client.send(f"/queue/{queue}", BODY, persistent=persistent)
        sent += 1
        assert sent <= 2 * ROOM
    error = client.error()
    assert error.headers["code"] == "limit-exceeded"
    assert f"queue://{queue} is full (storeLimit {LIMIT} bytes)" in error.body
    assert node.depth(queue) == sent - 1
    client.subscribe(f"/queue/{queue}")
    client.take(sent - 1)
    wait_until(lambda: node.depth(queue) == 0, "it is empty")
    client.send(f"/queue/{queue}", "room again")
    assert client.bodies() == ["room again"]


def test_a_send_may_wait_for_some_time_and_fail_then(raw, node, name):
    queue, producer = f"times.out.{name}", raw()
    for number in range(2 * ROOM):
        producer.write(send(queue, number))
    answers = [producer.hear() for _ in range(2 * ROOM)]
    receipts = [each for each in answers if each.command == "RECEIPT"]
    errors = [each for each in answers if each.command == "ERROR"]
    assert 0 < len(receipts) <= ROOM
    assert len(errors) == 2 * ROOM - len(receipts)
    assert {each.headers["code"] for each in errors} == {"limit-exceeded"}
    assert b"no space became available within" in errors[0].body
    assert [each.headers["receipt-id"] for each in answers] == [str(number) for number in range(2 * ROOM)]
    assert node.depth(queue) == len(receipts)
    wait_until(
        lambda: not node.look(lambda: node.node.broker.flow_control.places.get(f"queue://{queue}")), "nobody waits"
    )
    producer.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": "1"})
    assert [producer.hear().headers["number"] for _ in receipts] == [each.headers["receipt-id"] for each in receipts]


def test_without_flow_control_a_limit_stops_nobody(connect, node, name):
    client = connect()
    for _ in range(3 * ROOM):
        client.send(f"/queue/free.{name}", BODY)
    assert node.depth(f"free.{name}") == 3 * ROOM


def test_only_a_queue_whose_cursor_is_in_memory_is_bounded_by_memory_limit(raw, connect, node, name):
    client = connect()
    for _ in range(3 * ROOM):
        client.send(f"/queue/in.memory.free.{name}", BODY)
    assert ROOM // 2 < fill(raw(), node, f"in.memory.{name}") <= ROOM


def slow_subscriber(raw, topic):
    """One that is given a message at a time."""
    subscriber = raw()
    headers = {"destination": f"/topic/{topic}", "id": "1", "ack": "client-individual", "activemq.prefetchSize": "1"}
    subscriber.tell("SUBSCRIBE", {**headers, "receipt": "subscribed"})
    assert subscriber.hear().command == "RECEIPT"
    return subscriber


def send_many(producer, topic, count):
    """So many at once."""
    producer.write(b"".join(send_to(f"/topic/{topic}", number) for number in range(count)))


def hear_and_ack(subscriber, count):
    """The numbers of so many messages."""
    heard = []
    while len(heard) < count:
        message = subscriber.hear()
        heard.append(int(message.headers["number"]))
        subscriber.tell("ACK", {"id": message.headers["ack"]})
    return heard


def test_a_topic_whose_subscriber_has_as_much_waiting_as_it_may_hold_holds_its_producers(raw, node, name):
    """Each of the messages counts a kilobyte beside its body, as in ActiveMQ."""
    topic, count = f"held.{name}", 4 * ROOM
    subscriber, producer, destination = slow_subscriber(raw, topic), raw(), Destination.topic(topic)
    send_many(producer, topic, count)
    wait_until(lambda: node.numbers(destination).EnqueueCount == ROOM + 1, "one is with the subscriber")
    wait_until(lambda: node.numbers(destination).BlockedSends, "the producer waits")  # the rest may not have been read
    assert hear_and_ack(subscriber, count) == list(range(count))
    assert [producer.hear().headers["receipt-id"] for _ in range(count)] == [str(each) for each in range(count)]


def test_a_full_topic_refuses_where_its_policy_wants_that(raw, name):
    topic, producer = f"fails.{name}", raw()
    slow_subscriber(raw, topic)
    send_many(producer, topic, 2 * ROOM)
    answers = [producer.hear() for _ in range(2 * ROOM)]
    commands = [each.command for each in answers]
    assert (commands[:ROOM], commands[-1]) == (["RECEIPT"] * ROOM, "ERROR")
    assert commands.count("RECEIPT") <= ROOM + 1  # one is with the subscriber
    assert f"topic://{topic} is full (memoryLimit {2 * LIMIT} bytes)" in answers[-1].body.decode()


def test_without_flow_control_a_topic_holds_nobody(raw, name):
    topic, producer = f"free.{name}", raw()
    slow_subscriber(raw, topic)
    send_many(producer, topic, 4 * ROOM)
    assert [producer.hear().command for _ in range(4 * ROOM)] == ["RECEIPT"] * 4 * ROOM


def test_a_store_limit_of_a_topic_bounds_each_durable_subscription(raw, node, name):
    topic, producer, subscriber = f"stored.{name}", raw(), raw(**{"client-id": f"c-{name}"})
    headers = {"destination": f"/topic/{topic}", "id": "1", "ack": "client-individual", "receipt": "subscribed"}
    subscriber.tell("SUBSCRIBE", {**headers, "activemq.subscriptionName": "mine"})
    assert subscriber.hear().command == "RECEIPT"
    send_many(producer, topic, 2 * ROOM)
    assert hear_and_ack(subscriber, 2 * ROOM) == list(range(2 * ROOM))
    numbers = node.numbers(Destination(DestinationKind.SUBSCRIPTION, f"c-{name}:mine"))
    assert numbers.BlockedSends > 0


def test_a_message_larger_than_the_limit_is_taken_by_an_empty_queue(connect, node, name):
    client = connect()
    client.send(f"/queue/held.{name}", "x" * 3 * LIMIT)
    assert node.depth(f"held.{name}") == 1


@pytest.mark.parametrize("ack", ["client", "client-individual"])
def test_a_client_that_consumes_what_it_sends_frees_its_own_sends(raw, node, name, ack):
    """Its acks come behind sends that wait: they are read, and carried out, all the same."""
    queue, client, count = f"held.{name}", raw(), 6 * ROOM
    client.tell(
        "SUBSCRIBE", {"destination": f"/queue/{queue}", "id": "1", "ack": ack, "activemq.prefetchSize": str(ROOM)}
    )
    client.write(b"".join(send(queue, number) for number in range(count)))
    found = []
    while len(found) < count:
        frame = client.hear()
        if frame.command == "MESSAGE":
            found.append(int(frame.headers["number"]))
            client.tell("ACK", {"id": frame.headers["ack"]})
    assert found == list(range(count))
    assert node.numbers(Destination.queue(queue)).BlockedSends > 0


def test_a_consuming_client_whose_sends_wait_gets_an_error_before_it_could_lock_itself_out(
    raw, node, name, monkeypatch
):
    monkeypatch.setattr(producer_flow, "MAX_WAITING", 5)
    queue, client = f"held.{name}", raw()
    client.tell("SUBSCRIBE", {"destination": f"/queue/{queue}.other", "id": "1"})
    client.write(b"".join(send(queue, number) for number in range(3 * ROOM)))
    answers = []
    while not answers or answers[-1].headers["receipt-id"] != str(3 * ROOM - 1):
        answers.append(client.hear())
    errors = [each for each in answers if each.command == "ERROR"]
    assert len(errors) == 3 * ROOM - 5 - node.depth(queue)
    assert {each.headers["code"] for each in errors} == {"limit-exceeded"}
    assert b"over a connection of its own" in errors[0].body
    client.tell("SEND", {"destination": f"/queue/{queue}.other"}, b"it is heard")
    assert client.hear().body == b"it is heard"


def test_a_transaction_waits_whole_and_happens_whole(raw, connect, node, name):
    queue, producer, client = f"held.{name}", raw(), connect()
    confirmed = fill(producer, node, queue)
    client.frame("BEGIN", transaction="t")
    for number in range(3):
        client.send(f"/queue/{queue}", BODY, transaction="t", number=str(1000 + number))
    client.send(f"/queue/{name}", "beside", transaction="t")
    client.frame("COMMIT", wait=False, transaction="t", receipt="c")
    wait_until(lambda: node.numbers(Destination.queue(queue)).BlockedSends == 2, "the commit waits")
    assert (node.depth(name), node.depth(queue)) == (0, confirmed)
    found = consume(raw, queue, confirmed + 4)
    assert found == [*range(confirmed + 1), 1000, 1001, 1002]
    wait_until(lambda: node.depth(name) == 1, "all of it happened")


def test_a_transaction_that_consumes_from_a_full_queue_may_send_to_it(raw, node, name):
    queue, producer, client = f"held.{name}", raw(), raw()
    confirmed = fill(producer, node, queue)
    client.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": "1", "ack": "client-individual"})
    message = client.hear()
    client.tell("BEGIN", {"transaction": "t"})
    client.tell("ACK", {"id": message.headers["ack"], "transaction": "t"})
    client.tell("SEND", {"destination": f"/queue/{queue}", "transaction": "t", "number": "999"}, BODY)
    client.tell("COMMIT", {"transaction": "t", "receipt": "done"})
    wait_until(lambda: any(f.command == "RECEIPT" for f in iter(client.hear, None)), "it is committed")
    assert node.depth(queue) == confirmed


def test_a_held_producer_that_vanishes_has_its_message_kept(raw, node, name):
    queue, producer = f"held.{name}", raw()
    confirmed = fill(producer, node, queue)
    producer.close()
    assert consume(raw, queue, confirmed + 1) == list(range(confirmed + 1))
    wait_until(
        lambda: not node.look(lambda: node.node.broker.flow_control.places.get(f"queue://{queue}")), "nobody waits"
    )


def test_a_good_bye_is_confirmed_when_everything_found_room(raw, node, name):
    queue, producer, count = f"held.{name}", raw(), 2 * ROOM
    producer.write(b"".join(send(queue, number) for number in range(count)))
    producer.tell("DISCONNECT", {"receipt": "bye"})
    wait_until(lambda: node.numbers(Destination.queue(queue)).BlockedSends > 0, "it waits")
    assert consume(raw, queue, count) == list(range(count))
    assert [producer.hear().headers["receipt-id"] for _ in range(count + 1)][-1] == "bye"
    assert producer.is_closed()


def test_a_purge_makes_room(raw, node, name):
    queue, producer = f"held.{name}", raw()
    confirmed = fill(producer, node, queue)
    assert node.ask(lambda admin: admin.purge(Destination.queue(queue))) == confirmed
    assert producer.hear().headers["receipt-id"] == str(confirmed)


def test_a_raised_limit_makes_room(raw, node, name):
    queue, producer = f"held.{name}", raw()
    confirmed = fill(producer, node, queue)

    async def raise_limit(admin):
        current = await admin.definitions()
        more = PolicyEntry(Destination.queue(queue), store_limit=2 * LIMIT)
        return await admin.define(replace(current, policies=(*current.policies, more)), "test")

    node.wait_for_definitions(node.ask(raise_limit).version)
    assert producer.hear().headers["receipt-id"] == str(confirmed)


@pytest.mark.parametrize("persistent", ["true", "false"])
def test_a_full_consumer_queue_holds_the_whole_send_to_its_virtual_topic(raw, connect, node, name, persistent):
    topic, client = f"VirtualTopic.{name}", connect()
    for each in ("held", "free"):
        client.subscribe(f"/queue/Consumer.{each}.{topic}", id=each)
        client.unsubscribe(each)
    producer, count = raw(), 2 * ROOM
    headers = {"destination": f"/topic/{topic}", "persistent": persistent}
    producer.write(b"".join(encode("SEND", {**headers, "number": str(n)}, BODY) for n in range(count)))
    wait_until(lambda: node.numbers(Destination.queue(f"Consumer.held.{topic}")).BlockedSends > 0, "it waits")
    assert node.depth(f"Consumer.held.{topic}") == node.depth(f"Consumer.free.{topic}") <= ROOM
    assert consume(raw, f"Consumer.held.{topic}", count) == list(range(count))
    assert consume(raw, f"Consumer.free.{topic}", count) == list(range(count))


def test_a_queue_that_is_deleted_while_a_send_to_it_and_a_full_one_waits_exists_again(raw, connect, node, name):
    topic, client, producer = f"VirtualTopic.{name}", connect(), raw()
    held, deleted = (f"Consumer.{each}.{topic}" for each in ("held", "deleted"))
    for each in (held, deleted):
        client.subscribe(f"/queue/{each}", id=each)
        client.unsubscribe(each)
    for number in range(2 * ROOM):
        producer.tell("SEND", {"destination": f"/topic/{topic}", "number": str(number)}, BODY)
    wait_until(lambda: node.numbers(Destination.queue(held)).BlockedSends > 0, "it waits")
    confirmed = node.ask(lambda admin: admin.delete(Destination.queue(deleted)))
    assert consume(raw, held, confirmed) == list(range(confirmed))
    assert consume(raw, deleted, 1) == [confirmed]


def test_operators_are_warned_and_see_who_is_blocked(raw, node, name, caplog):
    queue, producer = f"warned.{name}", raw(**{"client-id": name})
    with caplog.at_level(logging.WARNING, "brokerapp.core.flow_control.producer_flow"):
        fill(producer, node, queue)
        warning = f"queue://{queue} is full (storeLimit {LIMIT} bytes): 1 sends of 1 connections wait for room"
        wait_until(lambda: sum(warning in text for text in caplog.messages) >= 2, "it is said again and again")

    def blocked():
        [status] = node.ask(lambda admin: admin.nodes())
        return [each["client_id"] for each in status.connections if each["blocked"]]

    wait_until(lambda: name in blocked(), "it is shown as blocked")
