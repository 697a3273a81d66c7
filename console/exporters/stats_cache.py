"""Cache the broker's statistics in this process and update them by differences.

It has no past and keeps no rates: monitors ask for numbers and do the rest themselves. One a process, for any number of
monitors at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from brokerapp.errors import BrokerError
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import ConnectionStats, DestinationStats, NodeStatus, SubscriptionStats
from console.access.roles import Sees, everything
from console.broker.gateway import Gateway, gateway
from console.destinations.clients.clients import ConnectionView, current_connections, redact_connections
from console.destinations.clients.connection_list import ConnectionRow


@dataclass
class StatsReading:
    """Hold statistics at one moment; destinations are sorted by name."""

    destinations: list[DestinationStats]
    node: NodeStatus | None  #: the one whose name and listeners stand for the broker's; None: none runs
    at: float  #: seconds since the epoch
    _door: Gateway = field(repr=False)
    others: Sequence[NodeStatus] = ()  #: further nodes of the broker
    _sees: Sees = field(default=everything, repr=False)

    @property
    def nodes(self) -> list[NodeStatus]:
        """Return all running nodes."""
        return [self.node, *self.others] if self.node else []

    @property
    def connections(self) -> list[ConnectionRow]:
        """Return the open connections that the nodes report."""
        found = [ConnectionRow(node.node, ConnectionStats(**each)) for node in self.nodes for each in node.connections]
        if self._sees is everything:
            return found
        known = {peer.stats.id for peer in self.peers}
        return [each for each in found if each.stats.id in known]

    @cached_property
    def peers(self) -> list[ConnectionView]:
        """Return the details of the connections; none while the node does not respond."""
        try:
            return redact_connections(current_connections(), self._sees)
        except BrokerError:
            return []

    @property
    def open_connection_count(self) -> int:
        """Return the number of open connections that the user may see."""
        return self._of_connectors("connections") if self._sees is everything else len(self.peers)

    @property
    def accepted_connection_count(self) -> int:
        """Return the number of connections since the nodes started that the user may see."""
        return self._of_connectors("accepted") if self._sees is everything else len(self.peers)

    @property
    def connectors(self) -> list[dict[str, Any]]:
        """Map connector names to their first address and connections at all nodes."""
        found: dict[str, dict[str, Any]] = {}
        for node in self.nodes:
            for each in {each["connector"]: each for each in reversed(node.listeners)}.values():
                known = found.setdefault(each["connector"], {**each, "connections": 0, "refused": 0})
                for count in ("connections", "refused"):
                    known[count] += each[count]
        return list(found.values())

    def _of_connectors(self, field: str) -> int:
        by_connector = {
            (node.node, each["connector"]): each.get(field, 0) for node in self.nodes for each in node.listeners
        }
        return sum(by_connector.values())

    def seen_by(self, sees: Sees) -> StatsReading:
        """Return the reading with the visible destinations and what uses them."""
        self._sees = sees
        self.destinations = [each for each in self.destinations if sees(each.destination)]
        return self

    def of_kind(self, kind: DestinationKind) -> list[DestinationStats]:
        """Return the destinations of one kind."""
        return [each for each in self.destinations if each.destination.kind is kind]

    # -- what costs a question of its own is asked when somebody wants to know it

    @cached_property
    def used(self) -> tuple[int, dict[str, int]]:
        """Return the bytes of all messages in the store, and by destination (native name)."""
        found = self._door.run(self._door.admin.used_bytes())
        if self._sees is everything:
            return found
        seen = {name: used for name, used in found[1].items() if self._sees(Destination.parse(name))}
        return sum(seen.values()), seen

    @cached_property
    def subscriptions(self) -> list[SubscriptionStats]:
        """Return named subscriptions sorted by name."""
        seen = (_narrowed(each, self._sees) for each in self._door.run(self._door.admin.subscriptions()))
        return sorted(filter(None, seen), key=lambda each: each.subscription.key)

    @cached_property
    def definitions(self) -> Definitions:
        """Return the active definitions."""
        return self._door.definitions()


def _narrowed(each: SubscriptionStats, sees: Sees) -> SubscriptionStats | None:
    """Return the subscription with its visible topics; None without any."""
    topics = tuple(filter(sees, each.subscription.topics))
    if topics == each.subscription.topics:
        return each
    return replace(each, subscription=replace(each.subscription, topics=topics)) if topics else None


class StatsCache:
    """Follow the statistics of the broker through one gateway."""

    def __init__(self, door: Gateway) -> None:
        self._door = door
        self._lock = threading.Lock()
        self._stats: dict[Destination, DestinationStats] = {}
        self._version = 0
        self._node: str | None = None

    def read(self) -> StatsReading:
        """Return the current statistics, which nodes update every second. Raises StoreUnavailable."""
        nodes = self._door.nodes()
        node, others = (nodes[0], nodes[1:]) if nodes else (None, [])
        with self._lock:
            self._follow(node.node if node else None)
            destinations = sorted(self._stats.values(), key=lambda each: each.destination.name)
        return StatsReading(destinations, node, time.time(), self._door, others)

    def _follow(self, node: str | None) -> None:
        """Read what changed, or all after the node changed."""
        since = self._version if node is not None and node == self._node else 0
        version, changed, gone = self._door.run(self._door.admin.stats(since))
        if since == 0 or version < since:
            self._stats = {each.destination: each for each in changed}
        else:
            self._stats.update((each.destination, each) for each in changed)
            for destination in gone:
                self._stats.pop(destination, None)
        self._version, self._node = version, node


_ledger: StatsCache | None = None
_opening = threading.Lock()


def stats_cache() -> StatsCache:
    """Return this process's cache, created at the first call."""
    global _ledger
    with _opening:
        if _ledger is None or _ledger._door is not gateway():
            _ledger = StatsCache(gateway())
        return _ledger
