"""Masking: a browsed message as a user may see it, before its bytes leave the server.

Whoever may not read bodies gets none. A role of `MASKED` gets a body's structure with every value covered; what has no
structure that could be told from its values is withheld whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from brokerapp.destination import Destination
from brokerapp.snapshot import BrowsedMessage
from console.access import AnyUser, Verb, grants_of, lacking
from console.rights import MASKED

#: What stands where a value was.
COVER = "••••"


@dataclass(frozen=True, slots=True)
class MaskedMessage(BrowsedMessage):
    """A browsed message without what its reader may not see; `size` is still that of the whole body."""

    withheld: str = ""  #: why the body is not shown at all; "": it is, perhaps masked
    masked: tuple[str, ...] = ()  #: what was covered, in words: `values of the body`


def masked(user: AnyUser, message: BrowsedMessage, where: Destination | None = None) -> MaskedMessage:
    """The message as this user may see it, browsed in the queue `where` (or else the destination it was sent to)."""
    where = where or Destination.parse(message.destination)
    readers = [grant for grant in grants_of(user) if grant.allows(Verb.READ, where)]
    if not readers:
        return _copy(message, body=b"", withheld=lacking(Verb.READ))
    if any(grant.role not in MASKED for grant in readers):
        return _copy(message)
    return _covered(message)


def _copy(message: BrowsedMessage, **changes: Any) -> MaskedMessage:
    return MaskedMessage(**{each.name: getattr(message, each.name) for each in fields(BrowsedMessage)} | changes)


def _covered(message: BrowsedMessage) -> MaskedMessage:
    if not message.body:
        return _copy(message)
    try:
        document = json.loads(message.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict | list):
        return _copy(
            message, body=b"", withheld="Your role reads bodies masked, and this one cannot be masked in parts."
        )
    return _copy(message, body=json.dumps(_cover(document)).encode(), masked=("values of the body",))


def _cover(value: Any) -> Any:
    match value:
        case dict():
            return {name: _cover(each) for name, each in value.items()}
        case list():
            return [_cover(each) for each in value]
        case bool() | None:
            return value
    return COVER
