"""Destination: the address of a queue or a topic, and how its text forms are read and written."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache, total_ordering

from brokerapp.errors import InvalidDestination

#: One element, as a whole element of a pattern.
ANY_ELEMENT = "*"
#: Zero or more elements, as the last element of a pattern.
ANY_REST = ">"
#: Separates the elements of a name.
SEPARATOR = "."
#: Longest name, characters: it is part of a key of the store.
MAX_NAME = 1024
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_TEMPORARY = ("/temp-", "/remote-temp-")


class Kind(StrEnum):
    """What a destination is."""

    QUEUE = "queue"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"  #: what is kept for a named subscription of topics: operators see it, clients do not


#: The kinds that definitions, policies and grants are about.
PUBLIC_KINDS = (Kind.QUEUE, Kind.TOPIC)


@total_ordering
class Destination:
    """A queue or topic. Immutable; `str()` is the native form `queue://orders.eu`, `.stomp` is `/queue/orders.eu`.

    There is one on every message's way several times, so its texts and its hash are made once.
    """

    __slots__ = ("_hash", "_native", "kind", "name", "stomp")

    kind: Kind
    name: str
    stomp: str  #: the form STOMP clients use

    def __init__(self, kind: Kind, name: str) -> None:
        native = f"{kind}://{name}"
        fields = (
            ("kind", kind),
            ("name", name),
            ("stomp", f"/{kind}/{name}"),
            ("_native", native),
            ("_hash", hash(native)),
        )
        for field, value in fields:
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Destination does not change: {name}")

    def __reduce__(self) -> tuple[type, tuple[Kind, str]]:
        return Destination, (self.kind, self.name)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Destination) and self._native == other._native)

    def __lt__(self, other: Destination) -> bool:
        return self._native < other._native

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self._native

    def __repr__(self) -> str:
        return f"Destination({self._native!r})"

    @staticmethod
    def queue(name: str) -> Destination:
        """The queue of this name."""
        return Destination(Kind.QUEUE, name)

    @staticmethod
    def topic(name: str) -> Destination:
        """The topic of this name."""
        return Destination(Kind.TOPIC, name)

    @staticmethod
    def parse(text: str, default: Kind = Kind.QUEUE) -> Destination:
        """Read `/queue/N`, `/topic/N`, `queue://N`, `topic://N` or a bare name, which is of the `default` kind.

        Names are trimmed at both ends, an empty one raises InvalidDestination.
        """
        return _parse(text, default)

    @staticmethod
    def parse_list(text: str) -> tuple[Destination, ...]:
        """One destination, or a list of them (`/queue/A,/topic/B`), each element of its own kind; see parse."""
        return _parse_list(text)

    @property
    def is_pattern(self) -> bool:
        """Whether a whole element is a wildcard."""
        return is_pattern(self.name)


def is_pattern(name: str) -> bool:
    """Whether the name holds `*` as an element, or `>` as its last one."""
    elements = name.split(SEPARATOR)
    return ANY_ELEMENT in elements or elements[-1] == ANY_REST


_PREFIXES = tuple((form.format(kind), kind) for kind in Kind for form in ("/{}/", "{}://"))


@lru_cache(maxsize=16384)
def _parse(text: str, default: Kind) -> Destination:
    name, kind = text, default
    for prefix, its_kind in _PREFIXES:
        if text.startswith(prefix):
            name, kind = text[len(prefix) :], its_kind
            break
    name = name.strip()
    if not name:
        raise InvalidDestination(text)
    if len(name) > MAX_NAME:
        raise InvalidDestination(text[:80], f"a name has at most {MAX_NAME} characters")
    if _CONTROL.search(name):  # it would end up in frames, keys and pages
        raise InvalidDestination(text[:80], "a name has no control characters")
    if name.startswith(_TEMPORARY):
        raise InvalidDestination(name, "temporary destinations are not served yet")
    return Destination(kind, name)


@lru_cache(maxsize=16384)
def _parse_list(text: str) -> tuple[Destination, ...]:
    found = [Destination.parse(part) for part in text.split(",") if part.strip()]
    if not found:
        raise InvalidDestination(text)
    if any(each.kind is Kind.SUBSCRIPTION for each in found):
        raise InvalidDestination(text, "a subscription is consumed by its name, from its topic")
    return tuple(dict.fromkeys(found))
