"""Build ActiveMQ's JMX beans, with names, kinds and attributes, from one snapshot of the figures.

Attributes and operations of each kind are tables (`attributes.py`, `operations.py`). What does not exist here, or is
not known, is zero, false or null, which monitors take as it is; nothing is invented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from brokerapp.engine.routing.destination_trie import matches
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination, DestinationKind, is_pattern
from brokerapp.model.stats_records import ConnectionStats, DestinationStats, SubscriptionStats
from console.destinations.clients.clients import ConnectionView
from console.destinations.clients.connection_list import ConnectionRow
from console.exporters.jolokia.client_beans import ConsumerBean, consumer_beans, consumers_by_destination
from console.exporters.jolokia.object_names import DOMAIN, NamePattern, ObjectName, encoded
from console.exporters.options import MonitorOptions
from console.exporters.stats_cache import StatsReading

#: Kinds of destinations, as names of beans say them.
TYPE_NAMES = {
    DestinationKind.QUEUE: "Queue",
    DestinationKind.TOPIC: "Topic",
    DestinationKind.TEMP_QUEUE: "TempQueue",
    DestinationKind.TEMP_TOPIC: "TempTopic",
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """Describe an attribute of a kind of bean; `type` is its Java type."""

    name: str
    type: str
    value: Callable[[Any, Beans], Any]  #: from the bean's subject


@dataclass(frozen=True, slots=True)
class BeanKind:
    """Describe what beans of one Java class have in common."""

    java_class: str
    description: str
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class Bean:
    """Represent a bean; `subject` is what its attributes are read from."""

    name: ObjectName
    kind: str  #: a key of attributes.KINDS
    subject: Any


class Beans:
    """Build all beans from one reading of the statistics."""

    def __init__(self, reading: StatsReading, options: MonitorOptions, real_name: str) -> None:
        self.reading, self.options, self.real_name = reading, options, real_name

    # -- names

    def name(self, **keys: str) -> ObjectName:
        """Return the name of a bean of this broker."""
        return ObjectName(DOMAIN, {"type": "Broker", "brokerName": encoded(self.options.broker), **keys})

    def name_of(self, destination: Destination) -> ObjectName:
        """Return the name of a destination's bean."""
        kind = TYPE_NAMES[destination.kind]
        return self.name(destinationType=kind, destinationName=encoded(destination.name))

    def name_of_consumer(self, consumer: ConsumerBean) -> ObjectName:
        """Return the name of a consumer's bean."""
        return self.name(
            destinationType=TYPE_NAMES.get(consumer.kind, "Queue"),
            destinationName=encoded(consumer.name),
            endpoint="Consumer",
            clientId=encoded(consumer.client_id),
            consumerId=encoded(consumer.id),
        )

    def name_of_producer(self, peer: ConnectionView) -> ObjectName:
        """Return the name of the bean of what a connection sends."""
        return self.name(endpoint="dynamicProducer", clientId=encoded(peer.name), producerId=encoded(peer.stats.id))

    def name_of_connection(self, stats: ConnectionStats, view: str = "clientId") -> ObjectName:
        """Return the name of a connection's bean, by client id or by address (`remoteAddress`)."""
        return self.name(
            connector="clientConnectors",
            connectorName="stomp",
            connectionViewType=view,
            connectionName=encoded(stats.client_id if view == "clientId" else self.remote_address(stats)),
        )

    def remote_address(self, stats: ConnectionStats) -> str:
        """Return the remote address of a connection as ActiveMQ writes it."""
        return f"tcp://{stats.remote_address}"

    # -- the beans themselves

    def find(self, pattern: NamePattern) -> Iterator[Bean]:
        """Return the beans that match, in a stable order."""
        wanted = self._by_its_real_name(pattern)
        return (bean for bean in self._of(wanted) if wanted.matches(bean.name))

    def _by_its_real_name(self, pattern: NamePattern) -> NamePattern:
        """Replace `localhost` and the broker's own name by the name of the beans."""
        named = pattern.keys.get("brokerName")
        if named == self.options.broker or named not in ("localhost", self.real_name):
            return pattern
        keys = {**pattern.keys, "brokerName": encoded(self.options.broker)}
        return NamePattern(pattern.text, pattern.domain, keys, pattern.is_open)

    def _of(self, pattern: NamePattern) -> Iterator[Bean]:
        """Yield the beans of the families that have the pattern's keys."""
        for keys, family in self._families:
            if pattern.keys.keys() <= keys and (pattern.is_open or pattern.keys.keys() == keys):
                yield from family()

    @property
    def _families(self) -> list[tuple[frozenset[str], Callable[[], Iterator[Bean]]]]:
        base = {"type", "brokerName"}
        destination = base | {"destinationType", "destinationName"}
        connector = base | {"connector", "connectorName"}
        return [
            (frozenset(base), self._broker),
            (frozenset(destination), self._destinations),
            (frozenset(destination | {"endpoint", "clientId", "consumerId"}), self._consumers),
            (frozenset(base | {"endpoint", "clientId", "producerId"}), self._producers),
            (frozenset(connector), self._connectors),
            (frozenset(connector | {"connectionViewType", "connectionName"}), self._connections),
            (frozenset(base | {"service"}), self._health),
            (frozenset(base | {"service", "instanceName"}), self._stores),
        ]

    def _broker(self) -> Iterator[Bean]:
        yield Bean(self.name(), "broker", self.reading)

    def _destinations(self) -> Iterator[Bean]:
        for each in self.reading.destinations:
            kind = TYPE_NAMES.get(each.destination.kind)
            if kind is not None:
                yield Bean(self.name_of(each.destination), "queue" if kind.endswith("Queue") else "topic", each)

    def _consumers(self) -> Iterator[Bean]:
        for each in self.consumers:
            yield Bean(self.name_of_consumer(each), each.bean_kind, each)

    def _producers(self) -> Iterator[Bean]:
        for each in self.reading.peers:
            yield Bean(self.name_of_producer(each), "producer", each)

    def _connectors(self) -> Iterator[Bean]:
        for each in self.reading.connectors:
            keys = {"connector": "clientConnectors", "connectorName": encoded(each["connector"])}
            yield Bean(self.name(**keys), "connector", each)

    def _connections(self) -> Iterator[Bean]:
        for view in ("clientId", "remoteAddress"):
            for each in self.connections:
                yield Bean(self.name_of_connection(each.stats, view), "connection", each)

    def _health(self) -> Iterator[Bean]:
        yield Bean(self.name(service="Health"), "health", self.reading)

    def _stores(self) -> Iterator[Bean]:
        yield Bean(self.name(service="PersistenceAdapter", instanceName="store"), "store", self.reading)

    # -- what several attributes are made of

    @cached_property
    def durables(self) -> list[SubscriptionStats]:
        """Return the durable subscriptions, online ones first."""
        durable = [each for each in self.reading.subscriptions if each.subscription.durable]
        return sorted(durable, key=lambda each: each.numbers.ConsumerCount == 0)

    @cached_property
    def consumers(self) -> list[ConsumerBean]:
        """Return consumers and durable subscriptions."""
        return consumer_beans(self.reading.peers, self.durables)

    def consumers_of(self, destination: Destination) -> list[ConsumerBean]:
        """Return consumers of a destination, by its name or a matching pattern."""
        named = self._consumers_by_destination.get(destination, [])
        by_pattern = [each for pattern in self._patterns if _names(pattern, destination)
                      for each in self._consumers_by_destination[pattern]]  # fmt: skip
        return named if not by_pattern else list({id(each): each for each in (*named, *by_pattern)}.values())

    @cached_property
    def _consumers_by_destination(self) -> Mapping[Destination, list[ConsumerBean]]:
        return consumers_by_destination(self.consumers)

    @cached_property
    def _patterns(self) -> list[Destination]:
        return [each for each in self._consumers_by_destination if is_pattern(each.name)]

    @cached_property
    def connections(self) -> list[ConnectionRow]:
        """Return the connections of all nodes."""
        return self.reading.connections

    @cached_property
    def all_destinations(self) -> list[DestinationStats]:
        """Return queues and topics, including temporary ones."""
        return [each for each in self.reading.destinations if each.destination.kind in TYPE_NAMES]

    def total(self, field: str) -> int:
        """Return the sum of a number over all destinations."""
        return sum(getattr(each, field) for each in self.all_destinations)

    def used(self, stats: DestinationStats) -> int:
        """Return the bytes of the messages of a destination."""
        return self.reading.used[1].get(str(stats.destination), 0)

    def policy(self, stats: DestinationStats) -> PolicyEntry:
        """Return the policy of a destination; an empty one where there is none."""
        return self._topology.policy_for(stats.destination) or PolicyEntry(stats.destination)

    @cached_property
    def _topology(self) -> RoutingTable:
        return RoutingTable(self.reading.definitions, lambda _queue, _headers: False)


def _names(pattern: Destination, destination: Destination) -> bool:
    return pattern.kind is destination.kind and matches(pattern.name, destination.name)
