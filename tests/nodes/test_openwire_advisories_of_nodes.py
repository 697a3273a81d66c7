"""Test that a JMS client at any node hears once of what comes and goes at any node."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from brokerapp.config.parsing.broker_config import TransportConnector
from brokerapp.openwire.commands import (
    ConnectionId,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    MessageDispatch,
    OpenWireDestination,
    ProducerId,
    ProducerInfo,
    RemoveInfo,
)
from brokerapp.openwire.commands import data_types as t
from tests.nodes.conftest import several_nodes
from tests.protocol.openwire_client import OpenWireClient, queue, topic
from tests.waiting import wait_until

CONNECTORS = (TransportConnector("openwire", "tcp", "127.0.0.1", 0),)
KINDS = {"Queue": t.QUEUE, "Topic": t.TOPIC, "TempQueue": t.TEMP_QUEUE, "TempTopic": t.TEMP_TOPIC}
ADDED, REMOVED = 0, 1
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker(redis_url):
    with several_nodes(redis_url, "a", "b", connectors=CONNECTORS) as several:
        yield several


class Listener:
    """A JMS client that listens to an advisory topic."""

    def __init__(self, port: int, event: str) -> None:
        self._client = OpenWireClient(port)
        self._client.consumer(1, topic(f"ActiveMQ.Advisory.{event}"))

    def hear(self) -> tuple[str, str] | None:
        """The next that comes: what began or ended, and its id."""
        dispatch = self._client.next(MessageDispatch, seconds=0.3)
        return None if dispatch is None else _told(dispatch.message.data_structure)

    def hear_until(self, *last: tuple[str, str]) -> Counter[tuple[str, str]]:
        """All that comes until each of the last has."""
        heard: Counter[tuple[str, str]] = Counter()

        def is_done() -> bool:
            if (told := self.hear()) is not None:
                heard[told] += 1
            return all(heard[each] for each in last)

        wait_until(is_done, "the last advisories")
        return heard

    def close(self) -> None:
        self._client.close()


def _told(data) -> tuple[str, str]:
    match data:
        case DestinationInfo():
            return ("begins", "ends")[data.operation_type], data.destination.physical_name
        case RemoveInfo():
            return "ends", str(data.object_id)
        case ConsumerInfo():
            return "begins", str(data.consumer_id)
        case ProducerInfo():
            return "begins", str(data.producer_id)
        case ConnectionInfo():
            return "begins", str(data.connection_id)
    raise AssertionError(data)


def create(client: OpenWireClient, kind: str, name: str) -> OpenWireDestination:
    """Let a destination exist; a temporary one is the client's own."""
    if not kind.startswith("Temp"):
        destination = OpenWireDestination(KINDS[kind], name)
        client.consumer(next(_numbers), destination)
        return destination
    destination = OpenWireDestination(KINDS[kind], f"{client.connection_id}:{next(_numbers)}")
    id = ConnectionId(client.connection_id)
    client.ask(DestinationInfo(connection_id=id, destination=destination, operation_type=ADDED))
    return destination


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("here", "there"), ["ab", "ba"])
def test_a_destination_that_several_nodes_use_begins_and_ends_once(broker, name, kind, here, there):
    with OpenWireClient(broker[here].port) as first, OpenWireClient(broker[there].port) as second:
        listeners = [Listener(broker[each].port, kind) for each in (here, there)]
        destination = create(first, kind, f"{name}.{kind}")
        second.consumer(next(_numbers), destination)
        second.send(destination, "x")
        first.send(destination, "y")
        lasts = [("begins", create(each, kind, f"{name}.{next(_numbers)}").physical_name) for each in (first, second)]
        named = destination.physical_name
        listeners.append(Listener(broker[there].port, kind))
        for heard in [each.hear_until(*lasts) for each in listeners]:
            assert heard["begins", named] == 1
        if kind.startswith("Temp"):
            first.close()
            last = create(second, kind, "").physical_name
            for heard in [each.hear_until(("ends", named), ("begins", last)) for each in listeners]:
                assert heard["ends", named] == 1
            assert all(each.hear() != ("ends", named) for each in listeners)
        for each in listeners:
            each.close()


@pytest.mark.parametrize("event", ["Connection", "Consumer.Queue.{}", "Producer.Queue.{}", "Producer.Topic.{}"])
def test_what_clients_of_one_node_have_is_told_at_all_whenever_one_listens(broker, name, event):
    where, event = (topic if "Topic" in event else queue)(name), event.format(name)
    early = [Listener(broker[node].port, event) for node in "ab"]
    with OpenWireClient(broker["b"].port) as client:
        client.consumer(1, where)
        id = ProducerId(client.connection_id, 1, 1)
        client.ask(ProducerInfo(producer_id=id, destination=where))
        late = [Listener(broker[node].port, event) for node in "ab"]
        subject = client.connection_id if event == "Connection" else f"{client.connection_id}:1:1"
        for each in (*early, *late):
            assert each.hear_until(("begins", subject))["begins", subject] == 1
    for each in (*early, *late):
        assert each.hear_until(("ends", subject))["ends", subject] == 1
        each.close()


def test_what_a_node_had_ends_when_it_dies_and_what_others_have_too_goes_on(redis_url):
    with several_nodes(redis_url, "a", "b", connectors=CONNECTORS) as broker:
        shared, alone = "shared", "alone"
        with OpenWireClient(broker["a"].port) as here, OpenWireClient(broker["b"].port) as there:
            create(here, "Topic", shared)
            create(there, "Topic", shared)
            create(there, "Topic", alone)
            replies = [create(there, kind, "") for kind in ("TempQueue", "TempTopic")]
            for each in replies:
                here.send(each, "while it is there")
            listener = Listener(broker["a"].port, "Topic")
            assert listener.hear_until(("begins", shared), ("begins", alone)).total() == 2
            broker.crash("b")
            assert listener.hear_until(("ends", alone)) == {("ends", alone): 1}
            for each in replies:
                refused = here.message(each, "late")
                wait_until(lambda message=refused: isinstance(here.ask(message), ExceptionResponse), "it is refused")
            create(here, "Topic", "next")
            assert listener.hear_until(("begins", "next")) == {("begins", "next"): 1}
            listener.close()
