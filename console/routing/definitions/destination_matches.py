"""Find the existing destinations that a definition matches, while it is entered. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.engine.routing.consumer_queues import topic_behind
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.definitions import CompositeDestination, MirroredQueue, PolicyEntry, RedeliveryPolicy, VirtualTopic
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.routing.definitions.changes import Definition
from console.ui.formatting.number_format import pluralize_count

#: Maximum names shown.
MAX_NAMED = 8


@dataclass(frozen=True, slots=True)
class MatchedDestinations:
    """Destinations that a definition matches, with the form field and a sentence to show."""

    field: str
    sentence: str
    found: list[Destination] = field(default_factory=list)

    @property
    def shown(self) -> list[Destination]:
        """Return the destinations that are shown."""
        return self.found[:MAX_NAMED]

    @property
    def hidden_count(self) -> int:
        """Return the number of destinations that are not shown."""
        return max(0, len(self.found) - MAX_NAMED)


@dataclass(frozen=True, slots=True)
class CompositeTarget:
    """A target of a composite destination, and whether it exists."""

    destination: Destination
    sentence: str
    exists: bool


def match_destinations(item: Definition, existing: Iterable[Destination]) -> list[MatchedDestinations]:
    """Find the existing destinations that a definition matches."""
    existing = sorted(existing)
    match item:
        case VirtualTopic():
            topics = matching_topics(item.name, existing)
            queues = [each for each in existing if each.kind is DestinationKind.QUEUE and topic_behind(item, each.name)]
            return [
                MatchedDestinations("name", _sentence(topics, "existing topic"), topics),
                MatchedDestinations("prefix", _sentence(queues, "consumer queue"), queues),
            ]
        case CompositeDestination():
            return [MatchedDestinations("name", _source_sentence(item.destination, existing))]
        case MirroredQueue():
            queues = [each for each in existing if each.kind is DestinationKind.QUEUE]
            return [MatchedDestinations("prefix", f"{pluralize_count(len(queues), 'queue')} would be mirrored", queues)]
        case PolicyEntry() | RedeliveryPolicy():
            return [match_pattern(item.destination, existing)]
    return []


def match_pattern(pattern: Destination, existing: Iterable[Destination], field: str = "name") -> MatchedDestinations:
    """Find the destinations that match a pattern."""
    found = [each for each in existing if each.kind is pattern.kind and matches(pattern.name, each.name)]
    return MatchedDestinations(field, _sentence(found, f"existing {pattern.kind}"), found)


def matching_topics(pattern: str, existing: Iterable[Destination]) -> list[Destination]:
    """Return the topics that a virtual topic matches; never advisory topics."""
    return [
        each
        for each in existing
        if each.kind is DestinationKind.TOPIC and pattern and matches(pattern, each.name) and not is_advisory(each)
    ]


def composite_targets(item: Definition, stats: Mapping[Destination, DestinationStats]) -> list[CompositeTarget]:
    """Return the targets of a composite destination with their present state."""
    if not isinstance(item, CompositeDestination):
        return []
    return [_composite_target(leg.destination, stats.get(leg.destination)) for leg in item.legs]


def _composite_target(destination: Destination, stats: DestinationStats | None) -> CompositeTarget:
    if stats is None:
        return CompositeTarget(destination, "does not exist, created with the first message", exists=False)
    reads = pluralize_count(stats.ConsumerCount, "consumer" if destination.is_queue else "subscriber")
    held = f", {pluralize_count(stats.QueueSize, 'message')}" if destination.is_queue else ""
    return CompositeTarget(destination, f"exists: {reads}{held}", exists=True)


def _source_sentence(destination: Destination, existing: list[Destination]) -> str:
    if destination in existing:
        return f"existing {destination.kind}: new messages are forwarded to the targets"
    return f"this {destination.kind} does not exist, created with the first message"


def _sentence(found: list[Destination], noun: str) -> str:
    if not found:
        return f"no {noun} matches"
    return f"{pluralize_count(len(found), noun)} {'matches' if len(found) == 1 else 'match'}"
