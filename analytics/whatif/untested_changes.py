"""Find changes of a draft that no recorded message of the window reaches. Pure."""

from __future__ import annotations

from analytics.whatif.comparison import WhatIfComparison
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.definitions import CompositeDestination, Definitions, VirtualDestination, VirtualTopic
from brokerapp.model.destination import ANY_REST, Destination


def untested_changes(current: Definitions, proposed: Definitions, comparison: WhatIfComparison) -> list[str]:
    """Describe the destinations of changed definitions that no message was sent or forwarded to."""
    reached = _reached(comparison)
    places = changed_destinations(current, proposed)
    return [_describe(each) for each in places if not any(_covers(each, found) for found in reached)]


def changed_destinations(current: Definitions, proposed: Definitions) -> list[Destination]:
    """Return the destinations of the definitions that a draft changes."""
    before, after = current.virtual_destinations, proposed.virtual_destinations
    changed = [each for each in (*after, *before) if each not in before or each not in after]
    return list(dict.fromkeys(map(_destination_of, changed)))


def _destination_of(definition: VirtualDestination) -> Destination:
    match definition:
        case VirtualTopic():
            return Destination.topic(definition.name)
        case CompositeDestination():
            return definition.destination
    return Destination.queue(ANY_REST)  # all queues are mirrored


def _describe(place: Destination) -> str:
    return f"any {place.kind}" if place.name == ANY_REST else f"{place.kind} {place.name}"


def _covers(place: Destination, found: Destination) -> bool:
    return place.kind is found.kind and matches(place.name, found.name)


def _reached(comparison: WhatIfComparison) -> list[Destination]:
    """Return the destinations that messages of the window were sent to or reached on their routes."""
    names = {destination for destination, _ in comparison.draft.classes.keys}
    for tally in (comparison.in_force, comparison.draft):
        for way in set(tally.routes):
            names.update(name for name, _ in way.targets)
            names.update(leg.target for leg, outcome in way.target_uses if outcome)
    return [Destination.parse(each) for each in names]
