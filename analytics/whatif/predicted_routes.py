"""Ways: where the messages of a class go, as the broker routes them. Pure."""

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
        """Return whether it is about what stays where it is."""
        return self.at == self.target

    @staticmethod
    def of(hop: RouteHop) -> TargetUse:
        """The leg that a hop was about."""
        return TargetUse(hop.definition, str(hop.at), str(hop.target), hop.selector)


@dataclass(frozen=True, slots=True)
class PredictedRoute:
    """The route of one message: number of copies by target, and problems."""

    targets: tuple[tuple[str, int], ...]  #: logs and topics, in native form
    shared: tuple[tuple[str, int], ...]  #: addresses whose queues take turns, in native form of a queue
    legs: tuple[tuple[TargetUse, Answer], ...]  #: each that was considered, with what its filter said
    is_stored: bool  #: a copy is stored somewhere
    problem: str  #: what would end it too early

    def is_lost(self, unheard: Collection[str] = ()) -> bool:
        """It reaches nothing at all: its definitions forward it to nobody, or only to topics without subscribers."""
        return not self.shared and all(name in unheard for name, _ in self.targets)


def predict_route(routing: ScriptedRouting, destination: Destination, answers: Answers) -> PredictedRoute:
    """Return the way of messages to a destination of which the selectors say this. Raises TooEntangled."""
    route, hops, problem = routing.route(destination, answers)
    if problem:  # the broker refuses it whole
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
