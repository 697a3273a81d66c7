"""Explains where a message would be delivered by the active definitions or by proposed ones."""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.core.destinations.queue_registry import QueueRegistry
from brokerapp.core.ports import DurablesPort, RoutingPort, TopicListenersPort
from brokerapp.engine.routing.consumer_queues import topic_behind
from brokerapp.engine.routing.route_walk import Route, RouteHop, trace_route
from brokerapp.engine.routing.routing_context import RoutingContext, SubscriptionLog
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.model import JsonObject
from brokerapp.model.definition_codec import from_json
from brokerapp.model.definitions import Definitions, VirtualTopic
from brokerapp.model.destination import Destination, DestinationKind

#: Hops and targets reported at most.
MAX_REPORTED = 500


class RouteExplainer:
    """Routes messages without sending them: nothing is stored, counted or delivered."""

    def __init__(
        self, *, routing: RoutingPort, queues: QueueRegistry, durables: DurablesPort, listeners: TopicListenersPort
    ) -> None:
        self._routing, self._queues, self._durables, self._listeners = routing, queues, durables, listeners

    async def explain(
        self, destination: str, headers: dict[str, str], body: str = "", definitions: JsonObject | None = None
    ) -> JsonObject:
        """Return the hops that are considered, the targets of the message, and what would stop it.

        With `definitions`, these take the place of the active ones; consumers and subscriptions are the present ones.
        """
        table = self._routing.table
        if definitions is not None:
            table = RoutingTable(from_json(definitions), table.interest, table.queues, table.feeds, table.bindings)
        found, hops, problem = trace_route(headers, Destination.parse(destination), table, body.encode())
        return {
            "hops": [_hop_to_json(each) for each in hops[:MAX_REPORTED]],
            "places": _targets(found)[:MAX_REPORTED],
            "untold": max(0, len(hops) - MAX_REPORTED),
            "problem": problem,
        }

    async def routing_context(self, definitions: JsonObject | None = None) -> JsonObject:
        """Return what routing depends on besides definitions: RoutingContext for the active and these definitions."""
        table = self._routing.table
        considered = [table.definitions, *([] if definitions is None else [from_json(definitions)])]
        queues = [each.destination.name for each in self._queues if each.destination.kind is DestinationKind.QUEUE]
        subscriptions = tuple(
            SubscriptionLog(each.identity, each.log.name, each.feed.persistent_only) for each in self._durables
        )
        selectors = {name: self._selectors(name) for name in _selector_aware_queues(queues, considered)}
        listened = tuple(self._listeners.names(DestinationKind.TOPIC))
        return RoutingContext(tuple(queues), tuple(table.bindings), subscriptions, selectors, listened).to_json()

    def _selectors(self, queue: str) -> tuple[str | None, ...]:
        """Return the selectors of a queue's consumers, present and remembered; None: without a selector."""
        log = self._queues.find(Destination.queue(queue))
        present = {each.selector.text if each.selector is not None else None for each in log.consumers}
        return (*present, *self._queues.remembering.entries_of(log.name))


def _selector_aware_queues(queues: Iterable[str], considered: Iterable[Definitions]) -> list[str]:
    """Return the queues whose consumers' selectors decide what virtual topics copy there."""
    topics = [
        each
        for definitions in considered
        for each in definitions.virtual_destinations
        if isinstance(each, VirtualTopic) and each.selector_aware
    ]
    return [name for name in queues if any(topic_behind(each, name) is not None for each in topics)]


def _targets(found: Route) -> list[list[str]]:
    """Return where copies are delivered, each with the destination that its consumers see."""
    return [[str(each.destination), str(each.shown or each.destination)] for each in (*found.queues, *found.topics)]


def _hop_to_json(hop: RouteHop) -> JsonObject:
    return {
        "at": str(hop.at),
        "definition": hop.definition,
        "target": str(hop.target),
        "selector": hop.selector,
        "outcome": hop.outcome,
        "depth": hop.depth,
        "seen": None if hop.seen is None else dict(hop.seen),
    }
