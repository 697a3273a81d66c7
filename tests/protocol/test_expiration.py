"""Test expiration of messages that are waiting, in flight or requested."""

import time
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

DLQ = "ActiveMQ.DLQ"


@pytest.fixture(scope="module")
def node(store):
    """A node that looks ten times a second, and never at `kept.>`."""
    policies = (
        PolicyEntry(Destination.queue(">"), expire_messages_period=100, max_expire_page_size=7),
        PolicyEntry(Destination.queue("kept.>"), expire_messages_period=0),
    )
    config = replace(
        default_config("expiring", 0),
        definitions=Definitions(policies=policies),
        destinations=(Destination.queue(DLQ),),
    )
    running = RunningNode(config, store.url)
    yield running
    running.stop()


def in_ms(milliseconds):
    return str(int(time.time() * 1000) + milliseconds)


def dead(node, name):
    """Bodies of the dead letters that came from a queue."""
    return [each.body.decode() for each in node.browse(DLQ) if each.original_destination == f"/queue/{name}"]


@pytest.mark.scenario("ST-32", "DL-06")
def test_what_nobody_reads_expires_and_is_counted(connect, node, name):
    client = connect()
    for number in range(100):
        client.send(f"/queue/{name}", str(number), wait=False, persistent="true", expires=in_ms(300))
    client.send(f"/queue/{name}", "stays", persistent="true")
    wait_until(lambda: node.depth(name) == 1, "all but one are expired")
    numbers = node.numbers(Destination.queue(name))
    assert (numbers.EnqueueCount, numbers.ExpiredCount, numbers.DequeueCount) == (101, 100, 100)
    assert node.bodies(name) == ["stays"]
    assert sorted(map(int, dead(node, name))) == list(range(100))


@pytest.mark.scenario("Q11")
def test_expired_dead_letters_say_where_they_were_and_expire_no_more(connect, node, name):
    connect().send(f"/queue/{name}", "late", persistent="true", expires=(expires := in_ms(200)))
    wait_until(lambda: dead(node, name), "it is a dead letter")
    [letter] = [each for each in node.browse(DLQ) if each.original_destination == f"/queue/{name}"]
    assert letter.headers["expires"] == "0"
    assert letter.headers["originalExpiration"] == expires


def test_non_persistent_messages_expire_without_a_trace(connect, node, name):
    connect().send(f"/queue/{name}", "late", expires=in_ms(200))
    wait_until(lambda: node.numbers(Destination.queue(name)).ExpiredCount == 1, "it is expired")
    assert node.depth(name) == 0
    assert dead(node, name) == []


def test_what_arrives_late_is_a_dead_letter_at_once_even_where_nobody_looks(connect, node):
    connect().send("/queue/kept.arrival", "late", persistent="true", expires=in_ms(-1000))
    wait_until(lambda: dead(node, "kept.arrival") == ["late"], "it is a dead letter")
    assert node.depth("kept.arrival") == 0


def test_what_arrives_late_in_a_transaction_is_a_dead_letter_after_commit(connect, node):
    client = connect()
    client.frame("BEGIN", transaction="t")
    client.send("/queue/kept.commit", "late", persistent="true", expires=in_ms(-1000), transaction="t")
    client.frame("COMMIT", transaction="t")
    wait_until(lambda: dead(node, "kept.commit") == ["late"], "it is a dead letter")


def test_a_period_of_zero_leaves_queues_alone_until_somebody_asks(connect, node):
    client = connect()
    client.send("/queue/kept.here", "late", persistent="true", expires=in_ms(100))
    client.send("/queue/kept.here", "good", persistent="true")
    client.send("/queue/looked.at", "late", persistent="true", expires=in_ms(300))
    wait_until(lambda: dead(node, "looked.at"), "another queue was swept after it was late")
    assert node.depth("kept.here") == 2
    client.subscribe("/queue/kept.here")
    assert client.bodies() == ["good"]
    wait_until(lambda: dead(node, "kept.here") == ["late"], "it was late when somebody asked")


