"""Find the queues that are bound to an address by fully qualified names (`Orders::billing`). Pure.

A queue bound to a topic (multicast) gets a copy of each message that reaches the topic, as a subscription does. Queues
bound to an address with anycast share what is sent to the queue of the address's name. A queue has one binding at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from brokerapp.engine.routing.destination_trie import DestinationTrie
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import QUALIFIER, SEPARATOR, Destination, DestinationKind
from brokerapp.model.selector_prefixes import condition_of
from brokerapp.selectors import Selector, compile_selector


class RoutingType(StrEnum):
    """Routing of messages to the queues of an address: one of them gets each message, or all get a copy."""

    ANYCAST = "ANYCAST"
    MULTICAST = "MULTICAST"


#: Option of a destination that says what routing type its address has, when it is bound.
ROUTING_OPTION = "routing-type"
#: Option of a destination: a queue that is made for a consumer takes only what the consumer's selector does.
SELECTOR_OPTION = "selectorAware"


@dataclass(frozen=True, slots=True)
class Binding:
    """A queue's place at an address."""

    address: str  #: a name or pattern of topics; with anycast a name
    queue: str
    routing: RoutingType = RoutingType.MULTICAST
    filter: str | None = None  #: selector; only what it takes comes to the queue by the address
    selector: Selector | None = field(default=None, compare=False, repr=False)  #: the filter, compiled

    def __post_init__(self) -> None:
        if self.filter is not None and self.selector is None:
            object.__setattr__(self, "selector", compile_selector(self.filter))

    @property
    def id(self) -> str:
        """Return the fully qualified name, which explanations of routes show."""
        return f"{self.address}{QUALIFIER}{self.queue}"

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        values = {"address": self.address, "routing": str(self.routing)}
        return values if self.filter is None else {**values, "filter": self.filter}

    @staticmethod
    def from_json(queue: str, data: Mapping[str, Any]) -> Binding | None:
        """The binding of a queue, from what is kept about the queue; None when it has none."""
        if "address" not in data:
            return None
        return Binding(data["address"], queue, RoutingType(data["routing"]), data.get("filter"))


class Bindings:
    """All bindings, by queue and by address."""

    def __init__(self) -> None:
        self._by_queue: dict[str, Binding] = {}
        self._topics: DestinationTrie[Binding] = DestinationTrie()
        self._anycast: dict[str, dict[str, Binding]] = {}
        self._turns: dict[str, int] = {}

    def __iter__(self) -> Iterator[Binding]:
        return iter(self._by_queue.values())

    def of(self, queue: str) -> Binding | None:
        """Return the binding of a queue, or None."""
        return self._by_queue.get(queue)

    def at_topic(self, topic: str) -> list[Binding]:
        """Return the bindings to a topic, those by patterns included."""
        return self._topics.find(topic) if self._by_queue else []

    def sharing(self, address: str) -> list[str]:
        """The queues that share what is sent to an address, the one whose turn it is first."""
        sharing = list(self._anycast.get(address, ()))
        if not sharing:
            return sharing
        first = self._turns.get(address, 0) % len(sharing)
        return sharing[first:] + sharing[:first]

    def advance_turn(self, address: str) -> None:
        """A message went to the first of those that share an address."""
        self._turns[address] = self._turns.get(address, 0) + 1

    def add(self, binding: Binding) -> None:
        """Bind a queue that is not bound."""
        self._by_queue[binding.queue] = binding
        if binding.routing is RoutingType.MULTICAST:
            self._topics.add(binding.address, binding)
        else:
            self._anycast.setdefault(binding.address, {})[binding.queue] = binding

    def remove(self, queue: str) -> None:
        """The queue is gone, with its binding if it had one."""
        binding = self._by_queue.pop(queue, None)
        if binding is None:
            return
        if binding.routing is RoutingType.MULTICAST:
            self._topics.remove(binding.address, binding)
            return
        sharing = self._anycast[binding.address]
        del sharing[queue]
        if not sharing:
            del self._anycast[binding.address]
            self._turns.pop(binding.address, None)


def new_binding(name: Destination, bound: Binding | None, exists: bool, selector: str | None) -> Binding | None:
    """The binding that a queue gets by being called by this fully qualified name; None: it stays as it is.

    `bound` is the one it has, `exists` tells whether there is such a queue, `selector` is that of the consumer for
    which it is made. Raises RequestRefused when the queue is not on that address.
    """
    address, queue = name.address, name.physical.name
    if not address:
        if not exists:
            raise RequestRefused(f"queue {queue!r} not found: it can only be created with an address before the ::")
        return None
    if bound is not None:
        _check_place(name, bound, selector)
        return None
    if address == queue:
        return None
    if exists and not is_at(name, None):
        raise RequestRefused(f"the queue {queue!r} is there by itself, it is not on the address {address!r}")
    routing = _routing_of(name)
    keeps = not exists and (not _as_queue(name) or name.options.get(SELECTOR_OPTION) == "true")
    return Binding(address, queue, routing, selector if keeps else None)


def _routing_of(name: Destination) -> RoutingType:
    text = name.options.get(ROUTING_OPTION, RoutingType.MULTICAST)
    try:
        return RoutingType(text)
    except ValueError:
        raise RequestRefused(f"{ROUTING_OPTION}={text[:40]} is neither ANYCAST nor MULTICAST") from None


def is_at(name: Destination, bound: Binding | None) -> bool:
    """Whether a queue that exists, with this binding, may be called so."""
    if not name.address:
        return True
    if bound is not None:
        return bound.address == name.address
    queue = name.physical.name
    return name.address == queue or queue.endswith(SEPARATOR + name.address)


def _check_place(name: Destination, bound: Binding, selector: str | None) -> None:
    if bound.address != name.address:
        raise RequestRefused(f"the queue {bound.queue!r} is on the address {bound.address!r}, not on {name.address!r}")
    if _as_queue(name) or selector is None or bound.filter is None:
        return
    # as its client wrote it: former versions put no prefix before selectors of STOMP clients, and JMS clients put none
    if (wanted := condition_of(bound.filter)) != condition_of(selector):
        raise RequestRefused(f"{name} takes only {wanted!r}: a subscriber has that selector, or none")


def _as_queue(name: Destination) -> bool:
    """Whether it is called a queue; called a topic, it is a subscription with the selector it was made with."""
    return name.kind is DestinationKind.QUEUE
