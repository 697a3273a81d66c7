"""Demand: which destinations of this broker the broker at the other end of a bridge wants, for its consumers. Pure.

Consumers are heard of by advisories (`ConsumerInfo`, `RemoveInfo`, `RemoveSubscriptionInfo`, as ActiveMQ's JSON has
them). What they want becomes the bridge's own subscriptions at this end: one for all that want the same (conduit), or
one for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.destination import Destination, Kind
from brokerapp.engine.destination_map import matches
from brokerapp.errors import InvalidDestination
from brokerapp.network.terms import Terms
from brokerapp.network_path import RECORDS, UNLIMITED, Path

Document = Mapping[str, Any]
#: How advisories name the kinds of destinations.
_KINDS = {
    "ActiveMQQueue": Kind.QUEUE,
    "ActiveMQTopic": Kind.TOPIC,
    "ActiveMQTempQueue": Kind.TEMP_QUEUE,
    "ActiveMQTempTopic": Kind.TEMP_TOPIC,
}
#: Of bridges themselves: advisories, and records of what they passed on. Wanting them is no demand.
_OWN = ("ActiveMQ.Advisory.", RECORDS)


@dataclass(slots=True, eq=False)
class Wanted:
    """One subscription of the bridge at this end."""

    id: str
    destination: Destination
    selector: str | None
    priority: int
    path: Path  #: from here to who wants it
    durable: bool = False
    consumers: set[str] = field(default_factory=set)  #: for whom it is; of a durable one: names of subscriptions
    static: bool = False  #: wanted whoever consumes
    forwarded: int = 0  #: messages that were passed on for it


class Demand:
    """What one bridge is to consume here, for the broker `there`."""

    def __init__(self, terms: Terms, here: str, there: str) -> None:
        self._terms, self._here, self._there = terms, here, there
        self.wanted: dict[str, Wanted] = {}  #: by id
        self._numbers = 0

    def static(self) -> list[Wanted]:
        """What is wanted without anybody consuming; to be subscribed at once."""
        return [
            self._want(each, None, 0, (self._there,), static=True)
            for each in self._terms.statically_included
            if not (self._terms.exclude_static and _listed(each, self._terms.excluded))
        ]

    def started(self, info: Document) -> list[Wanted]:
        """A consumer began there: what is to be subscribed now."""
        path = (self._there, *_path(info))
        if info.get("browser") or self._too_far(path) or self._here in path:
            return []
        return [each for target in _destinations(info) for each in self._started_at(target, info, path)]

    def _started_at(self, target: Destination, info: Document, path: Path) -> Iterator[Wanted]:
        if not self._permitted(target):
            return
        consumer, name = _consumer(info.get("consumerId", {})), info.get("subscriptionName")
        durable = name is not None and target.kind is Kind.TOPIC
        known = self._conduit(target, path, durable)
        if known is not None:
            known.consumers.add(name if durable else consumer)
            return
        selector = None if self._terms.conduit_subscriptions else info.get("selector")
        wanted = self._want(target, selector, self._priority(info, path), path, durable)
        wanted.consumers.add(name if durable else consumer)
        yield wanted

    def stopped(self, removed: Document) -> list[Wanted]:
        """A consumer ended there: what is to be subscribed no longer. A durable subscription stays without it."""
        id = removed.get("objectId", {})
        if id.get("@class") != "ConsumerId":
            return []
        return self._without(_consumer(id), durable=False)

    def forgotten(self, removed: Document) -> list[Wanted]:
        """A durable subscription was deleted there: what is to be subscribed no longer."""
        return self._without(removed.get("subscriptionName", ""), durable=True)

    def _without(self, consumer: str, *, durable: bool) -> list[Wanted]:
        over = []
        for each in list(self.wanted.values()):
            if each.durable is durable and consumer in each.consumers:
                each.consumers.discard(consumer)
                if not each.consumers and not each.static:
                    over.append(self.wanted.pop(each.id))
        return over

    def _want(
        self, target: Destination, selector: str | None, priority: int, path: Path, durable: bool = False,
        *, static: bool = False,
    ) -> Wanted:  # fmt: skip
        self._numbers += 1
        wanted = Wanted(str(self._numbers), target, selector, priority, path, durable, static=static)
        self.wanted[wanted.id] = wanted
        return wanted

    def _conduit(self, target: Destination, path: Path, durable: bool) -> Wanted | None:
        """The subscription that serves such a consumer already."""
        terms, farther = self._terms, len(path) > 1
        if not terms.conduit_subscriptions and not durable:
            return None
        if target.is_queue and farther and not terms.conduit_network_queue_subscriptions:
            return None
        for each in self.wanted.values():
            if each.durable is durable and each.destination.kind is target.kind:
                if target.is_queue and len(each.path) > 1 and not terms.conduit_network_queue_subscriptions:
                    continue
                if each.destination == target or (not durable and matches(each.destination.name, target.name)):
                    return each
        return None

    def _too_far(self, path: Path) -> bool:
        return self._terms.consumer_ttl != UNLIMITED and len(path) > self._terms.consumer_ttl

    def _permitted(self, target: Destination) -> bool:
        terms = self._terms
        if target.name.startswith(_OWN):
            return False
        if target.is_temporary:
            return terms.bridge_temp_destinations
        if _listed(target, terms.excluded):
            return False
        included = terms.dynamically_included
        return not included or _listed(target, included) or _listed(target, terms.statically_included)

    def _priority(self, info: Document, path: Path) -> int:
        terms, asked = self._terms, int(info.get("priority", 0))
        if not terms.decrease_network_consumer_priority:
            return asked
        return terms.consumer_priority_base - (len(path) + 1 if len(path) > 1 else 0)


def _listed(target: Destination, patterns: tuple[Destination, ...]) -> bool:
    return any(each.kind is target.kind and matches(each.name, target.name) for each in patterns)


def _consumer(id: Document) -> str:
    return f"{id.get('connectionId', '')}:{id.get('sessionId', '')}:{id.get('value', '')}"


def _path(info: Document) -> Path:
    ids = (info.get("brokerPath") or {}).get("BrokerId", [])
    ids = [ids] if isinstance(ids, Mapping) else ids
    return tuple(str(each.get("value", "")) for each in ids)


def _destinations(info: Document) -> Iterator[Destination]:
    """What a consumer consumes from; a list of destinations is taken apart."""
    about = info.get("destination", {})
    kind = _KINDS.get(about.get("@class", ""))
    first, *others = str(about.get("string", "")).split(",")
    if kind is not None and first:
        yield Destination(kind, first)
    for each in others:
        try:
            yield from Destination.parse_list(each)
        except InvalidDestination:
            continue
