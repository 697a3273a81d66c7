"""Conditions: what the selectors on a message's way ask. Pure.

The broker's own walk is led through the definitions with selectors that answer as they are told and note what they were
asked, so that no second reading of the definitions is needed.
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

#: Walks through the definitions for one destination, beside one for each way that opens where filters say no.
MAX_COMBINATIONS = 64

#: Headers that say where a message is: the walk sets them.
DESTINATION_HEADERS = ("destination", "original-destination")


class TooManyConditions(BrokerError):
    """Definitions whose ways cannot be overlooked."""

    code = "too-entangled"


@dataclass(frozen=True, slots=True)
class SelectorCondition:
    """A selector, asked of a message where it is. `place` (values of PLACE) is empty where that does not matter."""

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
    """Makes selectors that answer what they are told to; `asked` are the conditions since it was told."""

    answers: Answers = field(default_factory=dict)
    otherwise: Answer = None
    asked: dict[SelectorCondition, None] = field(default_factory=dict)

    def set_answers(self, answers: Answers, otherwise: Answer = None) -> None:
        """Set the answers of the next evaluations, and forget which conditions were asked."""
        self.answers, self.otherwise, self.asked = answers, otherwise, {}

    def compiling(self, text: str, strict: bool) -> ScriptedSelector:
        """For a topology: its selectors."""
        return ScriptedSelector(self, compile_selector(text, strict), strict)

    def answer(self, condition: SelectorCondition) -> Answer:
        """Return the answer set for a condition, and note that it was asked."""
        self.asked[condition] = None
        return self.answers.get(condition, self.otherwise)


class ScriptedSelector(Selector):
    """A selector that says of a message what its oracle says."""

    __slots__ = ("_asks_place", "_oracle", "_strict")

    def __init__(self, oracle: SelectorOracle, selector: Selector, strict: bool) -> None:
        self.text, self.tree, self.properties = selector.text, selector.tree, selector.properties
        self._oracle, self._strict = oracle, strict
        self._asks_place = any(
            set(DESTINATION_HEADERS) & set(identifier_for(name).headers) for name in selector.properties
        )

    def evaluate(self, headers: Mapping[str, str]) -> Answer:
        """The answer for a message that is where these headers say."""
        return self._oracle.answer(self.condition(headers))

    def condition(self, headers: Mapping[str, str]) -> SelectorCondition:
        """Return the condition of a message with these headers."""
        place = tuple(headers.get(name) for name in DESTINATION_HEADERS) if self._asks_place else ()
        return SelectorCondition(self.text, self._strict, place)


@dataclass(frozen=True, slots=True)
class ScriptedRouting:
    """Definitions under their circumstances, with the oracle that answers for the messages."""

    topology: RoutingTable
    oracle: SelectorOracle

    def route(self, destination: Destination, answers: Answers) -> tuple[Route, list[RouteHop], str]:
        """The way of a message of which the selectors say this, see `examine`. Raises TooEntangled for a new condition.

        Nobody's turn changes by it, and nothing is remembered.
        """
        self.oracle.set_answers(answers)
        found = trace_route({}, destination, self.topology)
        if unforeseen := next((each for each in self.oracle.asked if each not in answers), None):
            raise TooManyConditions(
                f"what is sent to {destination} is asked {unforeseen.text!r} only in rare combinations"
            )
        return found

    def conditions(self, destination: Destination) -> tuple[SelectorCondition, ...]:
        """Return all that may be asked of a message sent there.

        A walk on which every selector says yes sees all ways but those that open where none of a composite's filters
        does (sendWhenNotMatched): those are walked with these filters saying no. What opens behind one of these places
        is seen when each was walked once; that combinations open more takes equal filters at several of them, so of
        combinations only some are tried. `way` notices what was overlooked.

        Raises TooEntangled for a way without an end.
        """
        found: dict[SelectorCondition, None] = {}
        first, others = deque([frozenset()]), deque()  # conditions that say no: new places are looked behind first
        places, walked, budget = set(), {frozenset()}, MAX_COMBINATIONS
        while first or (others and budget):
            budget -= not first
            refusing = (first or others).popleft()
            self.oracle.set_answers(dict.fromkeys(refusing, False), otherwise=True)
            _, hops, problem = trace_route({}, destination, self.topology)
            if problem:
                raise TooManyConditions(problem)
            found |= self.oracle.asked
            for place, filters in self._exclusive(hops).items():
                more = refusing | filters
                if more not in walked:
                    walked.add(more)
                    (others if place in places else first).append(more)
                    places.add(place)
        return tuple(found)

    def _exclusive(self, hops: list[RouteHop]) -> dict[tuple[str, Destination], set[SelectorCondition]]:
        """The filters of each composite on a way that keeps a message only when none of them takes it; by place."""
        exclusive = {
            each.id: each
            for each in self.topology.definitions.virtual_destinations
            if getattr(each, "send_when_not_matched", False)
        }
        filters: dict[tuple[str, Destination], set[SelectorCondition]] = {}
        for hop in hops:
            if hop.definition in exclusive and hop.selector is not None:
                told = self.oracle.compiling(hop.selector, exclusive[hop.definition].strict)
                filters.setdefault((hop.definition, hop.at), set()).add(told.condition(hop.seen or {}))
        return filters
