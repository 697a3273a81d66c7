"""Adds up the counters of a destination over all nodes, at the node that owns it.

Messages of a topic arrive at the nodes of those who send them, and are given out at those of its subscribers; also of a
queue the nodes of its senders know something that its home does not. Each node tells the home what it counted, once a
second where that changed: so what a link lost is told again. What a node counted that is gone the home counts on, but
for its last second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from brokerapp.nodes.links.protocol import PeerMessageType

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

#: Numbers that only grow.
COUNTS = (
    "EnqueueCount", "DequeueCount", "DispatchCount", "ExpiredCount", "DeadLetterCount", "DroppedCount",
    "DiscardedCount", "RedeliveredCount", "BlockedSends", "TotalBlockedTime", "EnqueueBytes", "DequeueBytes",
    "EnqueueTimeUs",
)  # fmt: skip
#: Numbers of what is there now, of which each node has its part: its own clients'. The rest of those of queues is known
#: at their home.
TOPIC_GAUGES = ("ConsumerCount", "InFlightCount", "ProducerCount")
QUEUE_GAUGES = ("ProducerCount",)
#: The least and the greatest of something, and what counts of how much they are.
RANGES = (("MinMessageSize", "MaxMessageSize", "EnqueueCount"), ("MinEnqueueTime", "MaxEnqueueTime", "DispatchCount"))
#: Destinations told of in one word: bounds how long a link is busy with one.
BATCH_SIZE = 500


def total(own: DestinationStats, parts: Iterable[DestinationStats]) -> DestinationStats:
    """The numbers of a destination at its home, with what other nodes counted."""
    found = replace(own)
    for part in parts:
        _add(found, part, COUNTS + _gauges_of(own.destination))
    return found


def _add(found: DestinationStats, part: DestinationStats, names: Iterable[str]) -> None:
    """Have these numbers of a part, too, and the least and the greatest of both."""
    for least, greatest, counted in RANGES:
        if getattr(part, counted):
            known = getattr(found, counted)
            bound = min(getattr(found, least), getattr(part, least)) if known else getattr(part, least)
            setattr(found, least, bound)
            setattr(found, greatest, max(getattr(found, greatest), getattr(part, greatest)))
    for name in names:
        setattr(found, name, getattr(found, name) + getattr(part, name))
    found.DLQ |= part.DLQ


def _gauges_of(destination: Destination) -> tuple[str, ...]:
    return QUEUE_GAUGES if destination.is_queue else TOPIC_GAUGES


def _has_counts(numbers: DestinationStats) -> bool:
    return any(getattr(numbers, name) for name in COUNTS + _gauges_of(numbers.destination))


class StatsAggregation:
    """Reports counters to owners, and adds up those of other nodes."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._parts: dict[Destination, dict[str, DestinationStats]] = defaultdict(dict)  # by session
        self._reported: set[Destination] = set()

    # -- at a home

    def with_remote_parts(self, own: DestinationStats) -> DestinationStats:
        """With what other nodes counted."""
        parts = self._parts.get(own.destination)
        return total(own, parts.values()) if parts else own

    def on_stats(self, session: str, rows: Iterable[dict[str, Any]]) -> None:
        """Another node counted these."""
        for row in rows:
            part = DestinationStats.from_json(row)
            destination, stats = part.destination, self._broker.counters
            if destination.is_queue and destination not in stats:
                continue  # it is deleted
            self._parts[destination][session] = part
            stats.mark_changed(stats.of(destination))

    def on_member_removed(self, session: str) -> None:
        """A node is no member any more: its clients are gone, what it counted its homes have counted from now on."""
        stats = self._broker.counters
        for destination, parts in self._parts.items():
            part, known = parts.pop(session, None), stats.find(destination)
            if part is not None and known is not None:
                if self._ownership.is_local(str(destination)):
                    _add(known, part, COUNTS)
                stats.mark_changed(known)

    def forget(self, destinations: Iterable[Destination]) -> None:
        """These are deleted."""
        for each in destinations:
            self._parts.pop(each, None)
            self._reported.discard(each)

    # -- elsewhere

    def report(self, changed: Iterable[DestinationStats]) -> list[DestinationStats]:
        """Tell homes what was counted here; those that are at home here."""
        here, by_home = [], defaultdict(list)
        for each in changed:
            destination = each.destination
            home = self._ownership.owner_of(str(destination))
            if home == self._ownership.session:
                here.append(each)
                continue
            self._parts.pop(destination, None)
            self._broker.gauges.update(each)
            if destination in self._reported or _has_counts(each):
                self._reported.add(destination)
                by_home[home].append(each.to_json())
        for home, rows in by_home.items():
            for start in range(0, len(rows), BATCH_SIZE):
                self._ownership.send(home, PeerMessageType.STATS, rows[start : start + BATCH_SIZE])
        return here

    def report_all(self) -> None:
        """Homes are others, or hear us again: tell all of it, soon."""
        stats, homes = self._broker.counters, self._ownership
        for each in [each for each in self._parts if not homes.is_local(str(each))]:
            del self._parts[each]
        found = (stats.find(each) for each in stats.destinations() if not homes.is_local(str(each)))
        stats.changed.update(each for each in found if each is not None and _has_counts(each))