def test_a_browser_finds_what_is_late_too(connect, node):
    client = connect()
    client.send("/queue/kept.browsed", "late", persistent="true", expires=(expires := in_ms(100)))
    wait_until(lambda: int(expires) < time.time() * 1000, "it is late")
    client.subscribe("/queue/kept.browsed", browser="true")
    assert client.take()[0].headers["browser"] == "end"
    wait_until(lambda: dead(node, "kept.browsed") == ["late"], "it was late when somebody looked")


@pytest.mark.scenario("Q20")
def test_what_a_consumer_holds_expires_when_it_comes_back(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.send(f"/queue/{name}", "held", persistent="true", expires=in_ms(400))
    [message] = client.take()
    wait_until(lambda: int(message.headers["expires"]) < time.time() * 1000 - 300, "it is late, and was looked at")
    assert node.numbers(Destination.queue(name)).InFlightCount == 1
    client.unsubscribe()
    wait_until(lambda: dead(node, name) == ["held"], "it is a dead letter")


def test_what_is_acked_late_is_acked(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.send(f"/queue/{name}", "held", persistent="true", expires=in_ms(300))
    [message] = client.take()
    wait_until(lambda: int(message.headers["expires"]) < time.time() * 1000 - 200, "it is late, and was looked at")
    client.ack(message)
    assert node.depth(name) == 0
    assert dead(node, name) == []


@pytest.mark.scenario("DL-06")
def test_paused_queues_are_swept_when_they_are_resumed(connect, node, name):
    client = connect()
    client.send(f"/queue/{name}", "late", persistent="true", expires=in_ms(300))
    log = node.node.broker.queues[f"queue://{name}"]
    node.look(lambda: setattr(log, "paused", True))
    client.send(f"/queue/{name}.other", "late", persistent="true", expires=in_ms(500))
    wait_until(lambda: dead(node, f"{name}.other"), "another queue was swept after it was late")
    assert node.depth(name) == 1
    node.look(lambda: setattr(log, "paused", False))
    wait_until(lambda: dead(node, name) == ["late"], "it is a dead letter")


def test_copies_of_a_virtual_topic_expire_each_by_itself(connect, node, name):
    queues = [f"Consumer.{each}.VirtualTopic.{name}" for each in "AB"]
    for queue in queues:
        connect().subscribe(f"/queue/{queue}", ack="client", prefetch=0)
    connect().send(f"/topic/VirtualTopic.{name}", "late", persistent="true", expires=in_ms(300))
    for queue in queues:
        wait_until(lambda queue=queue: dead(node, queue) == ["late"], f"{queue} lost it")
    assert node.stored_payloads() == 0


@pytest.mark.scenario("DL-02")
def test_dead_letters_that_expire_do_not_go_round(connect, node):
    client = connect()
    client.send(f"/queue/{DLQ}", "in the end", persistent="true", expires=in_ms(200))
    wait_until(lambda: node.numbers(Destination.queue(DLQ)).ExpiredCount, "it is expired")
    assert "in the end" not in node.bodies(DLQ)


def test_a_new_policy_changes_how_often_is_looked(connect, node):
    client = connect()

    def put(period):
        async def change(admin):
            current = await admin.definitions()
            policy = PolicyEntry(Destination.queue("changing"), expire_messages_period=period)
            others = tuple(each for each in current.policies if each.id != policy.id)
            return await admin.define(replace(current, policies=(*others, policy)), "test")

        node.wait_for_definitions(node.ask(change).version)

    put(0)
    client.send("/queue/changing", "late", persistent="true", expires=in_ms(100))
    client.send("/queue/looked.at", "late", persistent="true", expires=in_ms(300))
    wait_until(lambda: node.depth("looked.at") == 0, "another queue was swept after it was late")
    assert node.depth("changing") == 1
    put(150)
    wait_until(lambda: node.depth("changing") == 0, "it is expired")
