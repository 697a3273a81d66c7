"""Decide whether a client may read, write or administer a destination. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from brokerapp.engine.routing.destination_trie import DestinationTrie, covers
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind


@dataclass(frozen=True, slots=True)
class Principal:
    """A client that has logged in, with the groups it is in."""

    name: str
    groups: frozenset[str] = frozenset()


#: A client of a broker that asks for no login.
ANONYMOUS = Principal("anonymous", frozenset({"anonymous"}))


class AuthorizationEntry(Protocol):
    """Which groups may do what with the destinations matching a pattern (None: temporary ones)."""

    @property
    def destination(self) -> Destination | None: ...
    @property
    def read(self) -> frozenset[str]: ...
    @property
    def write(self) -> frozenset[str]: ...
    @property
    def admin(self) -> frozenset[str]: ...


class AuthorizationMap:
    """The grants, compiled. As in ActiveMQ those of all patterns that match add up, and what none grants is refused.

    Temporary destinations have grants of their own; without any, everybody may use them.
    """

    def __init__(self, grants: Iterable[AuthorizationEntry]) -> None:
        self._grants: dict[DestinationKind, DestinationTrie[tuple[str, AuthorizationEntry]]] = {
            kind: DestinationTrie() for kind in DestinationKind
        }
        self._temporary: list[AuthorizationEntry] = []
        for grant in grants:
            if grant.destination is None:
                self._temporary.append(grant)
            else:
                self._grants[grant.destination.kind].add(grant.destination.name, (grant.destination.name, grant))
        self._answers: dict[tuple[frozenset[str], str, Destination, bool], bool] = {}

    def may(self, principal: Principal, verb: str, destination: Destination) -> bool:
        """Whether the principal may `read`, `write` or `admin` (create) the destination.

        Of a pattern, all that matches it.
        """
        return self._answer(principal, verb, destination, True)

    def may_some(self, principal: Principal, verb: str, pattern: Destination) -> bool:
        """Whether the principal may read, write or create some destination that matches the pattern."""
        return self._answer(principal, verb, pattern, False)

    def _answer(self, principal: Principal, verb: str, destination: Destination, all_of_it: bool) -> bool:
        if destination.is_temporary:
            grants = self._temporary
            return not grants or any(_granted(principal, grant, verb) for grant in grants)
        if destination.address is not None and not self.names(destination):
            destination = destination.physical
        question = (principal.groups, verb, destination, all_of_it)
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            answer = self._answers[question] = any(
                _granted(principal, grant, verb) for grant in self._about(destination, all_of_it)
            )
        return answer

    def _about(self, destination: Destination, all_of_it: bool) -> Iterator[AuthorizationEntry]:
        """The grants for a destination, or for some or all of a pattern. Patterns mean no fully qualified names."""
        if destination.address is not None:
            yield from self._exact(destination)
            return
        for pattern, grant in self._grants[destination.kind].find(destination.name):
            if not all_of_it or covers(pattern, destination.name):
                yield grant

    def names(self, qualified: Destination) -> bool:
        """Whether there is a grant for just this fully qualified name: it replaces those for its queue."""
        return next(self._exact(qualified), None) is not None

    def _exact(self, qualified: Destination) -> Iterator[AuthorizationEntry]:
        for kind in NAMED_KINDS:
            for pattern, grant in self._grants[kind].find(qualified.name):
                if pattern == qualified.name:
                    yield grant


def _granted(principal: Principal, grant: AuthorizationEntry, verb: str) -> bool:
    groups: frozenset[str] = getattr(grant, verb)
    return not groups.isdisjoint(principal.groups) or bool(EVERYBODY in groups and principal.groups)


#: In the place of a group: whoever is in some group.
EVERYBODY = "*"
#: Answers remembered: destination names come from clients.
MAX_ANSWERS = 10_000
