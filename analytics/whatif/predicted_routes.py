"""Predict the routes of the messages of a class with the broker's own routing. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from analytics.whatif.conditions import Answer, Answers, ScriptedRouting
from brokerapp.engine.routing.route_walk import RouteHop
from brokerapp.model.destination import Destination


@dataclass(frozen=True, slots=True, order=True)
class TargetUse:
    """One target of one definition, at one destination."""

    definition: str
    at: str
    target: str
    selector: str | None = None

    @property
    def is_own(self) -> bool:
        """Return whether the target is the destination itself."""
        return self.at == self.target

    @staticmethod
    def of(hop: RouteHop) -> TargetUse:
        """Return the target of a hop."""
        return TargetUse(hop.definition, str(hop.at), str(hop.target), hop.selector)


@dataclass(frozen=True, slots=True)
class PredictedRoute:
    """The route of one message: number of copies by target, and problems."""

    targets: tuple[tuple[str, int], ...]  #: logs and topics, in native form
    shared: tuple[tuple[str, int], ...]  #: addresses whose queues share messages in turn, in native form of a queue
    target_uses: tuple[tuple[TargetUse, Answer], ...]  #: targets that were considered, with their selectors' answers
    is_stored: bool  #: a copy is stored somewhere
    problem: str  #: why the broker would reject the message; "" if it would not

    def is_lost(self, unheard: Collection[str] = ()) -> bool:
        """Return whether the message reaches no queue and no topic with subscribers."""
        return not self.shared and all(name in unheard for name, _ in self.targets)


def predict_route(routing: ScriptedRouting, destination: Destination, answers: Answers) -> PredictedRoute:
    """Route messages to a destination for which selectors have these answers. Raises TooManyConditions."""
    route, hops, problem = routing.route(destination, answers)
    if problem:  # the broker rejects the message as a whole
        return PredictedRoute((), (), (), is_stored=False, problem=problem)
    bindings = routing.topology.bindings
    targets: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    for copy in route.queues:
        if copy.shown is not None and copy.destination.name in bindings.sharing(copy.shown.name):
            shared[str(copy.shown)] += 1
        else:
            targets[str(copy.destination.physical)] += 1
    for copy in route.topics:
        targets[str(copy.destination)] += 1
    legs = tuple((TargetUse.of(hop), hop.outcome) for hop in hops)
    return PredictedRoute(_sorted(targets), _sorted(shared), legs, is_stored=bool(route.queues), problem="")


def _sorted(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items()))
