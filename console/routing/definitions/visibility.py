"""Sight: what of the routing somebody may know of who does not see every destination. Pure.

A definition is known to whoever sees one of the destinations it is about, and all that it names by their full names;
`sees` is asked of names and of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from console.access import redaction
from console.access.roles import Sees, everything
from console.routing.definitions.affected_destinations import places_of
from console.routing.definitions.changes import Change, Item, definitions_of, items_of


def is_known(item: Item | None, sees: Sees) -> bool:
    """Whether somebody may know of a definition."""
    places = places_of(item)
    return any(map(sees, places)) and all(sees(place) for place in places if not place.is_pattern)


def known(definitions: Definitions, sees: Sees) -> Definitions:
    """The definitions without those that somebody may not know of."""
    if sees is everything:
        return definitions
    return definitions_of(
        (each for each in items_of(definitions).values() if is_known(each, sees)), definitions.version
    )


def known_changes(changes: Iterable[Change], sees: Sees) -> list[Change]:
    """The changes that somebody may know of."""
    return [each for each in changes if is_known(each.before, sees) or is_known(each.after, sees)]


def completed(proposed: Definitions, current: Definitions, sees: Sees) -> Definitions:
    """What somebody made of the definitions they know, with the others as they stand."""
    if sees is everything:
        return proposed
    unknown = {id: each for id, each in items_of(current).items() if not is_known(each, sees)}
    return definitions_of({**unknown, **items_of(proposed)}.values(), proposed.version)


def known_way(told: Mapping[str, Any], sees: Sees) -> dict[str, Any]:
    """What a node told of a message's way, without the places that somebody may not know of."""
    hops = [
        each for each in told["hops"] if sees(Destination.parse(each["at"])) and sees(Destination.parse(each["target"]))
    ]
    places = [each for each in told["places"] if all(sees(Destination.parse(name)) for name in each)]
    unnamed = len(told["places"]) - len(places)
    return {
        **told,
        "hops": hops,
        "places": places,
        "unnamed": unnamed,
        "problem": redaction.said(told["problem"], sees),
    }
