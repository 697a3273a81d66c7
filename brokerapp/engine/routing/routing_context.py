"""RoutingContext: what a message's way depends on beside the definitions. Pure, and plain enough to travel.

Which queues exist, which of them are bound to addresses, which named subscriptions keep what, what the consumers of
queues want (for virtual topics that ask: `selectorAware`), and which topics have subscribers. With definitions they
make a topology, also one of definitions that are only proposed, in a process that is no node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from brokerapp.engine.routing.bindings import Binding, Bindings
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.engine.routing.subscription_feeds import SubscriptionFeed
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import Selector, compile_selector

#: Makes a selector of its text, and of whether it is strict.
SelectorCompiler = Callable[[str, bool], Selector]


@dataclass(frozen=True, slots=True)
class SubscriptionLog:
    """A named subscription and the log of its messages."""

    subscription: SubscriptionIdentity
    log: str
    persistent_only: bool = False  #: nobody consumes, and the broker keeps only such messages then

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        only = {"persistentOnly": True} if self.persistent_only else {}
        return {"log": self.log, **only, **self.subscription.attributes()}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> SubscriptionLog:
        """Build the object from the result of to_json."""
        return SubscriptionLog(
            SubscriptionIdentity.from_attributes(data), data["log"], data.get("persistentOnly", False)
        )


@dataclass(frozen=True, slots=True)
class RoutingContext:
    """The queues, bindings, subscriptions and interest that routing depends on at one moment."""

    queues: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()
    kept: tuple[SubscriptionLog, ...] = ()
    #: By queue, the selectors of its consumers, present and remembered; None among them: somebody takes everything.
    wanted: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    #: Names and patterns of the topics that have subscribers beside the named ones; None: nobody said.
    listened: tuple[str, ...] | None = None

    def topology(self, definitions: Definitions, compiling: SelectorCompiler = compile_selector) -> RoutingTable:
        """Compile definitions to a routing table in this context."""
        interests = {
            queue: [compiling(each, False) if each is not None else None for each in texts]
            for queue, texts in self.wanted.items()
        }

        def interest(queue: Destination, headers: Mapping[str, str]) -> bool:
            found = [each is None or each.matches(headers) for each in interests.get(queue.name, ())]
            return any(found)  # all were asked: who looks on learns what the answer depends on

        bindings = Bindings()
        for each in self.bindings:
            compiled = None if each.filter is None else compiling(each.filter, False)
            bindings.add(Binding(each.address, each.queue, each.routing, each.filter, compiled))
        topology = RoutingTable(definitions, interest, bindings=bindings, compiling=compiling)
        for name in self.queues:
            topology.queues.add(name, name)
        for log in self.kept:
            topology.add_feed(_CompiledFeed(log, compiling))
        return topology

    def with_queues(self, names: Iterable[str]) -> RoutingContext:
        """The same with these queues, too."""
        queues = tuple(dict.fromkeys((*self.queues, *names)))
        return replace(self, queues=queues)

    def has_subscribers(self, topic: Destination) -> bool:
        """Whether what comes to this topic comes to a subscriber, as far as anybody said."""
        return self.listened is None or any(matches(each, topic.name) for each in self.listened)

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        return {
            "queues": list(self.queues),
            "bindings": {each.queue: each.to_json() for each in self.bindings},
            "kept": [each.to_json() for each in self.kept],
            "wanted": {queue: list(texts) for queue, texts in self.wanted.items()},
            "listened": None if self.listened is None else list(self.listened),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> RoutingContext:
        """Build the object from the result of to_json."""
        bindings = [Binding.from_json(queue, each) for queue, each in data["bindings"].items()]
        return RoutingContext(
            tuple(data["queues"]),
            tuple(each for each in bindings if each is not None),
            tuple(map(SubscriptionLog.from_json, data["kept"])),
            {queue: tuple(texts) for queue, texts in data["wanted"].items()},
            None if data.get("listened") is None else tuple(data["listened"]),
        )


class _CompiledFeed(SubscriptionFeed):
    """A feed whose selectors are compiled by somebody else."""

    __slots__ = ("_persistent",)

    def __init__(self, kept: SubscriptionLog, compiling: SelectorCompiler) -> None:
        super().__init__(kept.subscription, Destination.parse(kept.log), _may_read)
        if self.selector is not None:
            self.selector = compiling(self.selector.text, False)
        self.persistent_only = kept.persistent_only
        self._persistent = compiling("persistent", False)

    def takes(self, headers: Mapping[str, str], sender: str) -> bool | None:
        if self.persistent_only and not self._persistent.matches(headers):
            return False
        if self.subscription.no_local and sender == self.subscription.client_id:
            return False
        return self.selector is None or self.selector.evaluate(headers)


def _may_read(_subscription: SubscriptionIdentity, _topic: Destination) -> bool:
    """Rights are a matter of the node: what was kept for somebody, they could read."""
    return True
