"""Test consumers of JMS clients at several nodes: durable subscriptions, groups, exclusive consumers and the like."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokerapp.config.parsing.broker_config import TransportConnector
from brokerapp.openwire.commands import (
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    ExceptionResponse,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
)
from brokerapp.openwire.session.consumers import AckType
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.nodes.conftest import SeveralNodes, several_nodes
from tests.nodes.links.test_lost_links import without_links
from tests.protocol.openwire_client import OpenWireClient, OpenWireSocket, queue, text_of, topic

CONNECTORS = (TransportConnector("openwire", "tcp", "127.0.0.1", 0),)
OWNERS = pytest.mark.parametrize("owner", "ab")


@pytest.fixture(scope="module")
def broker(redis_url) -> Iterator[SeveralNodes]:
    with several_nodes(redis_url, "a", "b", connectors=CONNECTORS) as several:
        yield several


@pytest.fixture
def clients(broker) -> Iterator[tuple[OpenWireClient, OpenWireClient]]:
    with OpenWireClient(broker["a"].port) as here, OpenWireClient(broker["b"].port) as there:
        yield here, there


def subscribe(client: OpenWireClient, name: str) -> Response:
    """Consume from the durable subscription of this name, of the topic of this name."""
    id = ConsumerId(client.connection_id, 1, 1)
    return client.ask(ConsumerInfo(consumer_id=id, destination=topic(name), prefetch_size=100, subscription_name=name))


def disconnect(client: OpenWireClient) -> None:
    """Log out: the client id may be used at another node at once."""
    assert type(client.ask(RemoveInfo(object_id=ConnectionId(client.connection_id)))) is Response


def test_a_durable_subscription_goes_on_at_another_node_and_is_removed_at_any(broker, name):
    for node, other, text in (("a", "b", "1"), ("b", "a", "2"), ("a", "b", "3")):
        with OpenWireClient(broker[node].port, client_id=name) as subscriber:
            assert type(subscribe(subscriber, name)) is Response
            with OpenWireClient(broker[other].port) as producer:
                producer.send(topic(name), text)
            texts = [str(number) for number in range(1, int(text) + 1)]
            assert subscriber.texts(len(texts)) == texts
            disconnect(subscriber)
    with OpenWireClient(broker["b"].port, client_id=name) as subscriber:
        id = ConnectionId(subscriber.connection_id)
        removed = RemoveSubscriptionInfo(connection_id=id, client_id=name, subscription_name=name)
        assert type(subscriber.ask(removed)) is Response
        disconnect(subscriber)
    with OpenWireClient(broker["a"].port, client_id=name) as subscriber:
        subscribe(subscriber, name)
        assert subscriber.texts(0) == []


def test_a_client_id_in_use_at_another_node_is_refused(broker, name):
    with OpenWireClient(broker["b"].port, client_id=name), OpenWireSocket(broker["a"].port) as second:
        second.write(WireFormatOptions().to_info())
        answer = second.connect(client_id=name)
        assert isinstance(answer, ExceptionResponse)
        assert answer.exception.class_name == "javax.jms.InvalidClientIDException"


@OWNERS
def test_groups_stay_with_one_consumer_of_any_node_until_it_is_gone(broker, clients, name, owner):
    where, (here, there) = queue(broker.queue_at(owner, name)), clients
    for each in clients:
        each.consumer(1, where)
    for number in range(8):
        here.ask(here.message(where, f"{number % 4}", group_id=str(number % 4), group_sequence=number // 4 + 1))
    first = here.texts(4)
    second = there.texts(8 - len(first))
    assert sorted(first + second) == sorted("01230123")
    assert set(first).isdisjoint(second)
    assert first
    assert second
    there.close()
    assert sorted(here.texts(len(second))) == sorted(second)


@OWNERS
def test_an_exclusive_consumer_gets_all_and_one_of_another_node_is_its_stand_by(broker, clients, name, owner):
    where, (here, there) = queue(broker.queue_at(owner, name)), clients
    for each in clients:
        each.consumer(1, where, exclusive=True)
    there.send(where, *"1234")
    assert here.texts(4) == list("1234")
    assert there.texts(0) == []
    here.close()
    assert there.texts(4) == list("1234")


def test_a_consumer_is_confirmed_once_the_owner_of_its_queue_knows_it(broker, clients, name):
    name, (here, there) = broker.queue_at("b", name), clients
    where = queue(name)
    there.send(where, "0")  # all nodes know the queue before the link is lost
    without_links(broker["a"], True)
    try:
        info = ConsumerInfo(consumer_id=ConsumerId(here.connection_id, 1, 1), destination=where, prefetch_size=10)
        info.exclusive = info.response_required = True
        here.tell(info)
        assert here.next(Response, info.command_id, seconds=0.5) is None
        there.consumer(1, where, exclusive=True)
    finally:
        without_links(broker["a"], False)
    assert type(here.next(Response, info.command_id)) is Response
    there.send(where, "1")
    assert (there.texts(2), here.texts(0)) == (["0", "1"], [])
    there.close()
    assert here.texts(2) == ["0", "1"]


@OWNERS
def test_a_consumer_of_higher_priority_at_another_node_is_served_first(broker, clients, name, owner):
    where, (here, there) = queue(broker.queue_at(owner, name)), clients
    here.consumer(1, where, priority=1)
    there.consumer(1, where, prefetch=2, priority=5)
    there.send(where, *"1234")
    assert (here.texts(2), there.texts(2)) == (["3", "4"], ["1", "2"])


@OWNERS
def test_individual_and_poison_acknowledgements_and_a_browser_at_another_node(broker, clients, name, owner):
    where, (here, _) = queue(broker.queue_at(owner, name)), clients
    here.send(where, *"1234")
    here.consumer(1, where, browser=True)
    assert here.texts(5) == [*"1234", None]
    here.consumer(2, where, prefetch=2)
    held = here.dispatches(2)
    here.acknowledge(held[1], AckType.INDIVIDUAL)
    held += here.dispatches(1)
    assert text_of(held[2]) == "3"
    here.acknowledge(held[0], AckType.POISON)
    assert here.texts(1) == ["4"]
