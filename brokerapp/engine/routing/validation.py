"""Check whether definitions can work, before they are applied."""

from __future__ import annotations

from brokerapp.engine.routing.cycle_detection import find_cycle
from brokerapp.errors import DefinitionRefused, RequestRefused
from brokerapp.model.definitions import Definitions
from brokerapp.selectors import compile_selector


def check_definitions(definitions: Definitions) -> None:
    """Raise DefinitionRefused when these definitions cannot work."""
    seen: set[str] = set()
    for each in definitions.virtual_destinations:
        if each.id in seen:
            raise DefinitionRefused(f"the {each.called} is defined twice")
        seen.add(each.id)
        for leg in getattr(each, "legs", ()):
            try:
                if leg.selector:
                    compile_selector(leg.selector)
            except RequestRefused as error:
                raise DefinitionRefused(f"the {each.called}, target {leg.destination}: {error}") from error
    loop = find_cycle(definitions)
    if loop:
        raise DefinitionRefused("definitions form a loop: " + " -> ".join(map(str, loop)))
