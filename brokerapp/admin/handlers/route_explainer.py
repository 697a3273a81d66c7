"""Explaining: where a message would go, and why, by the definitions in force or by others that are only proposed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from brokerapp.core.broker import Broker
from brokerapp.engine.routing.consumer_queues import topic_behind
from brokerapp.engine.routing.route_walk import Route, RouteHop, trace_route
from brokerapp.engine.routing.routing_context import RoutingContext, SubscriptionLog
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.model.definition_codec import from_json
from brokerapp.model.definitions import Definitions, VirtualTopic
from brokerapp.model.destination import Destination, DestinationKind

#: Hops and places that are told of: what a person reads, and what fits into an answer.
MAX_PLACES = 500


class RouteExplainer:
    """Asks the way of messages that nobody sends: nothing is stored, counted or given to anybody."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def explain(
        self, destination: str, headers: dict[str, str], body: str = "", definitions: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Every hop that would be considered, where the message would come to, and what would end it too early.

        With `definitions` by these instead of those in force. What consumers and subscriptions want is as it is now.
        """
        topology = self._topology(definitions)
        found, hops, problem = trace_route(headers, Destination.parse(destination), topology, body.encode())
        return {
            "hops": [_told(each) for each in hops[:MAX_PLACES]],
            "places": _places(found)[:MAX_PLACES],
            "untold": max(0, len(hops) - MAX_PLACES),
            "problem": problem,
        }

    async def circumstances(self, definitions: dict[str, Any] | None = None) -> dict[str, Any]:
        """What ways depend on beside definitions, as it is now: by those in force, and by these proposed ones."""
        every = [self._broker.routing.table.definitions, *([] if definitions is None else [from_json(definitions)])]
        queues = [
            each.destination.name for each in self._broker.queues if each.destination.kind is DestinationKind.QUEUE
        ]
        kept = [
            SubscriptionLog(each.subscription, each.log.name, each.feed.persistent_only)
            for each in self._broker.durables
        ]
        wanted = {name: self._wanted(name) for name in _asked(queues, every)}
        bindings = tuple(self._broker.routing.table.bindings)
        listened = tuple(self._broker.placement.propagation.listened_topics(DestinationKind.TOPIC))
        return RoutingContext(tuple(queues), bindings, tuple(kept), wanted, listened).to_json()

    def _wanted(self, queue: str) -> tuple[str | None, ...]:
        """The selectors of a queue's consumers, present and remembered."""
        log = self._broker.queues.find(Destination.queue(queue))
        present = {each.selector.text if each.selector is not None else None for each in log.consumers}
        return (*present, *(each for each in self._broker.queues.remembering.entries_of(log.name)))

    def _topology(self, definitions: dict[str, Any] | None) -> RoutingTable:
        present = self._broker.routing.table
        if definitions is None:
            return present
        return RoutingTable(from_json(definitions), present.interest, present.queues, present.feeds, present.bindings)


def _asked(queues: Iterable[str], every: Iterable[Definitions]) -> list[str]:
    """The queues whose consumers virtual topics ask before they copy."""
    asking = [
        each
        for definitions in every
        for each in definitions.virtual_destinations
        if isinstance(each, VirtualTopic) and each.selector_aware
    ]
    return [name for name in queues if any(topic_behind(each, name) is not None for each in asking)]


def _places(found: Route) -> list[list[str]]:
    """Where copies come to, each with the destination its consumers see."""
    return [[str(each.destination), str(each.shown or each.destination)] for each in (*found.queues, *found.topics)]


def _told(hop: RouteHop) -> dict[str, Any]:
    return {
        "at": str(hop.at),
        "definition": hop.definition,
        "target": str(hop.target),
        "selector": hop.selector,
        "outcome": hop.outcome,
        "depth": hop.depth,
        "seen": None if hop.seen is None else dict(hop.seen),
    }
