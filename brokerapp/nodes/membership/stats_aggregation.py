"""Adds up the counters of a destination over all nodes, at the node that owns it.

Messages of a topic are counted at the nodes of their producers and subscribers; of a queue, too, the nodes of producers
count something that its owner does not know. Each node sends the owner what it counted, once a second where that
changed: so it is sent again when a link was lost. The owner goes on with what a node counted that is gone, but for its
last second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from brokerapp.core.ports import BrokerContext, GaugesPort
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType

#: Numbers that only grow.
COUNTS = (
    "EnqueueCount", "DequeueCount", "DispatchCount", "ExpiredCount", "DeadLetterCount", "DroppedCount",
    "DiscardedCount", "RedeliveredCount", "BlockedSends", "TotalBlockedTime", "EnqueueBytes", "DequeueBytes",
    "EnqueueTimeUs",
)  # fmt: skip
#: Numbers of what exists now, of which each node has its part: its own clients'. The owner of a queue knows the rest.
TOPIC_GAUGES = ("ConsumerCount", "InFlightCount", "ProducerCount")
QUEUE_GAUGES = ("ProducerCount",)
#: The least and the greatest of something, and the number of values that they were taken from.
RANGES = (("MinMessageSize", "MaxMessageSize", "EnqueueCount"), ("MinEnqueueTime", "MaxEnqueueTime", "DispatchCount"))
#: Destinations in one message to another node: bounds how long a link is busy with one.
BATCH_SIZE = 500


def total(own: DestinationStats, parts: Iterable[DestinationStats]) -> DestinationStats:
    """Return the numbers of a destination at its owner, with those of other nodes added."""
    found = replace(own)
    for part in parts:
        _add(found, part, COUNTS + _gauges_of(own.destination))
    return found


def _add(found: DestinationStats, part: DestinationStats, names: Iterable[str]) -> None:
    """Add these numbers of a part, and take the least and the greatest of both."""
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


class StatsAggregation(NodeObserver):
    """Reports counters to owners, and adds up those of other nodes."""

    def __init__(self, *, context: BrokerContext, peers: Peers, gauges: GaugesPort) -> None:
        self._counters, self._peers, self._gauges = context.counters, peers, gauges
        self._parts: dict[Destination, dict[str, DestinationStats]] = defaultdict(dict)  # by session
        self._reported: set[Destination] = set()

    # -- of destinations that this node owns

    def with_remote_parts(self, own: DestinationStats) -> DestinationStats:
        """Return the numbers of a destination with those of other nodes added."""
        parts = self._parts.get(own.destination)
        return total(own, parts.values()) if parts else own

    def on_stats(self, session: str, rows: Iterable[dict[str, Any]]) -> None:
        """Take numbers of another node."""
        for row in rows:
            part = DestinationStats.from_json(row)
            destination = part.destination
            if destination.is_queue and destination not in self._counters:
                continue  # it is deleted
            self._parts[destination][session] = part
            self._counters.mark_changed(self._counters.of(destination))

    def on_member_removed(self, session: str) -> None:
        """Count on, as the owner, what a node counted that is no member any more; its clients are gone."""
        for destination, parts in self._parts.items():
            part, known = parts.pop(session, None), self._counters.find(destination)
            if part is not None and known is not None:
                if self._peers.is_local(str(destination)):
                    _add(known, part, COUNTS)
                self._counters.mark_changed(known)

    def forget(self, destinations: Iterable[Destination]) -> None:
        """Forget deleted destinations."""
        for each in destinations:
            self._parts.pop(each, None)
            self._reported.discard(each)

    # -- of destinations that other nodes own

    def report(self, changed: Iterable[DestinationStats]) -> list[DestinationStats]:
        """Send owners what was counted here; return the numbers of destinations that this node owns."""
        local: list[DestinationStats] = []
        by_owner: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in changed:
            destination = each.destination
            owner = self._peers.owner_of(str(destination))
            if owner == self._peers.session:
                local.append(each)
                continue
            self._parts.pop(destination, None)
            self._gauges.update(each)
            if destination in self._reported or _has_counts(each):
                self._reported.add(destination)
                by_owner[owner].append(each.to_json())
        for owner, rows in by_owner.items():
            for start in range(0, len(rows), BATCH_SIZE):
                self._peers.send(owner, PeerMessageType.STATS, rows[start : start + BATCH_SIZE])
        return local

    def on_link_up(self, session: str) -> None:
        """Report everything again, as the last reports may have been lost with the former link."""
        self._report_all()

    def on_logs_reassigned(self) -> None:
        """Report everything to the new owners."""
        self._report_all()

    def _report_all(self) -> None:
        for each in [each for each in self._parts if not self._peers.is_local(str(each))]:
            del self._parts[each]
        remote = (each for each in self._counters.destinations() if not self._peers.is_local(str(each)))
        found = (self._counters.find(each) for each in remote)
        self._counters.changed.update(each for each in found if each is not None and _has_counts(each))
