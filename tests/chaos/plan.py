"""Plan the faults of one run: what fails, where and when. Pure: a seed always gives the same plan.

Each broker has at most one fault at a time, so that one of its nodes can continue, and every fault ends before the
plan does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """Kinds of faults, with the words in which they are reported."""

    KILL = "kill -9 of a node"
    STOP = "clean restart of a node"
    PAUSE = "node paused for less than its timeout"
    PAUSE_PAST_TIMEOUT = "node paused until it counts as dead"
    CUT_LINK = "connection cut between the nodes of a broker"
    CUT_BRIDGE = "connection cut between two brokers"
    LOSE_BRIDGE_ANSWERS = "answers of a bridge lost, then its connection"
    KILL_STORE = "kill -9 of a store"
    FREEZE_STORE = "store paused"


@dataclass(frozen=True, slots=True)
class Topology:
    """Brokers, nodes and bridges that faults can hit."""

    brokers: Mapping[str, Sequence[str]]  #: name -> its nodes
    bridges: Sequence[str]
    node_timeout: float  #: seconds
    shards: int = 1  #: stores of each broker

    def stores(self, broker: str) -> list[str]:
        """Return the stores of a broker: the first has its name, the other shards have numbers."""
        return [broker, *(f"{broker}/{number}" for number in range(1, self.shards))]

    def targets(self, kind: FaultKind) -> Sequence[str]:
        """Return what a fault of this kind may hit."""
        if kind in (FaultKind.CUT_BRIDGE, FaultKind.LOSE_BRIDGE_ANSWERS):
            return self.bridges
        if kind in (FaultKind.KILL_STORE, FaultKind.FREEZE_STORE):
            return [store for broker in self.brokers for store in self.stores(broker)]
        if kind is FaultKind.CUT_LINK:
            return list(self.brokers)
        return [node for nodes in self.brokers.values() for node in nodes]

    def domain(self, target: str) -> str:
        """Return the part that has at most one fault at a time: a node's or store's broker, or the bridge itself."""
        return next(
            (name for name, nodes in self.brokers.items() if target in nodes or target in self.stores(name)), target
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, with its begin and end in seconds since the run began."""

    kind: FaultKind
    target: str
    begins: float
    ends: float

    def __str__(self) -> str:
        return f"{self.begins:5.1f} s  {self.kind} ({self.target}, {self.ends - self.begins:.1f} s)"


#: Seconds before the first fault, and between two faults in one domain, in which clients make progress.
WARM_UP_SECONDS, RECOVERY_SECONDS = 1.0, 2.0
#: Faults at a time, and least and most seconds from the begin of one to the begin of the next.
MAX_CONCURRENT_FAULTS, FAULT_INTERVAL_SECONDS = 3, (0.3, 1.5)
#: Least and most seconds that a fault lasts.
DURATION_SECONDS: Mapping[FaultKind, tuple[float, float]] = {
    FaultKind.KILL: (0.1, 4.0),
    FaultKind.STOP: (0.1, 1.0),
    FaultKind.CUT_LINK: (0.0, 3.0),
    FaultKind.CUT_BRIDGE: (0.0, 3.0),
    FaultKind.LOSE_BRIDGE_ANSWERS: (0.1, 1.0),
    FaultKind.KILL_STORE: (0.1, 1.5),
}
#: The same, as multiples of the timeout of a node.
DURATION_TIMEOUTS: Mapping[FaultKind, tuple[float, float]] = {
    FaultKind.PAUSE: (0.1, 0.7),
    FaultKind.PAUSE_PAST_TIMEOUT: (1.3, 2.5),
    FaultKind.FREEZE_STORE: (0.2, 2.0),
}


def plan(seed: int, seconds: float, shape: Topology, kinds: Sequence[FaultKind] = tuple(FaultKind)) -> list[Fault]:
    """Return the faults of a run in the order in which they begin; every kind occurs before one occurs again."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    now = WARM_UP_SECONDS
    for kind in _shuffled_kinds(chance, kinds):
        low, high = duration_range(kind, shape)
        fault = None
        while fault is None:
            length = chance.uniform(low, high)
            if now + length > seconds:
                return faults
            free = [each for each in shape.targets(kind) if _is_free(shape.domain(each), now, faults, shape)]
            if free and sum(each.ends > now for each in faults) < MAX_CONCURRENT_FAULTS:
                fault = Fault(kind, chance.choice(free), now, now + length)
            else:
                now += FAULT_INTERVAL_SECONDS[0]
        faults.append(fault)
        now += chance.uniform(*FAULT_INTERVAL_SECONDS)
    return faults


def duration_range(kind: FaultKind, shape: Topology) -> tuple[float, float]:
    """Return the least and most seconds that a fault of this kind lasts."""
    if kind in DURATION_SECONDS:
        return DURATION_SECONDS[kind]
    low, high = DURATION_TIMEOUTS[kind]
    return low * shape.node_timeout, high * shape.node_timeout


def _shuffled_kinds(chance: random.Random, kinds: Sequence[FaultKind]) -> Iterator[FaultKind]:
    """Yield all kinds in random order, again and again."""
    while True:
        yield from chance.sample(kinds, len(kinds))


def _is_free(domain: str, now: float, faults: Sequence[Fault], shape: Topology) -> bool:
    return all(each.ends + RECOVERY_SECONDS <= now for each in faults if shape.domain(each.target) == domain)
