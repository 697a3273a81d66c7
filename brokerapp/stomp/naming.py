"""Naming: how STOMP clients name destinations, where that is not how the broker does.

`/temp-queue/NAME` means a destination of the connection's own; to everybody else it is `/remote-temp-queue/ID`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from brokerapp.destination import LIST_SEPARATOR, OWN_TEMPORARY, Destination, Kind
from brokerapp.errors import InvalidDestination
from brokerapp.message import escape, unescape

#: A client's own temporary destination, which exists from then on.
OwnTemporary = Callable[[Kind, str], Destination]
#: What the text of every own temporary destination holds.
_OWN = "/temp-"
_REMOTE = b"/remote-temp-"
_REPLY_TO = "reply-to:"


class Naming:
    """The names one connection uses."""

    def __init__(self, own: OwnTemporary) -> None:
        self._own = own

    def for_all(self, text: str) -> str:
        """A destination, or a list of them, as any client may write it."""
        if _OWN not in text:
            return text
        return LIST_SEPARATOR.join(map(self._one, text.split(LIST_SEPARATOR)))

    def _one(self, text: str) -> str:
        for prefix, kind in OWN_TEMPORARY.items():
            if text.startswith(prefix):
                return self._own(kind, text[len(prefix) :].strip()).stomp
        return text


def _nothing_own(kind: Kind, name: str) -> Destination:
    raise InvalidDestination(name, f"there is no {kind} of one's own here")


#: Of a session whose client has no temporary destinations.
NO_NAMES = Naming(_nothing_own)


def names_own(headers: Mapping[str, str]) -> bool:
    """Whether headers of a SEND may name a destination of the connection's own."""
    return any(_OWN in value for value in headers.values())


def with_own_names(head: bytes, own_names: Mapping[str, str]) -> bytes:
    """Header lines of a message, for the client to whom `own_names` belong: it may be asked for a reply there."""
    if _REMOTE not in head:
        return head
    lines = head.decode().split("\n")
    for at, line in enumerate(lines):
        if line.startswith(_REPLY_TO):
            own = own_names.get(unescape(line[len(_REPLY_TO) :]))
            if own is not None:
                lines[at] = _REPLY_TO + escape(own)
    return "\n".join(lines).encode()
