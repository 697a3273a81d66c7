"""How many messages consumers of OpenWire hold: prefetches, their policies and changes, and pulls."""

import time
from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import (
    ConsumerControl,
    ConsumerId,
    MessageDispatch,
    MessagePull,
    RemoveInfo,
    Response,
)
from brokerapp.openwire.session.consumers import AckType
from tests.protocol.openwire_client import OpenWireClient, queue, text_of, topic
from tests.protocol.running_node import RunningNode, node_of

XML = """
<broker brokerName="openwire-windows">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="FEW.>" queuePrefetch="2" queueBrowserPrefetch="1"/>
    <policyEntry queue="NONE.>" queuePrefetch="0"/>
    <policyEntry topic="FEW.>" topicPrefetch="2" durableTopicPrefetch="1"/>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:0"/></transportConnectors>
</broker>"""
#: Milliseconds; of a pull that waits for ever, and of one that does not wait.
FOR_EVER, NOT_AT_ALL = 0, -1


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def client(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as connected:
        yield connected


def pull(client: OpenWireClient, consumer: ConsumerId, timeout: int = NOT_AT_ALL) -> None:
    client.tell(MessagePull(consumer_id=consumer, destination=queue("any"), timeout=timeout))


def test_a_pull_that_does_not_wait_is_answered_at_once_by_what_there_is_or_by_nothing(client, name):
    consumer = client.consumer(1, queue(name), prefetch=0)
    client.send(queue(name), "a", "b")
    answers, began = [], time.monotonic()
    for _ in range(3):
        pull(client, consumer)
        answers.append(client.next(MessageDispatch))
        if answers[-1].message is not None:
            client.acknowledge(answers[-1])
    assert [text_of(each) for each in answers] == ["a", "b", None]
    assert answers[-1].consumer_id == consumer
    assert time.monotonic() - began < 5


def test_a_pull_that_does_not_wait_finds_what_only_the_store_holds(client, name):
    client.send(queue(name), *map(str, range(3)))
    other = client.consumer(1, queue(name), selector="JMSType = 'nobody'")
    assert other
    consumer = client.consumer(2, queue(name), prefetch=0)
    for number in range(3):
        pull(client, consumer)
        assert text_of(client.next(MessageDispatch)) == str(number)
    pull(client, consumer)
    assert client.next(MessageDispatch).message is None


def test_a_pull_with_a_timeout_ends_in_time_and_one_without_waits(client, name):
    consumer = client.consumer(1, queue(name), prefetch=0)
    began = time.monotonic()
    pull(client, consumer, 200)
    assert client.next(MessageDispatch).message is None
    assert 0.15 < time.monotonic() - began < 10
    pull(client, consumer, FOR_EVER)
    client.send(queue(name), "late", "not asked for")
    assert client.texts(1) == ["late"]


def test_each_of_several_pulls_is_answered_once(client, name):
    consumer = client.consumer(1, queue(name), prefetch=0)
    for _ in range(3):
        pull(client, consumer, 300)
    client.send(queue(name), "only")
    assert client.texts(3) == ["only", None, None]


def test_pulls_that_were_answered_are_not_waited_for_until_their_time_is_over(node, client, name):
    consumer = client.consumer(1, queue(name), prefetch=0)
    before = node.look(lambda: _waiting(node))
    client.send(queue(name), *map(str, range(20)))
    for _ in range(20):
        pull(client, consumer, timeout=3_600_000)
        client.acknowledge(client.next(MessageDispatch))
    pull(client, consumer, timeout=3_600_000)
    client.send(queue(f"{name}.other"), "handled behind it")
    assert node.look(lambda: _waiting(node)) == before + 1
    client.ask(RemoveInfo(object_id=consumer))
    assert node.look(lambda: _waiting(node)) == before


def _waiting(node: RunningNode) -> int:
    """Timers of the node that are due in about an hour."""
    soon = time.time() * 1000 + 3_000_000
    return sum(each.call is not None and each.due_ms > soon for each in node.node.broker.timers._heap)


def test_what_was_pulled_and_not_acknowledged_stays_with_its_consumer_when_it_pulls_again(client, name):
    consumer = client.consumer(1, queue(name), prefetch=0)
    client.send(queue(name), "a", "b", "c")
    held = []
    for _ in range(3):
        pull(client, consumer)
        held.append(client.next(MessageDispatch))
    assert [text_of(each) for each in held] == ["a", "b", "c"]
    for each in held:
        client.acknowledge(each, AckType.INDIVIDUAL)
    client.send(queue(name), "d")
    assert client.texts(0) == []


@pytest.mark.parametrize(
    ("prefetch", "got"), [(1000, 2), (999, 5)], ids=["what clients ask for by themselves", "another number"]
)
def test_a_policy_decides_for_consumers_that_ask_for_the_usual_prefetch(client, name, prefetch, got):
    client.send(queue(f"FEW.{name}"), *"abcde")
    client.consumer(1, queue(f"FEW.{name}"), prefetch)
    assert len(client.dispatches(got)) == got


@pytest.mark.parametrize(("prefetch", "fields", "got"), [(32766, {}, 2), (100, {"subscription_name": "s"}, 1)])
def test_a_policy_decides_for_subscribers_of_topics(client, name, prefetch, fields, got):
    client.consumer(1, topic(f"FEW.{name}"), prefetch, **fields)
    client.send(topic(f"FEW.{name}"), *"abcde")
    assert len(client.dispatches(got)) == got


def test_a_client_is_told_to_pull_where_a_policy_gives_it_no_prefetch(client, name):
    consumer = client.consumer(1, queue(f"NONE.{name}"))
    assert client.next(ConsumerControl) == ConsumerControl(consumer_id=consumer, prefetch=0)
    client.send(queue(f"NONE.{name}"), "a")
    pull(client, consumer)
    assert client.texts(1) == ["a"]


def test_a_client_changes_the_prefetch_of_a_consumer(client, name):
    consumer = client.consumer(1, queue(name), prefetch=1)
    client.send(queue(name), *"abcde")
    assert client.texts(1) == ["a"]
    client.tell(ConsumerControl(consumer_id=consumer, destination=queue(name), prefetch=3))
    b, c = client.dispatches(2)
    client.tell(ConsumerControl(consumer_id=consumer, destination=queue(name), prefetch=1))
    client.acknowledge(b)
    client.acknowledge(c)
    assert client.texts(0) == []


def test_a_change_of_a_window_is_answered_where_its_client_wants_that(client, name):
    consumer = client.consumer(1, queue(name), prefetch=1)
    client.send(queue(name), "a", "b")
    [first] = client.dispatches(1)
    assert type(client.acknowledge(first, AckType.DELIVERED)) is Response
    assert type(client.ask(ConsumerControl(consumer_id=consumer, prefetch=5))) is Response
    assert client.texts(1) == ["b"]
