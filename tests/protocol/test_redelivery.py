"""Test redelivery of failed messages by policy, up to their dead letter."""

import itertools
import time
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.definitions import (
    DeadLetterStrategy,
    Definitions,
    PolicyEntry,
    RedeliveryPolicy,
    RedeliverySettings,
)
from brokerapp.model.destination import Destination
from tests.protocol.clients import RawClient, StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

queue = Destination.queue
topic = Destination.topic
DLQ = "ActiveMQ.DLQ"
REDELIVERY = RedeliverySettings(
    (
        RedeliveryPolicy(queue("twice.>"), 2, initial_redelivery_delay=150, redelivery_delay=150),
        RedeliveryPolicy(queue("twice.slow.>"), 2, initial_redelivery_delay=600_000),
        RedeliveryPolicy(queue("for.ever.>"), -1, initial_redelivery_delay=0, redelivery_delay=0),
        RedeliveryPolicy(queue("never.>"), 0),
        RedeliveryPolicy(Destination.parse("temp-queue://>"), 2, initial_redelivery_delay=400),
        RedeliveryPolicy(topic("twice.>"), 2, initial_redelivery_delay=50, redelivery_delay=50),
        RedeliveryPolicy(queue("Consumer.*.VirtualTopic.twice"), 2, initial_redelivery_delay=50, redelivery_delay=50),
    )
)
_numbers = itertools.count(1)


def config(name, redelivery=REDELIVERY):
    keeps = DeadLetterStrategy(process_non_persistent=True)
    policies = (PolicyEntry(queue("twice.kept.>"), dead_letter=keeps),)
    definitions = Definitions(policies=policies, redelivery=redelivery)
    return replace(default_config(name, 0), definitions=definitions, destinations=(queue(DLQ),))


@pytest.fixture(scope="module")
def node(store):
    running = RunningNode(config("redelivering"), store.url)
    yield running
    running.stop()


@pytest.fixture
def name():
    return f"q{next(_numbers)}"


def dead(node, name):
    return [each for each in node.browse(DLQ) if each.original_destination == f"/queue/{name}"]


@pytest.mark.scenario("DL-05", "S14")
def test_what_is_rejected_comes_back_after_its_delay_with_its_count_and_dies_in_the_end(connect, node, name):
    name = f"twice.{name}"
    client = connect()
    client.send(f"/queue/{name}", "poison", persistent="true", colour="red")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    for delivery in (1, 2, 3):
        [message] = client.take()
        assert message.headers.get("redelivered") == (None if delivery == 1 else "true")
        assert message.headers.get("JMSXDeliveryCount") == (None if delivery == 1 else str(delivery))
        rejected = time.monotonic()
        client.nack(message)
        if delivery < 3:
            assert node.depth(name) == 0
            assert dead(node, name) == []
            wait_until(lambda: not client.messages.empty(), "it comes back")
            assert time.monotonic() - rejected >= 0.14
    [letter] = dead(node, name)
    assert letter.id == message.headers["message-id"]
    assert letter.headers["dlqDeliveryCount"] == "3"
    assert letter.headers["colour"] == "red"
    assert "NACK" in letter.headers["dlqDeliveryFailureCause"]
    assert client.has_no_more()


def test_one_that_is_used_the_second_time_is_gone_for_good(connect, node, name):
    name = f"twice.{name}"
    client = connect()
    client.send(f"/queue/{name}", "shaky", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take()[0])
    client.ack(client.take()[0])
    assert node.depth(name) == 0
    assert dead(node, name) == []
    numbers = node.numbers(queue(name))
    assert (numbers.DispatchCount, numbers.DequeueCount) == (2, 2)


