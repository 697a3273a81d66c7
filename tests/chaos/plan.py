"""Plan the faults of one run: what fails, where and when. Pure: a seed always gives the same plan.

What is bounded here is what the brokers can be expected to survive in the time a run has: in one broker one thing is
wrong at a time, so that one of its nodes can go on; all is mended when the plan ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What can go wrong, each with the words in which it is told."""

    KILL = "kill -9 of a node"
    STOP = "clean restart of a node"
    STALL = "node stands still for less than its timeout"
    FREEZE = "node stands still until it is taken for dead"
    CUT_LINK = "cut between the nodes of a broker"
    CUT_BRIDGE = "cut between two brokers"
    DEAFEN_BRIDGE = "what one broker says to another is lost, then the connection"
    KILL_STORE = "kill -9 of a store"


@dataclass(frozen=True, slots=True)
class Shape:
    """What there is to be hit."""

    brokers: Mapping[str, Sequence[str]]  #: name -> its nodes
    bridges: Sequence[str]
    node_timeout: float  #: seconds

    def targets(self, kind: Kind) -> Sequence[str]:
        """What a fault of this kind may hit."""
        if kind in (Kind.CUT_BRIDGE, Kind.DEAFEN_BRIDGE):
            return self.bridges
        if kind in (Kind.CUT_LINK, Kind.KILL_STORE):
            return list(self.brokers)
        return [node for nodes in self.brokers.values() for node in nodes]

    def domain(self, target: str) -> str:
        """Where one thing is wrong at a time: a node's broker; a broker and a bridge are their own."""
        return next((broker for broker, nodes in self.brokers.items() if target in nodes), target)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong for a while, in seconds since the run began."""

    kind: Kind
    target: str
    begins: float
    ends: float

    def __str__(self) -> str:
        return f"{self.begins:5.1f} s  {self.kind} ({self.target}, {self.ends - self.begins:.1f} s)"


#: Seconds before anything happens, and between two things in one domain: clients are to get something done.
CALM, RECOVERY = 1.0, 2.0
#: Faults under way at a time, and seconds from the begin of one to that of the next.
AT_ONCE, PACE = 3, (0.3, 1.5)
#: Seconds that each lasts.
LASTS: Mapping[Kind, tuple[float, float]] = {
    Kind.KILL: (0.1, 4.0),
    Kind.STOP: (0.1, 1.0),
    Kind.CUT_LINK: (0.0, 3.0),
    Kind.CUT_BRIDGE: (0.0, 3.0),
    Kind.DEAFEN_BRIDGE: (0.1, 1.0),
    Kind.KILL_STORE: (0.1, 1.5),
}
#: The same in timeouts of a node.
LASTS_TIMEOUTS: Mapping[Kind, tuple[float, float]] = {Kind.STALL: (0.1, 0.7), Kind.FREEZE: (1.3, 2.5)}


def plan(seed: int, seconds: float, shape: Shape, kinds: Sequence[Kind] = tuple(Kind)) -> list[Fault]:
    """The faults of a run of this length, in the order in which they begin. All kinds come before one comes again."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    deck = _deck(chance, kinds)
    now = CALM
    for kind in deck:
        low, high = lasts(kind, shape)
        fault = None
        while fault is None:
            length = chance.uniform(low, high)
            if now + length > seconds:
                return faults
            free = [each for each in shape.targets(kind) if _is_free(shape.domain(each), now, faults, shape)]
            if free and sum(each.ends > now for each in faults) < AT_ONCE:
                fault = Fault(kind, chance.choice(free), now, now + length)
            else:
                now += PACE[0]
        faults.append(fault)
        now += chance.uniform(*PACE)
    return faults


def lasts(kind: Kind, shape: Shape) -> tuple[float, float]:
    """Seconds that a fault of this kind lasts, at least and at most."""
    if kind in LASTS:
        return LASTS[kind]
    low, high = LASTS_TIMEOUTS[kind]
    return low * shape.node_timeout, high * shape.node_timeout


def _deck(chance: random.Random, kinds: Sequence[Kind]) -> Iterator[Kind]:
    """All kinds in some order, then all in another, without end."""
    while True:
        yield from chance.sample(kinds, len(kinds))


def _is_free(domain: str, now: float, faults: Sequence[Fault], shape: Shape) -> bool:
    return all(each.ends + RECOVERY <= now for each in faults if shape.domain(each.target) == domain)
