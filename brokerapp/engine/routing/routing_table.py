"""RoutingTable: the definitions, compiled so that no message needs parsing or searching, with the queues that exist.

A definition change builds a new one; the queues are handed over. Selectors are compiled here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.engine.routing.bindings import Binding, Bindings
from brokerapp.engine.routing.destination_trie import DestinationTrie, matches, specificity
from brokerapp.engine.routing.subscription_feeds import SubscriptionFeed
from brokerapp.model.definitions import (
    CompositeDestination,
    Definitions,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    VirtualDestination,
    VirtualTopic,
)
from brokerapp.model.destination import SEPARATOR, Destination, DestinationKind
from brokerapp.selectors import Selector, compile_selector

#: Routes and policies remembered by destination: their names come from clients.
MAX_CACHED = 65_536
#: Routes that depend on messages, of all destinations together: some 2 KB each, and their names come from clients.
MAX_DECIDED_ROUTES = 16_384

#: Asked for `selectorAware`: would a consumer of this queue, present or remembered, take a message with these headers?
Interest = Callable[[Destination, Mapping[str, str]], bool]


@dataclass(frozen=True, slots=True)
class CompiledForwardTarget:
    """A leg of a composite; `selector` is None when it takes everything."""

    destination: Destination
    selector: Selector | None


class RoutingTable:
    """Compiled definitions with the existing queues, feeds and bindings, which change and outlive the definitions."""

    def __init__(
        self,
        definitions: Definitions,
        interest: Interest,
        queues: DestinationTrie[str] | None = None,
        feeds: DestinationTrie[SubscriptionFeed] | None = None,
        bindings: Bindings | None = None,
        compiling: Callable[[str, bool], Selector] = compile_selector,
    ) -> None:
        self.definitions, self.interest, self._compile = definitions, interest, compiling
        self.queues: DestinationTrie[str] = queues if queues is not None else DestinationTrie()
        self.feeds: DestinationTrie[SubscriptionFeed] = feeds if feeds is not None else DestinationTrie()
        self.bindings = bindings if bindings is not None else Bindings()
        self.plans: dict[object, object] = {}  # route_walk.py keeps routes here
        self.decided_route_count = 0  # of these, routes that depend on messages: at most, as plans are dropped unseen
        self.mirror: MirroredQueue | None = None
        self._virtual: dict[DestinationKind, DestinationTrie[VirtualTopic | CompositeDestination]] = {
            kind: DestinationTrie() for kind in DestinationKind
        }
        self._virtual_of: dict[Destination, list[VirtualTopic | CompositeDestination]] = {}
        self._legs: dict[str, tuple[CompiledForwardTarget, ...]] = {}
        self._policies: dict[DestinationKind, DestinationTrie[PolicyEntry]] = {
            kind: DestinationTrie() for kind in DestinationKind
        }
        self._policy_of: dict[Destination, PolicyEntry | None] = {}
        self.remembers = any(each.recovery for each in definitions.policies)  #: whether some topics have to
        self.forces_persistency = any(each.force_persistency is not None for each in definitions.policies)
        for each in definitions.virtual_destinations:
            self._add(each)
        self._redelivery: dict[DestinationKind, DestinationTrie[RedeliveryPolicy]] = {
            kind: DestinationTrie() for kind in DestinationKind
        }
        for policy in definitions.redelivery.policies:
            self._redelivery[policy.destination.kind].add(policy.destination.name, policy)
        for entry in definitions.policies:
            self._policies[entry.destination.kind].add(entry.destination.name, entry)

    def _add(self, definition: VirtualDestination) -> None:
        match definition:
            case VirtualTopic():
                self._virtual[DestinationKind.TOPIC].add(definition.name, definition)
            case CompositeDestination():
                self._virtual[definition.destination.kind].add(definition.destination.name, definition)
                self._legs[definition.id] = tuple(
                    CompiledForwardTarget(
                        leg.destination, self._compile(leg.selector, definition.strict) if leg.selector else None
                    )
                    for leg in definition.legs
                )
            case MirroredQueue():
                self.mirror = definition

    def virtual_destinations_for(self, destination: Destination) -> list[VirtualTopic | CompositeDestination]:
        """The definitions that apply to a message sent to this destination. Do not change the list."""
        found = self._virtual_of.get(destination)
        if found is None:
            found = self._virtual[destination.kind].find(destination.name)
            if destination.is_pattern:  # a queue called like a pattern: what is meant for it names it, or all like it
                found = [each for each in found if matches(_name(each), destination.name)]
            if is_advisory(destination):  # these never fan out; a composite may forward them
                found = [each for each in found if isinstance(each, CompositeDestination)]
            if len(self._virtual_of) >= MAX_CACHED:
                self._virtual_of.clear()
            self._virtual_of[destination] = found
        return found

    def may_forward(self, topics: Destination) -> bool:
        """Whether a composite may forward what is sent to a topic, or to one of those that match a pattern."""
        return any(isinstance(each, CompositeDestination) for each in self._virtual[topics.kind].find(topics.name))

    def mirror_of(self, queue: Destination) -> Destination | None:
        """The topic that gets what is sent to a queue; None when it is not mirrored."""
        mirror = self.mirror
        if mirror is None or (queue.is_temporary and not mirror.temporary):
            return None
        return Destination.topic(mirror.prefix + queue.name + mirror.postfix)

    def forward_targets_of(self, composite: CompositeDestination) -> tuple[CompiledForwardTarget, ...]:
        """Its legs, compiled, in the order defined."""
        return self._legs[composite.id]

    def consumer_queues(
        self, virtual_topic: VirtualTopic, topic: str, among: DestinationTrie[str] | None = None
    ) -> list[str]:
        """The existing queues that a message to this topic is copied to, by prefix + topic + postfix."""
        found = (among or self.queues).find(virtual_topic.prefix + topic + virtual_topic.postfix)
        family, star, _ = virtual_topic.prefix.partition(SEPARATOR + "*")
        if star and not virtual_topic.prefix.startswith("*"):
            # keeps wildcard-named queues of other families out, e.g. `q.private.>` under the prefix `q.private.vt.*.`
            return [name for name in found if name.startswith(family)]
        return found

    @property
    def samples_traces(self) -> bool:
        """Whether of some destinations not everything is."""
        return any((each.record_one_in, each.record_properties) != (None, None) for each in self.definitions.policies)

    def policy_for(self, destination: Destination) -> PolicyEntry | None:
        """The most specific policy entry for this destination."""
        if not self.definitions.policies:
            return None
        if destination not in self._policy_of:
            if len(self._policy_of) >= MAX_CACHED:
                self._policy_of.clear()
            meant = destination.physical
            entries = self._policies[meant.kind].find(meant.name)
            self._policy_of[destination] = max(
                entries, key=lambda entry: specificity(entry.destination.name), default=None
            )
        return self._policy_of[destination]

    def redelivery_for(self, destination: Destination) -> RedeliveryPolicy | None:
        """The most specific redelivery policy for this destination."""
        found = self._redelivery[destination.kind].find(destination.name)
        return max(found, key=lambda policy: specificity(policy.destination.name), default=None)

    def add_queue(self, name: str) -> None:
        """Add a queue that was created."""
        self.queues.add(name, name)
        self.plans.clear()

    def bind(self, binding: Binding) -> None:
        """A queue belongs to an address from now on."""
        self.bindings.add(binding)
        self.plans.clear()

    def copies_to(self, topic: Destination, queue: str) -> bool:
        """Whether a virtual topic copies what is sent to this topic to the queue."""
        only: DestinationTrie[str] = DestinationTrie()
        only.add(queue, queue)
        return any(
            isinstance(each, VirtualTopic) and self.consumer_queues(each, topic.name, only)
            for each in self.virtual_destinations_for(topic)
        )

    def feeds_of(self, topic: str) -> Iterable[SubscriptionFeed]:
        """Return the named subscriptions of a topic, each once, however many of its patterns match."""
        return dict.fromkeys(self.feeds.find(topic))

    def add_feed(self, feed: SubscriptionFeed) -> None:
        """A named subscription is fed from now on."""
        for topic in feed.subscription.topics:
            self.feeds.add(topic.name, feed)
        self.plans.clear()

    def remove_feed(self, feed: SubscriptionFeed) -> None:
        """Remove a named subscription that was deleted."""
        for topic in feed.subscription.topics:
            self.feeds.remove(topic.name, feed)
        self.plans.clear()

    def forget_routes(self, destination: Destination) -> None:
        """Forget the routes of a destination that was removed."""
        for key in (destination, (destination, False), (destination, True)):
            self.plans.pop(key, None)

    def remove_queue(self, name: str) -> None:
        """Remove a queue that was deleted."""
        self.queues.remove(name, name)
        self.bindings.remove(name)
        self.plans.clear()
        self._policy_of.clear()


def _name(definition: VirtualTopic | CompositeDestination) -> str:
    return definition.destination.name if isinstance(definition, CompositeDestination) else definition.name
