"""Compare definitions with recorded traffic: the targets that they have, and the destinations that reach them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from brokerapp.core.dispatch.counters import DEAD_LETTER_QUEUES
from brokerapp.engine.routing.destination_trie import matches, specificity
from brokerapp.model.definitions import CompositeDestination, Definitions, PolicyEntry, VirtualTopic
from brokerapp.model.destination import Destination


@dataclass(frozen=True, slots=True)
class RouteEdge:
    """A forward target of a composite: source, target, and the selector that messages must match."""

    definition: str
    at: Destination
    to: Destination
    selector: str | None


def edges_of(definitions: Definitions) -> list[RouteEdge]:
    """Return the forward targets of all composites."""
    return [
        RouteEdge(each.id, each.destination, leg.destination, leg.selector)
        for each in definitions.virtual_destinations
        if isinstance(each, CompositeDestination)
        for leg in each.legs
    ]


def upstream_destinations(definitions: Definitions, at: Destination) -> set[Destination]:
    """Return the composites from which copies reach this destination, directly or through other composites.

    The events of a message name the destination that it was sent to, wherever its copies go.
    """
    legs, found, looking = edges_of(definitions), set(), [at]
    while looking:
        target = looking.pop()
        for each in legs:
            if _reaches(each.to, target) and each.at not in found and each.at != at:
                found.add(each.at)
                looking.append(each.at)
    return found


def unmatched_definitions(definitions: Definitions, sent_to: Iterable[str]) -> list[tuple[str, str]]:
    """Return id and destinations of each definition to which no message was sent."""
    places = [Destination.parse(each) for each in sent_to]
    found = []
    for each in definitions.virtual_destinations:
        match each:
            case VirtualTopic():
                pattern = Destination.topic(each.name)
            case CompositeDestination():
                pattern = each.destination
            case _:
                continue
        if not any(_reaches(place, pattern) for place in places):
            found.append((each.id, str(pattern)))
    return found


def policy_of(definitions: Definitions, destination: Destination) -> PolicyEntry | None:
    """Return the most specific policy entry for a destination."""
    found = [each for each in definitions.policies if _reaches(destination, each.destination)]
    return max(found, key=lambda each: specificity(each.destination.name), default=None)


def dlq_predicate(definitions: Definitions | None) -> Callable[[str], bool]:
    """Return a predicate: whether a destination, in native form, is a dead-letter queue.

    The events of dead letters name the original destination, although no definition copied them.
    """
    strategies = [each.dead_letter for each in definitions.policies if each.dead_letter] if definitions else []
    names = {each.dead_letter_queue for each in strategies if each.kind == "shared"}
    prefixes = tuple(
        p for each in strategies if each.kind == "individual" for p in (each.queue_prefix, each.topic_prefix)
    )

    def is_one(destination: str) -> bool:
        name = destination.partition("://")[2]
        return bool(DEAD_LETTER_QUEUES.fullmatch(name)) or name in names or name.startswith(prefixes or ("\0",))

    return is_one


def _reaches(place: Destination, pattern: Destination) -> bool:
    return place.kind == pattern.kind and matches(pattern.name, place.name)
