"""Define the address of a queue or topic, and its text forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache, total_ordering
from types import MappingProxyType
from urllib.parse import parse_qsl

from brokerapp.errors import InvalidDestination

#: One element, as a whole element of a pattern.
ANY_ELEMENT = "*"
#: Zero or more elements, as the last element of a pattern.
ANY_REST = ">"
#: Separates the elements of a name.
SEPARATOR = "."
#: Longest name, characters: it is part of a key of the store.
MAX_NAME = 1024
#: Between the address and the queue of a fully qualified queue name: `Orders::Consumer.A.Orders`.
QUALIFIER = "::"
#: Between the elements of a list of destinations.
LIST_SEPARATOR = ","
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class DestinationKind(StrEnum):
    """Kind of a destination. A temporary one belongs to a connection, which alone has a short name for it."""

    QUEUE = "queue"
    TOPIC = "topic"
    TEMP_QUEUE = "temp-queue"
    TEMP_TOPIC = "temp-topic"
    SUBSCRIPTION = "subscription"  #: what is kept for a named subscription of topics: operators see it, clients do not


#: The kinds whose destinations are named by people.
NAMED_KINDS = (DestinationKind.QUEUE, DestinationKind.TOPIC)
_QUEUES = frozenset({DestinationKind.QUEUE, DestinationKind.TEMP_QUEUE, DestinationKind.SUBSCRIPTION})
_TEMPORARY = frozenset({DestinationKind.TEMP_QUEUE, DestinationKind.TEMP_TOPIC})
#: How STOMP clients write a destination of each kind. Temporary ones so that any client may use the text.
STOMP_PREFIX = {
    DestinationKind.QUEUE: "/queue/",
    DestinationKind.TOPIC: "/topic/",
    DestinationKind.TEMP_QUEUE: "/remote-temp-queue/",
    DestinationKind.TEMP_TOPIC: "/remote-temp-topic/",
    DestinationKind.SUBSCRIPTION: "/subscription/",
}
#: How the names of logs of temporary destinations begin.
TEMPORARY_LOGS = (f"{DestinationKind.TEMP_QUEUE}://", f"{DestinationKind.TEMP_TOPIC}://")
#: How a STOMP client writes the temporary destinations of its own connection, by names it chooses.
OWN_TEMPORARY = {"/temp-queue/": DestinationKind.TEMP_QUEUE, "/temp-topic/": DestinationKind.TEMP_TOPIC}


#: Of a destination without any.
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@total_ordering
class Destination:
    """A queue or topic. Immutable; `str()` is the native form `queue://orders.eu`, `.stomp` is `/queue/orders.eu`.

    There is one on every message's way several times, so its texts and its hash are made once.
    """

    __slots__ = ("_hash", "_native", "address", "is_queue", "is_temporary", "kind", "name", "options", "stomp")

    kind: DestinationKind
    name: str
    stomp: str  #: the form STOMP clients use
    is_queue: bool  #: it keeps what arrives until it is consumed, as also what a full name names; else a topic
    is_temporary: bool
    address: str | None  #: of a fully qualified queue name, what stands before the `::`; None: it is none
    _native: str
    _hash: int
    options: Mapping[str, str]  #: written behind the name (`orders?consumer.priority=1`); no part of its identity

    def __init__(self, kind: DestinationKind, name: str, options: Mapping[str, str] = NO_OPTIONS) -> None:
        native = f"{kind}://{name}"
        address, qualifier, _ = name.partition(QUALIFIER)
        temporary = kind in _TEMPORARY
        qualified = bool(qualifier) and kind in NAMED_KINDS
        fields = (
            ("kind", kind),
            ("name", name),
            ("stomp", STOMP_PREFIX[kind] + name),
            ("is_queue", qualified or kind in _QUEUES),
            ("is_temporary", temporary),
            ("address", address if qualified else None),
            ("options", options),
            ("_native", native),
            ("_hash", hash(native)),
        )
        for field, value in fields:
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Destination does not change: {name}")

    def __reduce__(self) -> tuple[type, tuple[DestinationKind, str, Mapping[str, str]]]:
        return Destination, (self.kind, self.name, dict(self.options))

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
        """Return the queue of this name as a destination."""
        return Destination(DestinationKind.QUEUE, name)

    @staticmethod
    def topic(name: str) -> Destination:
        """Return the topic of this name as a destination."""
        return Destination(DestinationKind.TOPIC, name)

    @staticmethod
    def parse(text: str, default: DestinationKind = DestinationKind.QUEUE) -> Destination:
        """Read `/queue/N`, `/topic/N`, `queue://N`, `topic://N` or a bare name, which is of the `default` kind; or a
        temporary one, `/remote-temp-queue/ID`, `temp-queue://ID`, and so for topics.

        Names are trimmed at both ends; what follows a `?` are options. Raises InvalidDestination.
        """
        return _parse(text, default)

    @staticmethod
    def parse_list(text: str) -> tuple[Destination, ...]:
        """One destination, or a list of them (`/queue/A,/topic/B`), each element of its own kind; see parse."""
        return _parse_list(text)

    @staticmethod
    def named(kind: DestinationKind, text: str) -> Destination:
        """The one destination of this kind and name, which shall exist. Raises InvalidDestination, see check_one."""
        found = Destination(kind, text.strip())
        check_one(found)
        return found

    @property
    def is_pattern(self) -> bool:
        """Whether a whole element is a wildcard. The queue of a fully qualified name is meant literally."""
        return self.address is None and not self.is_temporary and is_pattern(self.name)

    @property
    def physical(self) -> Destination:
        """The queue that a fully qualified name names; any other destination is it itself."""
        return self if self.address is None else Destination.queue(self.name.partition(QUALIFIER)[2])


def is_pattern(name: str) -> bool:
    """Whether the name holds `*` as an element, or `>` as its last one."""
    elements = name.split(SEPARATOR)
    return ANY_ELEMENT in elements or elements[-1] == ANY_REST


def check_name(name: str) -> None:
    """Raise InvalidDestination when this can be no destination's name."""
    if not name:
        raise InvalidDestination(name)
    if len(name) > MAX_NAME:
        raise InvalidDestination(name[:80], f"a name has at most {MAX_NAME} characters")
    if _CONTROL.search(name):  # it would end up in frames, keys and pages
        raise InvalidDestination(name[:80], "a name has no control characters")


