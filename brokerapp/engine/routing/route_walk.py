"""Decide which physical destinations a message reaches: one pure function, `route`.

Each definition that matches a destination acts by itself, as in ActiveMQ: a virtual topic copies to its consumer queues
and lets the message reach the topic; a composite forwards to its legs and lets it reach its own destination by its
options. A destination none matches is reached as it is. Forwarded copies are routed again, so definitions chain.
A copy that reaches a topic is kept for each named subscription that wants it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from brokerapp.engine.routing.bindings import Binding
from brokerapp.engine.routing.route_decisions import Answer, MessageViews, Question, RouteDecisions
from brokerapp.engine.routing.routing_table import MAX_CACHED, MAX_DECIDED_ROUTES, RoutingTable
from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import CompositeDestination, VirtualTopic
from brokerapp.model.destination import QUALIFIER, Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.selectors import Selector, SelectorView

#: Forwards in a row after which a chain is taken for a loop (definitions with loops are refused when saved; wildcard
#: names can still make one).
MAX_HOPS = 32
#: Destinations one message may come to: legs that meet again double its ways with every step, without any loop.
MAX_VISITS = 65_536


@dataclass(slots=True)
class RouteHop:
    """One step of a route, for those who ask why: what applied at a destination and what it did."""

    at: Destination
    definition: str  #: id of the definition, "" when none applied
    target: Destination
    selector: str | None = None
    outcome: bool | None = True  #: of the selector; True where there is none
    depth: int = 0
    seen: Mapping[str, str] | None = None  #: what a selector saw of the message there, where one was asked


@dataclass(slots=True)
class Route:
    """Where a message goes: copies to store in queues and subscriptions, copies for those who listen to topics."""

    queues: list[RoutedCopy] = field(default_factory=list)
    topics: list[RoutedCopy] = field(default_factory=list)
    depends_on_message: bool = False
    dropping: set[RoutedCopy] = field(default_factory=set)  #: of `queues`: left out where there is no room
    bound: list[str] = field(default_factory=list)  #: by their full names, queues bound to a topic it comes to
    groups: Any = None  #: where the broker keeps its own form of `queues`


def route(
    message: Message,
    destination: Destination,
    topology: RoutingTable,
    sent_to: Destination | None = None,
    sender: str = "",
    *,
    is_moved: bool = False,
) -> Route:
    """Where a message sent to `destination` by the client of the client-id `sender` goes.

    `sent_to` is the list of which the destination is an element, when there is one: copies say so. `is_moved`: it is
    an operator who sends it there, whatever bridge brought it once. Routes are kept in the topology; those that depend
    on the message by its answers to what is asked on its way, so that it may be the route of another message, too.
    """
    key = destination if sent_to is None else (destination, sent_to)
    plan = topology.plans.get(key)
    if plan is not None:
        return plan  # type: ignore[return-value]
    crossed = bool(message.path) and not is_moved
    views = MessageViews(message.headers, message.body, sender)
    decisions: RouteDecisions[Route] | None = topology.plans.get((key, crossed))  # type: ignore[assignment]
    if decisions is not None and (found := decisions.find(views)) is not None:
        return found
    walk = _RouteWalk(views, topology, crossed=crossed)
    result = walk.walk(destination, sent_to)
    if len(topology.plans) >= MAX_CACHED or topology.decided_route_count >= MAX_DECIDED_ROUTES:
        topology.plans.clear()
        topology.decided_route_count = 0
        decisions = None
    if not result.depends_on_message:
        topology.plans[key] = result
    elif walk.answers and walk.is_repeatable:
        if decisions is None:
            decisions = topology.plans[key, crossed] = RouteDecisions()
        topology.decided_route_count += decisions.keep(walk.answers, result)
    return result


def exclude_bound(found: Route, held: Collection[str]) -> Route:
    """The route of a message of a topic of which these queues, by their full names, hold a copy elsewhere."""
    bound = [each for each in found.bound if each not in held]
    if len(bound) == len(found.bound):
        return found
    queues = [each for each in found.queues if _as_bound(each) not in held]
    return replace(found, queues=queues, bound=bound, groups=None)


def _as_bound(copy: RoutedCopy) -> str:
    """The full name of the queue a copy is for, if it comes there as one bound to a topic."""
    return f"{copy.original.name}{QUALIFIER}{copy.destination.name}" if copy.original is not None else ""


def annotate_bound(message: Message, found: Route, before: tuple[str, ...] = ()) -> Message:
    """The message, which says to other brokers which bound queues hold a copy of it: these by its route, and those by
    ways before.
    """
    held = (*before, *found.bound)
    return message if held == message.held else replace(message, held=held)


def exclude_logs(found: Route, logs: Collection[Destination]) -> Route:
    """The route of a message that these are not to keep."""
    queues = [each for each in found.queues if each.destination not in logs]
    return found if len(queues) == len(found.queues) else replace(found, queues=queues, groups=None)


def explain_route(
    headers: Mapping[str, str], destination: Destination, topology: RoutingTable, body: bytes = b""
) -> tuple[Route, list[RouteHop]]:
    """The same route with every hop that was considered, for a message with these headers and this body."""
    route, hops, problem = trace_route(headers, destination, topology, body)
    if problem:
        raise RequestRefused(problem)
    return route, hops


def trace_route(
    headers: Mapping[str, str], destination: Destination, topology: RoutingTable, body: bytes = b""
) -> tuple[Route, list[RouteHop], str]:
    """The same as far as it goes, and what ended it too early: "" when nothing did."""
    walk = _RouteWalk(MessageViews(headers, body, sender=""), topology, hops=[])
    problem = ""
    try:
        walk.walk(destination)
    except RequestRefused as refused:
        problem = str(refused)
    return walk.route, walk.hops or [], problem


def _is_interested(topology: RoutingTable, queue: Destination, seen: SelectorView, _sender: str) -> bool:
    return topology.interest(queue, seen)


class _RouteWalk:
    """One message's way through the definitions."""

    def __init__(
        self,
        views: MessageViews,
        topology: RoutingTable,
        hops: list[RouteHop] | None = None,
        *,
        crossed: bool = False,
    ) -> None:
        self.topology, self.hops, self._views = topology, hops, views
        self._came_by_bridge = crossed  # a bridge brought it
        self.answers: list[tuple[Question, Answer]] = []  #: what was asked of the message, in order
        self.is_repeatable = True  #: whether messages with the same answers go the same way
        self.route = Route()
        self._reached: dict[Destination, RoutedCopy] = {}  # queues and named subscriptions, and what they get
        self._mirroring: set[Destination] = set()  # a wildcard's queue may get copies of its own mirror: not for ever
        self._visits = 0
        self._dropping = 0  # virtual topics on the way here that rather drop than refuse

    def walk(self, destination: Destination, sent_to: Destination | None = None) -> Route:
        self._visit(RoutedCopy(destination, sent_to), 0)
        return self.route

    def _visit(self, copy: RoutedCopy, depth: int) -> None:
        if depth > MAX_HOPS:
            raise RequestRefused(
                f"{copy.destination} is reached after {MAX_HOPS} forwards: the definitions form a loop"
            )
        self._visits += 1
        if self._visits > MAX_VISITS:
            raise RequestRefused(f"the definitions forward a message more than {MAX_VISITS} times")
        if copy.destination.address is not None:  # that queue and no other, whatever is defined
            self._add_queue(RoutedCopy(copy.destination, copy.original, copy.destination))
            return
        definitions = self.topology.virtual_destinations_for(copy.destination)
        if not definitions:
            self._reach(copy, depth)
        for definition in definitions:
            if isinstance(definition, VirtualTopic):
                self._virtual_topic(definition, copy, depth)
            elif isinstance(definition, CompositeDestination):
                self._composite(definition, copy, depth)

    def _reach(self, copy: RoutedCopy, depth: int) -> None:
        """The copy arrives; a queue stores the message once, as it comes first, a topic's subscribers get each copy."""
        if not copy.destination.is_queue:
            self._copy_to_bound(copy, depth)
            self.route.topics.append(copy)
            if copy.destination.kind is DestinationKind.TOPIC:
                self._copy_to_subscriptions(copy, depth)
            return
        self._copy_to_mirror(copy, depth)
        self._add_queue(self._pick_anycast(copy, depth))

    def _add_queue(self, copy: RoutedCopy) -> None:
        if copy.destination not in self._reached:
            self._reached[copy.destination] = copy
            self.route.queues.append(copy)
            if self._dropping:
                self.route.dropping.add(copy)
        elif not self._dropping:  # who comes another way insists
            self.route.dropping.discard(self._reached[copy.destination])

    def _copy_to_bound(self, copy: RoutedCopy, depth: int) -> None:
        """A copy for each queue that is bound to the topic, and does not get one from a virtual topic."""
        topic = copy.destination
        for binding in self.topology.bindings.at_topic(topic.name):
            if self.topology.copies_to(topic, binding.queue):
                continue
            queue = Destination.queue(binding.queue)
            wanted = self._matches_binding(binding, topic)
            self._add_hop(topic, binding.id, queue, selector=binding.filter, outcome=wanted, depth=depth, original=None)
            if wanted is True:
                self.route.bound.append(binding.id)
                self._visit(RoutedCopy(queue, topic), depth + 1)

    def _matches_binding(self, binding: Binding | None, topic: Destination) -> bool | None:
        """Evaluate the selector of a bound queue; True without a selector."""
        if binding is None or binding.selector is None:
            return True
        return self._ask_selector(binding.selector, topic, None)

    def _pick_anycast(self, copy: RoutedCopy, depth: int) -> RoutedCopy:
        """The copy for the queue whose turn it is, where several share what is sent to one."""
        own = copy.destination
        sharing = self.topology.bindings.sharing(own.name)
        if not sharing:
            return copy
        self.route.depends_on_message, self.is_repeatable = True, False
        if self.hops is None:
            self.topology.bindings.advance_turn(own.name)
        queue = Destination.queue(sharing[0])
        self._add_hop(own, f"{own.name}{QUALIFIER}{queue.name}", queue, depth=depth)
        return RoutedCopy(queue, copy.original, copy.shown or own)

    def _copy_to_subscriptions(self, copy: RoutedCopy, depth: int) -> None:
        """Add a copy for each named subscription of a topic."""
        topic = copy.destination
        for feed in self.topology.feeds_of(topic.name):
            outcome: bool | None = feed.may_read(topic)
            if outcome and feed.depends_on_message:
                outcome = self._ask(Question(topic, copy.original, feed.takes))
            selector = feed.subscription.selector
            self._add_hop(
                topic, str(feed.subscription), feed.target, selector=selector, outcome=outcome, depth=depth,
                original=copy.original,
            )  # fmt: skip
            if outcome is True:
                self._add_queue(RoutedCopy(feed.target, copy.original, topic))

    def _copy_to_mirror(self, copy: RoutedCopy, depth: int) -> None:
        queue, mirror = copy.destination, self.topology.mirror
        topic = self.topology.mirror_of(queue)
        if mirror is not None and topic is not None and queue not in self._reached and queue not in self._mirroring:
            self._add_hop(queue, mirror.id, topic, depth=depth)
            self._mirroring.add(queue)
            self._visit(RoutedCopy(topic, copy.original), depth + 1)
            self._mirroring.discard(queue)

    def _virtual_topic(self, definition: VirtualTopic, copy: RoutedCopy, depth: int) -> None:
        """Copies to the consumer queues, and the message itself to who subscribes to the topic."""
        topic = copy.destination
        self.route.depends_on_message |= definition.local
        is_copied = not (definition.local and self._came_by_bridge)
        for name in self.topology.consumer_queues(definition, topic.name) if is_copied else ():
            queue = Destination.queue(name)
            wanted: bool = True
            if definition.selector_aware:
                wanted = self._ask(Question(queue, topic, partial(_is_interested, self.topology, queue))) is True
            wanted = wanted and self._matches_binding(self.topology.bindings.of(name), topic) is True
            self._add_hop(topic, definition.id, queue, outcome=wanted, depth=depth)
            if not wanted:
                continue
            shown = None if definition.set_original_destination else topic
            self._dropping += definition.drop_on_resource_limit
            self._visit(RoutedCopy(queue, None if shown else topic, shown), depth + 1)
            self._dropping -= definition.drop_on_resource_limit
        self._add_hop(topic, definition.id, topic, depth=depth)
        self._reach(copy, depth)

    def _composite(self, definition: CompositeDestination, copy: RoutedCopy, depth: int) -> None:
        own, matched = copy.destination, False
        for leg in self.topology.forward_targets_of(definition):
            outcome: bool | None = True
            if leg.selector is not None:
                outcome = self._ask_selector(leg.selector, own, copy.original)
            text = leg.selector.text if leg.selector else None
            self._add_hop(
                own, definition.id, leg.destination, selector=text, outcome=outcome, depth=depth, original=copy.original
            )
            if outcome is True:
                matched = True
                self._visit(RoutedCopy(leg.destination, own), depth + 1)
        keeps = not matched if definition.send_when_not_matched else not definition.forward_only
        self._add_hop(own, definition.id, own, outcome=keeps, depth=depth)
        if keeps:
            self._reach(copy, depth)

    def _ask_selector(self, selector: Selector, destination: Destination, original: Destination | None) -> Answer:
        return self._ask(Question(destination, original, lambda seen, _sender: selector.evaluate(seen)))

    def _ask(self, question: Question) -> Answer:
        """Ask something of the message, on which its route depends."""
        self.route.depends_on_message = True
        answer = question.answer(self._views)
        self.answers.append((question, answer))
        return answer

    def _add_hop(
        self,
        at: Destination,
        definition: str,
        target: Destination,
        *,
        depth: int,
        selector: str | None = None,
        outcome: bool | None = True,
        original: Destination | None = None,
    ) -> None:
        if self.hops is not None:
            seen = self._views.at(at, original) if selector is not None else None
            self.hops.append(RouteHop(at, definition, target, selector, outcome, depth, seen))
