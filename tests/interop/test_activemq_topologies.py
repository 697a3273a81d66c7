"""Test networks of Sluice and ActiveMQs in which messages take several bridges: chains, and circles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from brokerapp.store.server.embedded import EmbeddedStore
from tests.interop.activemq_server import ActiveMQ, needs_activemq
from tests.interop.joined import JoinedActiveMQ, is_joined, wait_for_demand
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode, node_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, needs_activemq]
XML = """<broker brokerName="{name}">
  <networkConnectors>
    <networkConnector name="on" networkTTL="{ttl}"
      uri="static:(tcp://127.0.0.1:{port})?initialReconnectDelay=100&amp;useExponentialBackOff=false"/>
  </networkConnectors>
  <transportConnectors><transportConnector name="all" uri="tcp://127.0.0.1:0"/></transportConnectors>
</broker>"""


class Network:
    """An ActiveMQ that joined ours, ours, and the ActiveMQ that ours joined; in a circle that one joins the first."""

    def __init__(self, folder: Path, store: EmbeddedStore, stack: ExitStack, *, ttl: int, is_circle: bool) -> None:
        self.last: ActiveMQ = ActiveMQ(folder / "last")
        self.ours: RunningNode = stack.enter_context(
            node_of(XML.format(name=f"ours-{ttl}-{is_circle}", ttl=ttl, port=self.last.openwire_port), store)
        )
        self.first = JoinedActiveMQ(folder / "first", "first", self.ours.port, networkTTL=str(ttl))
        if is_circle:
            self.last = JoinedActiveMQ(
                folder / "last", "last", self.first.openwire_port, ports_of=self.last, networkTTL=str(ttl)
            )
        else:
            self.last.plain("last")
        for each in (self.last, self.first):
            stack.callback(each.stop)
            each.start()
        wait_until(lambda: is_joined(self.ours, self.first), "the bridge from the first one")
        wait_until(self._is_connected, "the bridge to the last one")
        self.ports = [self.first.port, self.ours.port, self.last.port]
        self.clients = list(map(StompClient, self.ports))
        for each in self.clients:
            stack.callback(each.leave)

    def _is_connected(self) -> bool:
        return bool(self.ours.look(lambda: self.ours.node.network.connections[0].bridges))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_message_takes_the_two_bridges_of_a_chain_and_no_more_than_networkttl(store, stack, tmp_path):
    network = Network(tmp_path, store, stack, ttl=2, is_circle=False)
    first, ours, last = network.clients
    last.subscribe("/queue/chain", id="q")
    last.subscribe("/topic/chain", id="t")
    for destination in ("/queue/chain", "/topic/chain"):
        wait_for_demand(network.ports[0], destination)
        first.send(destination, f"{destination} from the first", persistent="true")
        ours.send(destination, f"{destination} from ours", persistent="true")
    assert sorted(last.bodies(4)) == [
        f"/{kind}/chain from {sender}" for kind in ("queue", "topic") for sender in ("ours", "the first")
    ]
    assert last.has_no_more()


def test_subscribers_of_a_circle_of_brokers_get_a_message_once_wherever_it_is_sent(store, stack, tmp_path):
    network = Network(tmp_path, store, stack, ttl=3, is_circle=True)
    for each in network.clients:
        each.subscribe("/topic/circle")
    for port in network.ports:
        wait_for_demand(port, "/topic/circle", 2)  # its own, and that of the bridge to the next one
    for number, each in enumerate(network.clients):
        each.send("/topic/circle", str(number), persistent="true")
    for each in network.clients:
        assert sorted(each.bodies(3)) == ["0", "1", "2"]
        each.round_trip()
    assert [[more.body for more in each.take(each.messages.qsize())] for each in network.clients] == [[], [], []]
