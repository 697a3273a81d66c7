"""Filter definitions, changes and routes for users who see only some destinations. Pure.

A definition is visible to users who see one of its destinations and all that it names without wildcards; `sees` takes
names and patterns.
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
    """Return whether a user may see a definition."""
    places = named_destinations(item)
    return any(map(sees, places)) and all(sees(place) for place in places if not place.is_pattern)


def visible_definitions(definitions: Definitions, sees: Sees) -> Definitions:
    """Return the definitions that a user may see."""
    if sees is everything:
        return definitions
    return collect_definitions(
        (each for each in definitions_by_id(definitions).values() if is_visible(each, sees)), definitions.version
    )


def visible_changes(changes: Iterable[DefinitionChange], sees: Sees) -> list[DefinitionChange]:
    """Return the changes that a user may see."""
    return [each for each in changes if is_visible(each.before, sees) or is_visible(each.after, sees)]


def restore_hidden(proposed: Definitions, current: Definitions, sees: Sees) -> Definitions:
    """Add the hidden definitions, unchanged, to those that a user has edited."""
    if sees is everything:
        return proposed
    unknown = {id: each for id, each in definitions_by_id(current).items() if not is_visible(each, sees)}
    return collect_definitions({**unknown, **definitions_by_id(proposed)}.values(), proposed.version)


def visible_route(told: Mapping[str, Any], sees: Sees) -> dict[str, Any]:
    """Return the route that a node reports, without hidden destinations."""
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
