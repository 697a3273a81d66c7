"""Clients of OpenWire at one node, queues at home at another."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.openwire.commands import ExceptionResponse, MessageDispatch, MessagePull, RemoveInfo, Response
from brokerapp.openwire.session.consumers import AckType
from tests.nodes.conftest import SeveralNodes, several_nodes
from tests.protocol.openwire_bridge import OpenWireBridge
from tests.protocol.openwire_client import OpenWireClient, queue, text_of
from tests.waiting import wait_until

#: Milliseconds: of a pull that waits for ever, and of one that does not wait.
FOR_EVER, NOT_AT_ALL = 0, -1


@pytest.fixture(scope="module")
def broker(redis_url) -> Iterator[SeveralNodes]:
    """A broker of two nodes that speak OpenWire."""
    [connector] = default_config("any", 0).connectors
    openwire = replace(connector, name="openwire", scheme="tcp")
    with several_nodes(redis_url, "a", "b", connectors=(openwire,)) as several:
        yield several


@pytest.fixture
def away(broker, name) -> Iterator[tuple[OpenWireClient, str]]:
    """A client of one node, and a queue at home at the other one."""
    with OpenWireClient(broker["a"].port) as client:
        yield client, broker.queue_at("b", name)


def test_a_pull_gets_a_message_from_another_node_or_hears_that_there_is_none(broker, away):
    client, name = away
    consumer = client.consumer(1, queue(name), prefetch=0)
    client.send(queue(name), *"abc")
    got = []
    for timeout in (FOR_EVER, 5000, FOR_EVER, NOT_AT_ALL, 200):
        client.tell(MessagePull(consumer_id=consumer, destination=queue(name), timeout=timeout))
        got.append(client.next(MessageDispatch))
        if got[-1].message is not None:
            client.acknowledge(got[-1])
    assert [text_of(each) for each in got] == ["a", "b", "c", None, None]
    client.send(queue(name), "not asked for")
    assert client.texts(0) == []
    with OpenWireClient(broker["b"].port) as other:
        other.consumer(1, queue(name))
        assert other.texts(1) == ["not asked for"]


def test_a_window_grows_at_another_node_by_what_the_application_has(away):
    client, name = away
    client.consumer(1, queue(name), prefetch=1)
    client.send(queue(name), *"abc")
    [first] = client.dispatches(1)
    client.acknowledge(first, AckType.DELIVERED)
    [second] = client.dispatches(1)
    client.acknowledge(first)
    assert client.dispatches(0) == []
    client.acknowledge(second)
    assert client.texts(1) == ["c"]


def test_what_the_application_did_not_see_returns_to_another_node_as_new(broker, away):
    client, name = away
    consumer = client.consumer(1, queue(name))
    client.send(queue(name), *"abc")
    seen = client.dispatches(3)[0].message.message_id.broker_sequence_id
    client.ask(RemoveInfo(object_id=consumer, last_delivered_sequence_id=seen))
    with OpenWireClient(broker["b"].port) as other:
        other.consumer(1, queue(name))
        assert [(text_of(each), each.redelivery_counter) for each in other.dispatches(3)] == [
            ("a", 1), ("b", 0), ("c", 0),
        ]  # fmt: skip


def test_a_poison_acknowledgement_makes_a_dead_letter_of_a_message_of_another_node(broker, away):
    client, name = away
    client.consumer(1, queue(name))
    client.send(queue(name), "bad")
    [bad] = client.dispatches(1)
    client.acknowledge(bad, AckType.POISON)
    wait_until(lambda: broker.depth(name) == 0, "it left its queue")
    client.consumer(2, queue("ActiveMQ.DLQ"))
    assert client.texts(1) == ["bad"]


def test_a_bridge_to_another_node_waits_for_the_one_that_its_broker_has_already(broker):
    with OpenWireBridge(broker["a"].port, "classic") as first:
        with OpenWireBridge(broker["b"].port, "classic") as second:
            assert isinstance(second.answer, ExceptionResponse)
        assert type(first.ask(first.bridged(queue("bridged"), "m", 1, "ID:1"))) is Response

    def is_let_in() -> bool:
        with OpenWireBridge(broker["b"].port, "classic") as next_one:
            return type(next_one.answer) is Response

    wait_until(is_let_in, "the next bridge")


def test_what_a_bridge_hands_over_again_at_another_node_is_kept_once(broker, name):
    target = queue(broker.queue_at("b", name))
    for node, id in (("a", "ID:1"), ("a", "ID:2"), ("b", "ID:3")):
        with OpenWireBridge(broker[node].port, f"handing-{node}", id) as bridge:
            bridge.ask(bridge.bridged(target, "m", 1, id))
    with OpenWireClient(broker["b"].port) as client:
        client.consumer(1, target)
        assert client.texts(2) == ["m", "m"], "one of each broker"
