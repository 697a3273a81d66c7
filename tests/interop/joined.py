"""ActiveMQs that join a Sluice by their own network connector."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.activemq_server import ActiveMQ
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

_QUICK = "?initialReconnectDelay=100&amp;maxReconnectDelay=200&amp;useExponentialBackOff=false"
_numbers = itertools.count(1)


class JoinedActiveMQ(ActiveMQ):
    """An ActiveMQ with a network connector to another broker; it may have the ports that were chosen for one."""

    def __init__(
        self, folder: Path, name: str, link: int, *, listed: str = "", more: str = "",
        ports_of: ActiveMQ | None = None, **options: str,
    ) -> None:  # fmt: skip
        super().__init__(folder)
        if ports_of is not None:
            self.port, self.openwire_port = ports_of.port, ports_of.openwire_port
        self.name = name
        said = " ".join(f'{name}="{value}"' for name, value in {"name": "nc", **options}.items())
        uri = f"static:(tcp://127.0.0.1:{link}){_QUICK}"
        self.plain(
            name,
            plugins=f'{more}<networkConnectors><networkConnector uri="{uri}" {said}>{listed}</networkConnector>'
            "</networkConnectors>",
            schedulerSupport="true",
        )


@contextmanager
def joined(folder: Path, node: RunningNode, **options: str) -> Iterator[JoinedActiveMQ]:
    """An ActiveMQ that has joined a node."""
    running = JoinedActiveMQ(folder, f"classic-{next(_numbers)}", node.port, **options)
    running.start()
    try:
        wait_until(lambda: is_joined(node, running), "the bridge")
        yield running
    finally:
        running.stop()


def is_joined(node: RunningNode, other: JoinedActiveMQ) -> bool:
    """Return whether the bridge of that ActiveMQ is connected."""
    return any(each.broker == other.name for each in node.look(node.node.broker.bridges.incoming))


def wait_for_demand(port: int, destination: str, count: int = 1) -> None:
    """Wait until the broker at this port has so many consumers of a queue or topic, in STOMP's form."""
    client = StompClient(port)
    wait_until(lambda: _consumers(client, destination) == count, f"{count} consumers of {destination}")
    client.leave()


def _consumers(client: StompClient, destination: str) -> int:
    """Return how many the advisories of those that exist tell of."""
    _, kind, name = destination.split("/", 2)
    client.subscribe(f"/topic/ActiveMQ.Advisory.Consumer.{kind.capitalize()}.{name}", id="demand")
    client.unsubscribe("demand")
    told = []
    while not client.messages.empty():
        told += client.take()
    return max((int(each.headers["consumerCount"]) for each in told), default=0)
