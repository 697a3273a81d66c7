"""Test a bridge to ActiveMQ whose link breaks or which is killed: nothing is lost or duplicated."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.destination import Destination
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.store.server.embedded import EmbeddedStore
from tests.interop.activemq_server import ActiveMQ, needs_activemq
from tests.interop.proxy import Proxy
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, needs_activemq]
OUT, IN = Destination.queue("moved.there"), Destination.queue("moved.here")
QUICK = "?initialReconnectDelay=100&useExponentialBackOff=false"


@pytest.fixture(scope="module", params=["stomp", "tcp"], ids=["STOMP", "OpenWire"])
def scheme(request) -> str:
    """By what the bridge goes."""
    return request.param


@pytest.fixture(scope="module")
def activemq(tmp_path_factory, scheme) -> Iterator[ActiveMQ]:
    running = ActiveMQ(tmp_path_factory.mktemp("activemq"))
    running.plain("classic")
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def proxy(activemq, scheme) -> Iterator[Proxy]:
    between = Proxy(activemq.port if scheme == "stomp" else activemq.openwire_port)
    yield between
    between.close()


@pytest.fixture(scope="module")
def ours(tmp_path_factory, proxy, scheme) -> Iterator[RunningNode]:
    """With a bridge through the proxy, for which it does not matter who consumes."""
    connector = NetworkConnector(
        "bridge", f"static:({scheme}://127.0.0.1:{proxy.port}){QUICK}", statically_included=(OUT, IN),
        options=(("duplex", "true"), ("staticBridge", "true")),
    )  # fmt: skip
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as store:
        node = RunningNode(replace(default_config("ours", 0), network_connectors=(connector,)), store.url)
        wait_for_bridge(node)
        yield node
        node.stop()


def wait_for_bridge(node: RunningNode) -> None:
    wait_until(lambda: node.look(lambda: bool(node.node.network.connections[0].bridges)), "the bridge")


def send(port: int, queue: Destination, *bodies: str) -> None:
    client = StompClient(port)
    for each in bodies:
        client.send(queue.stomp, each, persistent="true")
    client.leave()


def crossed(ours: RunningNode, activemq: ActiveMQ) -> list[str]:
    """The bodies that are at the ActiveMQ when one more crosses, which is the last of all."""
    send(ours.port, OUT, "last")
    client, got = StompClient(activemq.port), []
    client.subscribe(OUT.stomp)
    while (body := client.bodies()[0]) != "last":
        got.append(body)
    client.leave()
    return got


NUMBERS = [str(number) for number in range(30)]


@pytest.mark.parametrize("again", range(2))
def test_what_an_activemq_has_is_there_once_when_its_receipt_was_lost(ours, activemq, proxy, scheme, again):
    proxy.answers_are_lost_from = b"COMMIT\n" if scheme == "stomp" else OUT.name.encode()
    send(ours.port, OUT, *NUMBERS)
    client = StompClient(activemq.port)
    client.subscribe(OUT.stomp, ack="client-individual", prefetch=1)
    [first] = client.take()  # it is committed, and the bridge does not know
    client.ack(first)
    client.leave()
    assert ours.depth(OUT.name) == len(NUMBERS)
    proxy.cut()
    wait_for_bridge(ours)
    wait_until(lambda: ours.depth(OUT.name) == 0, "all is acknowledged at the source")
    assert [first.body, *crossed(ours, activemq)] == NUMBERS


def test_what_our_broker_stored_is_kept_once_when_the_activemq_gives_it_again(ours, activemq, proxy):
    proxy.questions_are_lost = True
    send(activemq.port, IN, *NUMBERS)
    wait_until(lambda: ours.depth(IN.name) == len(NUMBERS), "the messages")
    proxy.cut()
    wait_for_bridge(ours)
    send(activemq.port, IN, "one more")
    wait_until(lambda: "one more" in ours.bodies(IN.name), "what comes after those that come again")
    assert ours.bodies(IN.name) == [*NUMBERS, "one more"]
    ours.ask(lambda admin: admin.purge(IN))


@pytest.mark.parametrize("scheme", ["stomp"], indirect=True)  # over OpenWire it tells its name before anything else
def test_an_activemq_that_tells_its_name_late_is_not_known_by_another_one_meanwhile(ours, activemq, proxy):
    proxy.questions_are_lost = True
    send(activemq.port, IN, *NUMBERS)
    wait_until(lambda: ours.depth(IN.name) == len(NUMBERS), "the messages")
    proxy.hold_from = b"ActiveMQ.Advisory.Connection"  # what the bridge asks from there on is late
    proxy.cut()
    send(activemq.port, IN, "one more")
    with pytest.raises(AssertionError, match="not within"):
        wait_until(lambda: "one more" in ours.bodies(IN.name), "a message of a broker without a name", seconds=6.0)
    proxy.let_through()
    wait_until(lambda: "one more" in ours.bodies(IN.name), "what comes after those that come again")
    assert ours.bodies(IN.name) == [*NUMBERS, "one more"]
    ours.ask(lambda admin: admin.purge(IN))


@pytest.mark.parametrize(
    "scheme", [pytest.param("stomp", marks=pytest.mark.long), "tcp"], ids=["STOMP", "OpenWire"], indirect=True
)
def test_an_activemq_that_is_killed_while_messages_cross_gets_each_once(ours, activemq, proxy):
    sent = [str(number) for number in range(300)]
    sending = threading.Thread(target=send, args=(ours.port, OUT, *sent))
    sending.start()
    wait_until(
        lambda: ours.look(lambda: ours.node.network.connections[0].bridges[0].counters.forwarded) > 50,
        "some that crossed",
    )
    activemq.kill()
    activemq.start()
    sending.join()
    wait_for_bridge(ours)
    wait_until(lambda: ours.depth(OUT.name) == 0, "all crossed")
    assert crossed(ours, activemq) == sent
