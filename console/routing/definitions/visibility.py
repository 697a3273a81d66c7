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
from console.routing.definitions.affected_destinations import named_destinations
from console.routing.definitions.changes import Definition, DefinitionChange, collect_definitions, definitions_by_id


def is_visible(item: Definition | None, sees: Sees) -> bool:
    """Whether somebody may know of a definition."""
    places = named_destinations(item)
    return any(map(sees, places)) and all(sees(place) for place in places if not place.is_pattern)


def visible_definitions(definitions: Definitions, sees: Sees) -> Definitions:
    """The definitions without those that somebody may not know of."""
    if sees is everything:
        return definitions
    return collect_definitions(
        (each for each in definitions_by_id(definitions).values() if is_visible(each, sees)), definitions.version
    )


def visible_changes(changes: Iterable[DefinitionChange], sees: Sees) -> list[DefinitionChange]:
    """The changes that somebody may know of."""
    return [each for each in changes if is_visible(each.before, sees) or is_visible(each.after, sees)]


def restore_hidden(proposed: Definitions, current: Definitions, sees: Sees) -> Definitions:
    """What somebody made of the definitions they know, with the others as they stand."""
    if sees is everything:
        return proposed
    unknown = {id: each for id, each in definitions_by_id(current).items() if not is_visible(each, sees)}
    return collect_definitions({**unknown, **definitions_by_id(proposed)}.values(), proposed.version)


def visible_route(told: Mapping[str, Any], sees: Sees) -> dict[str, Any]:
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
        "problem": redaction.redact_sentence(told["problem"], sees),
    }
