"""Run the brokers of a network in the test process."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from brokerapp.config import default_config
from brokerapp.network.bridge.bridge import Bridge
from brokerapp.network.options.definition import NetworkConnector
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

_numbers = itertools.count(1)
QUICK = "?initialReconnectDelay=100&useExponentialBackOff=false"


def start(store, *connectors: NetworkConnector, **config: object) -> RunningNode:
    """A broker of its own with these connectors."""
    by_default = default_config(f"net-{next(_numbers)}", 0)
    return RunningNode(replace(by_default, network_connectors=connectors, **config), store.url)


@contextmanager
def running(store, *connectors: NetworkConnector, **config: object) -> Iterator[RunningNode]:
    """The same, as long as it is wanted."""
    node = start(store, *connectors, **config)
    try:
        yield node
    finally:
        node.stop()


def to(*ports: int, name: str = "bridge", agent: str = "static", **options: str) -> NetworkConnector:
    """A connector to the brokers at these ports. Consumers there are as near as those here, unless it says so."""
    options = {"decreaseNetworkConsumerPriority": "false", **options}
    addresses = ",".join(f"tcp://127.0.0.1:{port}" for port in ports)
    return NetworkConnector(name, f"{agent}:({addresses}){QUICK}", options=tuple(options.items()))


def bridges_of(node: RunningNode) -> list[Bridge]:
    """All that work now, of all its connectors."""
    return node.look(lambda: [bridge for one in node.node.network.connections for bridge in one.bridges])


def bridged(node: RunningNode) -> bool:
    """Whether its first connector has its bridges."""
    return bool(node.look(lambda: node.node.network.connections[0].bridges))


@contextmanager
def duplex_pair(store, **config: object) -> Iterator[tuple[RunningNode, RunningNode]]:
    """Two brokers, of which the first one has a duplex bridge to the second."""
    with running(store, **config) as second, running(store, to(second.port, duplex="true"), **config) as first:
        wait_until(lambda: bridged(first), "the bridge")
        yield first, second


def destinations_of(node: RunningNode) -> list[str]:
    """What its bridges consume, here and there."""
    return [str(each) for bridge in bridges_of(node) for each in node.look(lambda bridge=bridge: bridge.destinations)]


def wait_for_demand(node: RunningNode, *destinations: str) -> None:
    """Until the bridges from this node to another, or back, consume these."""
    wait_until(lambda: Counter(destinations) <= Counter(destinations_of(node)), f"demand for {destinations}")


def wait_for_no_demand(node: RunningNode, *destinations: str) -> None:
    """Until they do not."""
    wait_until(lambda: not set(destinations) & set(destinations_of(node)), f"the end of the demand for {destinations}")
