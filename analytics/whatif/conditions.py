"""Find the selectors that are evaluated on the routes of messages. Pure.

The broker's own route walk runs with selectors that return scripted answers and note what they were asked, so that no
second interpretation of the definitions is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from brokerapp.engine.routing.route_walk import Route, RouteHop, trace_route
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.selectors import Selector, compile_selector
from brokerapp.selectors.identifiers import identifier_for

#: Route walks for one destination, in addition to one for each route that opens when selectors do not match.
MAX_COMBINATIONS = 64

#: Headers with the destination of a message, which the route walk sets.
DESTINATION_HEADERS = ("destination", "original-destination")


class TooManyConditions(BrokerError):
    """Definitions that have too many or endless routes."""

    code = "too-entangled"


@dataclass(frozen=True, slots=True)
class SelectorCondition:
    """A selector that is evaluated on messages at a destination.

    `place` has the values of DESTINATION_HEADERS, or is empty for a selector that does not use them.
    """

    text: str
    strict: bool = False
    place: tuple[str | None, ...] = ()

    @property
    def selector(self) -> Selector:
        """Return the selector, compiled."""
        return compile_selector(self.text, self.strict)

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that name the destination of the message."""
        return {name: value for name, value in zip(DESTINATION_HEADERS, self.place, strict=False) if value is not None}


Answer = bool | None
Answers = Mapping[SelectorCondition, Answer]


@dataclass(slots=True)
class SelectorOracle:
    """Creates selectors with scripted answers; `asked` are the conditions since the answers were set."""

    answers: Answers = field(default_factory=dict)
    default_answer: Answer = None
    asked: dict[SelectorCondition, None] = field(default_factory=dict)

    def set_answers(self, answers: Answers, otherwise: Answer = None) -> None:
        """Set the answers of the next evaluations, and forget which conditions were asked."""
        self.answers, self.default_answer, self.asked = answers, otherwise, {}

    def compile_scripted(self, text: str, strict: bool) -> ScriptedSelector:
        """Compile a selector of a routing table to one that this oracle answers."""
        return ScriptedSelector(self, compile_selector(text, strict), strict)

    def answer(self, condition: SelectorCondition) -> Answer:
        """Return the answer set for a condition, and note that it was asked."""
        self.asked[condition] = None
        return self.answers.get(condition, self.default_answer)


class ScriptedSelector(Selector):
    """A selector that returns the answer of its oracle."""

    __slots__ = ("_asks_place", "_oracle", "_strict")

    def __init__(self, oracle: SelectorOracle, selector: Selector, strict: bool) -> None:
        self.text, self.tree, self.properties = selector.text, selector.tree, selector.properties
        self._oracle, self._strict = oracle, strict
        self._asks_place = any(
            set(DESTINATION_HEADERS) & set(identifier_for(name).headers) for name in selector.properties
        )

    def evaluate(self, headers: Mapping[str, str]) -> Answer:
        """Return the scripted answer for a message at the destination that the headers name."""
        return self._oracle.answer(self.condition(headers))

    def matches(self, headers: Mapping[str, str]) -> bool:
        """Return whether the scripted answer is TRUE."""
        return self.evaluate(headers) is True

    def condition(self, headers: Mapping[str, str]) -> SelectorCondition:
        """Return the condition of a message with these headers."""
        place = tuple(headers.get(name) for name in DESTINATION_HEADERS) if self._asks_place else ()
        return SelectorCondition(self.text, self._strict, place)


@dataclass(frozen=True, slots=True)
class ScriptedRouting:
    """A routing table whose selectors are answered by an oracle."""

    topology: RoutingTable
    oracle: SelectorOracle

    def route(self, destination: Destination, answers: Answers) -> tuple[Route, list[RouteHop], str]:
        """Route a message for which the selectors have these answers. Raises TooManyConditions for a new condition.

        Neither turns of shared queues nor anything else changes.
        """
        self.oracle.set_answers(answers)
        found = trace_route({}, destination, self.topology)
        if unforeseen := next((each for each in self.oracle.asked if each not in answers), None):
            raise TooManyConditions(
                f"what is sent to {destination} is asked {unforeseen.text!r} only in rare combinations"
            )
        return found

    def conditions(self, destination: Destination) -> tuple[SelectorCondition, ...]:
        """Return the conditions that may be evaluated for messages sent to a destination.

        A walk on which every selector matches finds all routes except those that open when no selector of a composite
        matches (sendWhenNotMatched): these are walked with its selectors not matching. One such walk for each composite
        finds what opens behind it. Combinations open more only if composites have equal selectors, so only some are
        tried; `route` detects conditions that were missed.

        Raises TooManyConditions for an endless route.
        """
        found: dict[SelectorCondition, None] = {}
        first, others = deque([frozenset()]), deque()  # sets of conditions that do not match: new composites first
        places, walked, budget = set(), {frozenset()}, MAX_COMBINATIONS
        while first or (others and budget):
            budget -= not first
            refusing = (first or others).popleft()
            self.oracle.set_answers(dict.fromkeys(refusing, False), otherwise=True)
            _, hops, problem = trace_route({}, destination, self.topology)
            if problem:
                raise TooManyConditions(problem)
            found |= self.oracle.asked
            for place, filters in self._exclusive_filters(hops).items():
                more = refusing | filters
                if more not in walked:
                    walked.add(more)
                    (others if place in places else first).append(more)
                    places.add(place)
        return tuple(found)

    def _exclusive_filters(self, hops: list[RouteHop]) -> dict[tuple[str, Destination], set[SelectorCondition]]:
        """Return the selectors of the composites with sendWhenNotMatched on a route, by definition and destination."""
        exclusive = {
            each.id: each
            for each in self.topology.definitions.virtual_destinations
            if getattr(each, "send_when_not_matched", False)
        }
        filters: dict[tuple[str, Destination], set[SelectorCondition]] = {}
        for hop in hops:
            if hop.definition in exclusive and hop.selector is not None:
                told = self.oracle.compile_scripted(hop.selector, exclusive[hop.definition].strict)
                filters.setdefault((hop.definition, hop.at), set()).add(told.condition(hop.seen or {}))
        return filters
