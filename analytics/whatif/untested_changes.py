"""Untried: what a draft changes and no message of the window came to, so that the record tells nothing of it. Pure."""

from __future__ import annotations

from analytics.whatif.comparison import WhatIfComparison
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.definitions import CompositeDestination, Definitions, VirtualDestination, VirtualTopic
from brokerapp.model.destination import ANY_REST, Destination


def untested_changes(current: Definitions, proposed: Definitions, comparison: WhatIfComparison) -> list[str]:
    """Of each changed definition, where it applies, in words, if nothing was sent there nor brought there by others."""
    reached = _reached(comparison)
    places = changed_destinations(current, proposed)
    return [_called(each) for each in places if not any(_takes(each, found) for found in reached)]


def changed_destinations(current: Definitions, proposed: Definitions) -> list[Destination]:
    """Where the definitions apply that a draft changes."""
    before, after = current.virtual_destinations, proposed.virtual_destinations
    changed = [each for each in (*after, *before) if each not in before or each not in after]
    return list(dict.fromkeys(map(_place, changed)))


def _place(definition: VirtualDestination) -> Destination:
    match definition:
        case VirtualTopic():
            return Destination.topic(definition.name)
        case CompositeDestination():
            return definition.destination
    return Destination.queue(ANY_REST)  # all queues are mirrored


def _called(place: Destination) -> str:
    return f"any {place.kind}" if place.name == ANY_REST else f"{place.kind} {place.name}"


def _takes(place: Destination, found: Destination) -> bool:
    return place.kind is found.kind and matches(place.name, found.name)


def _reached(comparison: WhatIfComparison) -> list[Destination]:
    """Where messages of the window were sent, or came on their way."""
    names = {destination for destination, _ in comparison.draft.classes.keys}
    for tally in (comparison.in_force, comparison.draft):
        for way in set(tally.ways):
            names.update(name for name, _ in way.targets)
            names.update(leg.target for leg, outcome in way.legs if outcome)
    return [Destination.parse(each) for each in names]
