"""Replace names of destinations that a user may not see by their number. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from console.access.roles import Sees, everything

#: What takes the place of a sentence that would name what its reader may not know of.
WITHHELD = "details hidden: you cannot view the destination"
#: The native form of a destination within a sentence, as far as its name has no blank.
_NAMED = re.compile(r"\b[a-z-]+://[^\s,;]+")


def hidden_count(count: int) -> str:
    """Return how many names are hidden, in words."""
    return f"{count} more hidden (no permission)"


def redact_names(places: Iterable[Destination | str], sees: Sees) -> list[str]:
    """Return the visible names in native form, and at the end how many are hidden."""
    found = [place if isinstance(place, Destination) else Destination.parse(place) for place in places]
    seen = [str(place) for place in found if sees(place)]
    return seen if len(seen) == len(found) else [*seen, hidden_count(len(found) - len(seen))]


def redact_sentence(text: str, sees: Sees) -> str:
    """Return the sentence, or WITHHELD where it names a destination that the reader may not see."""
    return text if sees is everything or all(map(sees, _named_in(text))) else WITHHELD


def redact_list(text: str, sees: Sees) -> str:
    """Return the names of a comma-separated list as `redact_names` shows them."""
    return text if sees is everything or not text else ", ".join(redact_names(text.split(", "), sees))


def _named_in(text: str) -> Iterable[Destination]:
    for name in _NAMED.findall(text):
        try:
            yield Destination.parse(name.rstrip(".:'\")"))
        except InvalidDestination:  # an address of something else
            continue
