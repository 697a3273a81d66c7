"""Test that a bridge waits at a full destination, and that nothing is left when it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokerapp.core.flow_control import producer_flow
from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.clients import RawClient
from tests.protocol.networking import bridged, running, to, wait_for_demand
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

ROOM = 10  # messages that have some, about
BODY = b"x" * 1024
LIMIT = ROOM * len(BODY)


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    """Where queues have little room, and clients are told at once."""
    policy = PolicyEntry(Destination.queue("small.>"), store_limit=LIMIT, send_fail_if_no_space=True)
    with running(store, definitions=Definitions(policies=(policy,))) as node:
        yield node


@pytest.fixture
def bridge(raw, name) -> RawClient:
    """The bridge of another broker, which consumes, too."""
    made = raw(**{"sluice-broker": "far", "client-id": name})
    made.tell("SUBSCRIBE", {"destination": f"/queue/none.{name}", "id": "1", "ack": "auto"})
    return made


def hand_over(bridge: RawClient, queue: str, count: int) -> None:
    """So many messages as a bridge sends them."""
    for number in range(count):
        about = {"message-id": f"far:{number}", "receipt": str(number), "number": str(number)}
        origin = {"sluice-path": "far", "persistent": "true", "content-length": str(len(BODY))}
        bridge.write(encode("SEND", {"destination": f"/queue/{queue}", **about, **origin}, BODY))


def waiting_at(node: RunningNode) -> int:
    """Bytes that wait for room."""
    return node.look(lambda: node.node.broker.flow_control.bytes)


@pytest.mark.scenario("NB-47", "NB-50")
def test_a_bridge_waits_whatever_policies_say_and_with_more_than_clients_may(raw, node, name, bridge, monkeypatch):
    monkeypatch.setattr(producer_flow, "MAX_WAITING", ROOM)
    queue, consumer, count = f"small.{name}", raw(), 5 * ROOM
    hand_over(bridge, queue, count)
    wait_until(lambda: waiting_at(node) > 3 * LIMIT, "what has no room waits")
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": "1", "ack": "auto"})
    assert [consumer.hear().headers["number"] for _ in range(count)] == list(map(str, range(count)))
    assert [bridge.hear().headers.get("receipt-id") for _ in range(count)] == list(map(str, range(count)))


def test_what_a_bridge_waited_with_is_forgotten_when_it_goes_as_it_comes_again(node, name, bridge):
    hand_over(bridge, f"small.{name}", 5 * ROOM)
    wait_until(lambda: waiting_at(node) > 3 * LIMIT, "what has no room waits")
    bridge.close()
    wait_until(lambda: waiting_at(node) == 0, "nothing waits")
    assert node.depth(f"small.{name}") <= ROOM


@pytest.mark.scenario("NB-47")
@pytest.mark.parametrize("sync", ["true", "false"])
def test_what_has_no_room_at_the_other_broker_keeps_nothing_else_of_the_bridge_waiting(
    store, node, connect, name, sync
):
    slow, fast, count = f"small.{name}", f"fast.{name}", 5 * ROOM
    with running(store, to(node.port, alwaysSyncSend=sync)) as source:
        wait_until(lambda: bridged(source), "the bridge")
        consumers = {each: connect(port=node.port) for each in (slow, fast)}
        consumers[slow].subscribe(f"/queue/{slow}", ack="client-individual", prefetch=1)
        consumers[fast].subscribe(f"/queue/{fast}")
        wait_for_demand(source, f"queue://{slow}", f"queue://{fast}")
        sender = connect(port=source.port)
        for number in range(count):
            for queue in (slow, fast):
                sender.send(f"/queue/{queue}", str(number).ljust(len(BODY)), wait=False, persistent="true")
        assert [int(each) for each in consumers[fast].bodies(count)] == list(range(count))
        wait_until(lambda: waiting_at(node) > 0, "what has no room waits")
        assert source.depth(slow) > 0
        for number in range(count):
            [message] = consumers[slow].take()
            assert int(message.body) == number
            consumers[slow].ack(message, wait=False)
        wait_until(lambda: source.depth(slow) == 0, "all has crossed")
        [way] = source.ask(lambda admin: admin.networks.stats()).connectors[0].ways
        assert way.connections == 1


def test_a_bridge_that_is_back_takes_the_place_of_its_dead_connection_and_nobody_else_does(raw, name):
    def answer(way: str | None, **headers: str) -> str:
        client = raw(None)
        said = {"sluice-broker": "far", "client-id": name, **({"sluice-way": way} if way else {}), **headers}
        client.tell("CONNECT", {"accept-version": "1.2", "host": "/", **said})
        return client.hear().command

    first = raw(**{"sluice-broker": "far", "client-id": name, "sluice-way": "tcp://here:1"})
    assert [answer(None), answer("tcp://here:2"), answer("tcp://here:1", **{"sluice-broker": ""})] == ["ERROR"] * 3
    assert answer("tcp://here:1") == "CONNECTED"
    assert first.is_closed()
