"""Remember routes that depend on messages, by the answers of a message to what is asked on its way. Pure.

What is asked at a destination, and in which order, follows from the definitions and from the answers before. So the
routes of a destination are the leaves of a tree of questions, and a message costs what its selectors cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from brokerapp.model.destination import Destination
from brokerapp.selectors import SelectorView, XmlBody

#: Routes remembered for one destination: ten filtered legs can have 1,024. Others are found anew for each message.
MAX_ROUTES = 1024

Answer = bool | None
RouteT = TypeVar("RouteT")


class MessageViews:
    """A message as selectors see it at the points of its way."""

    __slots__ = ("_body", "_headers", "_views", "sender")

    def __init__(self, headers: Mapping[str, str], body: bytes, sender: str) -> None:
        self._headers, self._body = headers, XmlBody(body, headers)
        self._views: dict[tuple[Destination, Destination | None], SelectorView] = {}
        self.sender = sender  #: the client-id of who sent it

    def at(self, destination: Destination, original: Destination | None) -> SelectorView:
        """Return the headers, with the body, of the copy that is at this destination. Do not change them."""
        seen = self._views.get((destination, original))
        if seen is None:
            seen = self._views[destination, original] = SelectorView(self._headers, self._body)
            seen["destination"] = destination.stomp
            if original is not None:
                seen["original-destination"] = original.stomp
        return seen


class Question(NamedTuple):
    """What is asked of the copy of a message at a destination, and by whom it was sent."""

    destination: Destination
    original: Destination | None
    decide: Callable[[SelectorView, str], Answer]

    def answer(self, views: MessageViews) -> Answer:
        """Answer the question for a message."""
        return self.decide(views.at(self.destination, self.original), views.sender)


@dataclass(slots=True)
class _Fork:
    question: Question
    ways: dict[Answer, object] = field(default_factory=dict)  # forks, and routes at their ends


class RouteDecisions(Generic[RouteT]):
    """The routes of messages to one destination."""

    __slots__ = ("_count", "_root")

    def __init__(self) -> None:
        self._root: _Fork | None = None
        self._count = 0

    def find(self, views: MessageViews) -> RouteT | None:
        """Return the route of a message; None when there was none yet with its answers."""
        way: object = self._root
        while isinstance(way, _Fork):
            way = way.ways.get(way.question.answer(views))
        return way  # type: ignore[return-value]  # what is no fork is what was kept

    def keep(self, answers: Sequence[tuple[Question, Answer]], route: RouteT) -> bool:
        """Remember the route of messages with these answers, of which there is one at least; whether there was room."""
        if self._count >= MAX_ROUTES:
            return False
        self._count += 1
        fork = self._root = self._root or _Fork(answers[0][0])
        for (_, answer), (question, _) in pairwise(answers):
            fork = fork.ways.setdefault(answer, _Fork(question))  # type: ignore[assignment]  # no route ends here
        fork.ways[answers[-1][1]] = route
        return True
