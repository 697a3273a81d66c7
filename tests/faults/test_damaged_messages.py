"""Test that stored messages whose bytes changed on disk are never delivered as if intact."""

import pytest

from brokerapp.config import default_config
from brokerapp.core.redelivery.dead_lettering import DAMAGED
from brokerapp.engine.policy.broker_headers import CAUSE
from brokerapp.model.destination import Destination
from brokerapp.model.stored_message import DAMAGED_HEADER
from brokerapp.store.server.embedded import EmbeddedStore
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode, named
from tests.waiting import wait_until

SPOILT = b"spoil this"
DLQ = "/queue/ActiveMQ.DLQ"


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """A node on a store in which the bodies of some messages changed while it was down."""
    folder = tmp_path_factory.mktemp("spoilt") / "store"
    config = default_config("spoilt", 0)
    with EmbeddedStore(folder) as store:
        node = RunningNode(config, store.url)
        client = StompClient(node.port)
        for queue in ("plain", "chosen", "browsed", "moved", "copied", "stepped", "ActiveMQ.DLQ"):
            for body in ("first", SPOILT, "last"):
                client.send(f"/queue/{queue}", body, persistent="true", kind="some")
        for name in "AB":
            client.subscribe(f"/queue/Consumer.{name}.VirtualTopic.T", id=name)
            client.unsubscribe(name)
        client.send("/topic/VirtualTopic.T", SPOILT, persistent="true")
        client.send("/queue/later", SPOILT, persistent="true", AMQ_SCHEDULED_DELAY="100000000")
        client.connection.disconnect()
        node.stop()
    for file in (folder / "appendonlydir").glob("*.incr.aof"):
        file.write_bytes(file.read_bytes().replace(SPOILT, b"spoil thus"))
    with EmbeddedStore(folder) as store:
        node = RunningNode(config, store.url)
        yield node
        node.stop()


@pytest.fixture
def client(spoilt):
    made = StompClient(spoilt.port)
    yield made
    made.connection.disconnect()


def dead(node, queue):
    """The dead letters that failed in a queue, as the store has them."""
    found = node.browse("ActiveMQ.DLQ")
    return [each for each in found if each.headers.get("original-destination") == f"/queue/{queue}"]


@pytest.mark.parametrize(("queue", "selector"), [("plain", {}), ("chosen", {"selector": "kind = 'some'"})])
def test_a_consumer_gets_the_others_and_the_damaged_one_is_a_dead_letter(spoilt, client, queue, selector):
    client.subscribe(f"/queue/{queue}", ack="client-individual", **selector)
    assert named(client.take(2)) == ["first", "last"]
    wait_until(lambda: len(dead(spoilt, queue)) == 1, "a dead letter")
    [letter] = dead(spoilt, queue)
    assert (letter.headers[CAUSE], letter.headers["kind"], letter.body) == (DAMAGED, "some", b"spoil thus")
    assert letter.headers[DAMAGED_HEADER] == "true"
    wait_until(lambda: spoilt.depth(queue) == 2, "it is no longer in its queue")
    assert not client.messages.qsize()


def test_all_copies_of_a_damaged_message_are_dead_letters(spoilt, client):
    for name in "AB":
        client.subscribe(f"/queue/Consumer.{name}.VirtualTopic.T", id=name)
    wait_until(lambda: all(dead(spoilt, f"Consumer.{name}.VirtualTopic.T") for name in "AB"), "two dead letters")
    assert not client.messages.qsize()


def test_a_browser_and_operators_see_that_it_is_damaged(spoilt, client):
    client.subscribe("/queue/browsed", id="b", browser="true")
    marks = [(message.body, message.headers.get(DAMAGED_HEADER)) for message in client.take(3)]
    assert marks == [("first", None), ("spoil thus", "true"), ("last", None)]
    assert [each.headers.get(DAMAGED_HEADER) for each in spoilt.browse("browsed")] == [None, "true", None]


def test_a_move_leads_it_to_the_dead_letters(spoilt):
    moved = Destination.queue("moved")
    spoilt.ask(lambda admin: admin.move(moved, Destination.queue("target")))
    assert spoilt.bodies("target") == ["first", "last"]
    assert [each.headers[CAUSE] for each in dead(spoilt, "moved")] == [DAMAGED]
    assert spoilt.bodies("moved") == []


def test_a_damaged_message_is_not_copied(spoilt):
    spoilt.ask(lambda admin: admin.copy(Destination.queue("copied"), Destination.queue("copies")))
    assert spoilt.bodies("copies") == ["first", "last"]


def test_a_scheduled_message_that_is_damaged_is_a_dead_letter(spoilt):
    [waiting] = spoilt.ask(lambda admin: admin.scheduled())[1]
    jobs = spoilt.node.broker.scheduled_jobs

    def due():
        spoilt.node.broker.commits.read_with(
            lambda store: store.schedules.read_jobs(0, waiting.due_ms, 0, 10), jobs._found
        )

    spoilt.look(due)
    wait_until(lambda: dead(spoilt, "later"), "a dead letter")
    assert dead(spoilt, "later")[0].headers[CAUSE] == DAMAGED
    assert spoilt.ask(lambda admin: admin.scheduled())[0] == 0


def test_a_step_with_a_damaged_message_is_refused_and_leaves_it(spoilt):
    queue, target = Destination.queue("stepped"), Destination.queue("stepped.on")
    numbers = [each.seq for each in spoilt.browse("stepped")]
    found = spoilt.ask(lambda admin: admin.step("move", queue, numbers, target, "ada"))
    outcomes = {each.seq: (each.outcome, each.detail) for each in found}
    assert outcomes[numbers[1]] == ("refused", DAMAGED)
    assert spoilt.bodies("stepped") == ["spoil thus"]


def test_what_is_damaged_in_a_dead_letter_queue_stays_there_with_its_cause(spoilt, client):
    client.subscribe(DLQ, ack="client-individual")
    wait_until(lambda: len(dead(spoilt, "ActiveMQ.DLQ")) == 1, "it says where it was damaged")
    [letter] = dead(spoilt, "ActiveMQ.DLQ")
    assert (letter.headers[CAUSE], letter.body) == (DAMAGED, b"spoil thus")