@pytest.mark.scenario("DL-05")
def test_without_a_maximum_it_comes_back_for_ever(connect, node, name):
    name = f"for.ever.{name}"
    client = connect()
    client.send(f"/queue/{name}", "poison", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    for delivery in range(1, 13):
        [message] = client.take()
        assert message.headers.get("JMSXDeliveryCount", "1") == str(delivery)
        client.nack(message)
    client.take()
    assert dead(node, name) == []


@pytest.mark.scenario("DL-05")
def test_what_expired_gets_no_other_chance(connect, node, name):
    name = f"for.ever.{name}"
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client-individual")
    expires = int(time.time() * 1000) + 300
    client.send(f"/queue/{name}", "late", persistent="true", expires=str(expires))
    [message] = client.take()
    wait_until(lambda: time.time() * 1000 > expires, "it is late")
    client.nack(message)
    [letter] = dead(node, name)
    assert letter.headers["dlqDeliveryFailureCause"] == "expired"


def test_no_redelivery_is_a_policy_too(connect, node, name):
    name = f"never.{name}"
    client = connect()
    client.send(f"/queue/{name}", "poison", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take()[0])
    assert [each.headers["dlqDeliveryCount"] for each in dead(node, name)] == ["1"]


def test_without_a_policy_what_is_rejected_is_a_dead_letter_at_once(connect, node, name):
    client = connect()
    client.send(f"/queue/{name}", "poison", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take()[0])
    assert len(dead(node, name)) == 1


def test_what_waits_for_its_delay_is_seen_by_operators_and_not_by_schedulers(connect, node, name):
    name = f"twice.slow.{name}"
    client = connect()
    client.send(f"/queue/{name}", "poison", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take()[0])

    def waiting():
        _, found = node.ask(lambda admin: admin.scheduled(limit=1000))
        return [(each.purpose, each.to) for each in found if each.to == f"queue://{name}"]

    assert waiting() == [("return", f"queue://{name}")]
    client.send("/topic/ActiveMQ.Scheduler.Management", "", AMQ_SCHEDULER_ACTION="REMOVEALL")
    assert waiting() == [("return", f"queue://{name}")]


def test_copies_of_a_virtual_topic_come_back_each_by_itself_and_as_they_were(connect, node):
    first, second = connect(), connect()
    queues = [f"Consumer.{each}.VirtualTopic.twice" for each in "AB"]
    for client, place in zip((first, second), queues, strict=True):
        client.subscribe(f"/queue/{place}", ack="client-individual")
    connect().send("/topic/VirtualTopic.twice", "x", persistent="true")
    second.ack(second.take()[0])
    first.nack(first.take()[0])
    [message] = first.take()
    assert message.headers["original-destination"] == "/topic/VirtualTopic.twice"
    assert message.headers["destination"] == f"/queue/{queues[0]}"
    first.nack(message)
    first.nack(first.take()[0])
    [letter] = dead(node, queues[0])
    assert letter.headers["dlqRoute"] == f"/topic/VirtualTopic.twice,/queue/{queues[0]}"
    assert second.has_no_more()
    assert node.stored_payloads() == 0


def test_what_a_durable_subscription_rejects_has_the_policy_of_its_topic(connect, node, name):
    name = f"twice.{name}"
    client = connect(**{"client-id": name})
    client.subscribe(f"/topic/{name}", ack="client-individual", **{"activemq.subscriptionName": "sub"})
    client.send(f"/topic/{name}", "poison", persistent="true")
    for delivery in (1, 2, 3):
        [message] = client.take()
        assert message.headers["destination"] == f"/topic/{name}"
        assert message.headers.get("JMSXDeliveryCount") == (None if delivery == 1 else str(delivery))
        client.nack(message)
    letters = [each for each in node.browse(DLQ) if each.id == message.headers["message-id"]]
    assert [each.headers["dlqDeliveryCount"] for each in letters] == ["3"]
    assert client.has_no_more()


def test_what_waits_for_a_temporary_queue_that_is_gone_is_given_up(connect, node, name, caplog):
    client = connect()
    client.subscribe(f"/temp-queue/{name}", ack="client-individual")
    client.send(f"/temp-queue/{name}", "poison")
    client.nack(client.take()[0])

    def waits():
        return any("temp-queue" in each.to for each in node.ask(lambda admin: admin.scheduled())[1])

    wait_until(waits, "it waits for its redelivery")
    client.leave()
    wait_until(lambda: not waits(), "it is given up")
    assert "is dropped: temp-queue://" in caplog.text


def consumer_dies(node, name):
    """A consumer takes what is there and goes without a word; headers of what it got."""
    client = StompClient(node.port)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    [message] = client.take()
    client.break_off()
    wait_until(lambda: node.numbers(queue(name)).InFlightCount == 0, "the broker noticed")
    return message.headers


def test_a_message_whose_consumers_die_is_given_up_when_the_policy_says_so(connect, node, name):
    name = f"twice.{name}"
    connect().send(f"/queue/{name}", "killer", persistent="true")
    counts = [consumer_dies(node, name).get("JMSXDeliveryCount") for _ in range(3)]
    assert counts == [None, "2", "3"]
    [letter] = dead(node, name)
    assert letter.headers["dlqDeliveryCount"] == "3"
    assert "delivered 3 times" in letter.headers["dlqDeliveryFailureCause"]
    assert node.depth(name) == 0


def test_without_a_policy_a_message_survives_any_number_of_consumers(connect, node, name):
    connect().send(f"/queue/{name}", "killer", persistent="true")
    for _ in range(9):
        consumer_dies(node, name)
    assert node.depth(name) == 1
    assert consumer_dies(node, name)["JMSXDeliveryCount"] == "10"


def test_deaths_of_consumers_and_rejections_count_together(connect, node, name):
    name = f"twice.{name}"
    client = connect()
    client.send(f"/queue/{name}", "killer", persistent="true")
    consumer_dies(node, name)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take()[0])
    client.nack(client.take()[0])
    assert [each.headers["dlqDeliveryCount"] for each in dead(node, name)] == ["3"]