def check_one(destination: Destination, *, or_pattern: bool = False) -> None:
    """Raise InvalidDestination unless one destination can be of this name, or it is a pattern where one may stand.

    Refused is what clients would take for several or for something else. Any other text is a name, as in ActiveMQ: also
    `a//`.
    """
    name = destination.name
    if not name:
        raise InvalidDestination(name, "give it a name")
    check_name(name)
    if destination.is_pattern and not or_pattern:
        raise InvalidDestination(name, "a whole element `*` or a last element `>` makes a pattern, which names many")
    if LIST_SEPARATOR in name:
        raise InvalidDestination(name, "a comma stands between several destinations, not in the name of one")
    if "?" in name or destination.options:
        raise InvalidDestination(name, "behind a ? stand options, which are no part of a name")
    if prefix := next((each for each, _ in _PREFIXES if name.startswith(each)), ""):
        raise InvalidDestination(name, f"give the name alone, without {prefix}")
    if destination.address is not None:
        _check_qualified(destination)


@lru_cache(maxsize=16384)
def list_of(text: str) -> Destination | None:
    """The list in a text as the one that a message was sent to, `/queue/A,queue://B`; None when there is none.

    One that is named twice stands there twice, though it gets one copy. Raises InvalidDestination.
    """
    first, *others = _elements(text)
    return Destination(first.kind, LIST_SEPARATOR.join((first.name, *map(str, others)))) if others else None


_PREFIXES = tuple((form, kind) for kind in DestinationKind for form in (STOMP_PREFIX[kind], f"{kind}://"))


@lru_cache(maxsize=16384)
def _parse(text: str, default: DestinationKind) -> Destination:
    name, kind = text, default
    for prefix, its_kind in _PREFIXES:
        if text.startswith(prefix):
            name, kind = text[len(prefix) :], its_kind
            break
    name, _, options = name.partition("?")
    name = name.strip()
    if not name:
        raise InvalidDestination(text)
    check_name(name)
    if name.startswith(tuple(OWN_TEMPORARY)):
        raise InvalidDestination(name, "only the connection it belongs to calls a temporary destination so")
    found = Destination(kind, name, _options(options) if options else NO_OPTIONS)
    if found.address is not None:
        _check_qualified(found)
    return found


def _options(text: str) -> Mapping[str, str]:
    return MappingProxyType(dict(parse_qsl(text[:MAX_NAME], keep_blank_values=True)))


def _check_qualified(destination: Destination) -> None:
    """Raise InvalidDestination unless the name says ADDRESS::QUEUE, or ::QUEUE."""
    queue = destination.physical.name
    if not queue.strip():
        raise InvalidDestination(destination.name, "the name of a queue must follow the ::")
    if QUALIFIER in queue:
        raise InvalidDestination(destination.name, "there is one :: in ADDRESS::QUEUE")


@lru_cache(maxsize=16384)
def _parse_list(text: str) -> tuple[Destination, ...]:
    return tuple(dict.fromkeys(_elements(text)))


def _elements(text: str) -> list[Destination]:
    found = [Destination.parse(part) for part in text.strip().split(LIST_SEPARATOR) if part.strip()]
    if not found:
        raise InvalidDestination(text)
    if any(each.kind is DestinationKind.SUBSCRIPTION for each in found):
        raise InvalidDestination(text, "a subscription is consumed by its name, from its topic")
    return found