def test_a_death_after_a_rejection_counts_on(connect, node, name):
    name = f"twice.{name}"
    client = connect()
    client.send(f"/queue/{name}", "killer", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take()[0])
    client.unsubscribe()
    wait_until(lambda: node.depth(name) == 1, "it is back")
    assert consumer_dies(node, name)["JMSXDeliveryCount"] == "2"
    assert consumer_dies(node, name)["JMSXDeliveryCount"] == "3"
    assert [each.headers["dlqDeliveryCount"] for each in dead(node, name)] == ["3"]


def test_both_counts_outlive_the_node(store, name):
    rejected, abandoned = f"twice.rejected.{name}", f"twice.abandoned.{name}"
    broker = f"lasting-{name}"
    running = RunningNode(config(broker), store.url)
    client = StompClient(running.port)
    client.send(f"/queue/{rejected}", "a", persistent="true")
    client.send(f"/queue/{abandoned}", "b", persistent="true")
    consumer_dies(running, abandoned)
    consumer_dies(running, abandoned)
    client.leave()
    rejects = RawClient(running.port)
    rejects.tell("SUBSCRIBE", {"id": "s", "destination": f"/queue/{rejected}", "ack": "client-individual"})
    ack = rejects.hear().headers["ack"].encode()
    # in one piece: it is gone before the message comes again, which would be one more death
    rejects.write(b"NACK\nid:%b\n\n\0UNSUBSCRIBE\nid:s\nreceipt:r\n\n\0" % ack)
    assert rejects.hear().headers["receipt-id"] == "r"
    rejects.close()
    running.stop()
    again = RunningNode(config(broker), store.url)
    wait_until(lambda: again.depth(rejected) == 1, "it came back")
    assert consumer_dies(again, rejected)["JMSXDeliveryCount"] == "2"
    assert consumer_dies(again, abandoned)["JMSXDeliveryCount"] == "3"
    wait_until(lambda: len(dead(again, abandoned)) == 1, "it is given up")
    again.stop()


def test_non_persistent_messages_get_another_chance_too_and_are_counted_when_they_are_dropped(connect, node, name):
    name = f"twice.{name}"
    client = connect()
    client.send(f"/queue/{name}", "poison")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    for _ in range(3):
        client.nack(client.take()[0])
    assert dead(node, name) == []
    assert node.numbers(queue(name)).DroppedCount == 1


def test_what_fails_in_the_end_may_be_dropped(store, name):
    plan = replace(REDELIVERY, send_to_dlq_if_max_retries_exceeded=False, fallback_to_dead_letter=False)
    running = RunningNode(config(f"dropping-{name}", plan), store.url)
    client = StompClient(running.port)
    for place, deliveries in ((f"twice.{name}", 3), (f"other.{name}", 1)):
        client.send(f"/queue/{place}", "poison", persistent="true")
        client.subscribe(f"/queue/{place}", id=place, ack="client-individual")
        for _ in range(deliveries):
            client.nack(client.take()[0])
        assert running.numbers(queue(place)).DroppedCount == 1
    consumer_dies_often = f"twice.dies.{name}"
    client.send(f"/queue/{consumer_dies_often}", "killer", persistent="true")
    for _ in range(3):
        consumer_dies(running, consumer_dies_often)
    assert running.numbers(queue(consumer_dies_often)).DroppedCount == 1
    assert running.depth(DLQ) == 0
    client.leave()
    running.stop()
