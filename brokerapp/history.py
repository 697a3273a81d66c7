"""History: where depths stood and what moved, in steps of fixed length. Pure; store/rings.py keeps it.

A destination gets a point for a step in which it changed, and none otherwise: between two points it stood still. The
broker gets a point for every step, so that a step without one is a step in which nobody looked: a gap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from brokerapp.destination import NAMED_KINDS, Destination, Kind
from brokerapp.snapshot import DestinationStats

_LARGEST = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Resolution:
    """How finely something is kept: steps of so many seconds, so many of them."""

    name: str
    step: int
    length: int

    @property
    def span(self) -> int:
        """Seconds it reaches back."""
        return self.step * self.length


FINE = Resolution("fine", step=10, length=360)
COARSE = Resolution("coarse", step=60, length=1440)


class Point(NamedTuple):
    """One destination at the end of a step."""

    at: int  #: seconds since the epoch
    pending: int
    arrived: int  #: messages, in the step
    left: int  #: messages acknowledged, expired, removed or moved in the step; of a topic those handed out
    consumers: int


class Whole(NamedTuple):
    """The whole broker at the end of a step."""

    at: int  #: seconds since the epoch
    pending: int  #: in queues, dead letters apart
    arrived: int  #: into queues, in the step
    left: int  #: from queues, in the step
    dead: int  #: in dead-letter queues
    connections: int
    started: int  #: when the youngest of its nodes started, seconds since the epoch; 0: none runs
    store_used: int  #: bytes
    store_limit: int  #: bytes; 0: none


_POINT = struct.Struct("<5I")
_WHOLE = struct.Struct("<7I2Q")


def packed(point: Point | Whole) -> bytes:
    """A point as it is kept."""
    if isinstance(point, Whole):
        return _WHOLE.pack(*(min(value, _LARGEST) for value in point[:7]), *point[7:])
    return _POINT.pack(*(min(value, _LARGEST) for value in point))


def points(kept: Iterable[bytes]) -> list[Point]:
    """The points of a destination."""
    return [Point(*_POINT.unpack(each)) for each in kept]


def wholes(kept: Iterable[bytes]) -> list[Whole]:
    """The points of the broker."""
    return [Whole(*_WHOLE.unpack(each)) for each in kept]


def merged(fine: list[Point], at: int) -> Point:
    """Points of one destination as one."""
    arrived, left = sum(each.arrived for each in fine), sum(each.left for each in fine)
    return fine[-1]._replace(at=at, arrived=arrived, left=left)


def merged_wholes(fine: list[Whole], at: int) -> Whole:
    """Points of the broker as one."""
    arrived, left = sum(each.arrived for each in fine), sum(each.left for each in fine)
    return fine[-1]._replace(at=at, arrived=arrived, left=left)


class Sampler:
    """Makes points of the numbers it is shown once a step. Counters begin anew with a node; the points do not."""

    def __init__(self) -> None:
        self._seen: Mapping[Destination, DestinationStats] | None = None

    def points(self, at: int, stats: Mapping[Destination, DestinationStats]) -> dict[Destination, Point]:
        """A point for each queue and topic that changed since the last call; none with the first one."""
        seen, self._seen = self._seen, dict(stats)
        return {} if seen is None else dict(self._changes(at, seen, stats))

    @staticmethod
    def _changes(
        at: int, seen: Mapping[Destination, DestinationStats], stats: Mapping[Destination, DestinationStats]
    ) -> Iterator[tuple[Destination, Point]]:
        for destination, now in stats.items():
            before = seen.get(destination)
            if before is now or destination.kind not in NAMED_KINDS:
                continue
            arrived, left = counters_of(now)
            known = counters_of(before) if before else (0, 0)
            if known[0] > arrived or known[1] > left:  # its node started anew
                known = (0, 0)
            point = Point(at, now.QueueSize, arrived - known[0], left - known[1], now.ConsumerCount)
            if before is None or point.arrived or point.left or _standing(before) != _standing(now):
                yield destination, point


def _standing(stats: DestinationStats) -> tuple[int, int]:
    return stats.QueueSize, stats.ConsumerCount


def counters_of(stats: DestinationStats) -> tuple[int, int]:
    """What arrived and what left, as counted since the node started."""
    return stats.EnqueueCount, stats.DequeueCount if stats.destination.kind is Kind.QUEUE else stats.DispatchCount


class Admission:
    """Which destinations have a history, so that all together stay bounded: those that moved last."""

    def __init__(self, moved: Mapping[str, float], most: int, still: float) -> None:
        self.moved = dict(moved)  #: name -> when it moved last, seconds since the epoch
        self._most, self._still = most, still

    def admit(self, names: Iterable[str], now: float) -> tuple[list[str], list[str]]:
        """Those of these that moved now which get a point, and those whose history makes room for them.

        Who has a history keeps it while it moves: a broker with more busy destinations than fit shows some whole
        rather than all in pieces.
        """
        names = list(names)
        known = [name for name in names if name in self.moved]
        self.moved.update((name, now) for name in known)
        new = [name for name in names if name not in self.moved]
        room = self._most - len(self.moved)
        out = self._longest_still(len(new) - room, now)
        admitted = new[: max(0, room + len(out))]
        for name in out:
            del self.moved[name]
        self.moved.update((name, now) for name in admitted)
        return known + admitted, out

    def expire(self, before: float) -> list[str]:
        """Forget those that did not move since then; their names."""
        gone = [name for name, moved in self.moved.items() if moved < before]
        for name in gone:
            del self.moved[name]
        return gone

    def _longest_still(self, count: int, now: float) -> list[str]:
        if count <= 0:
            return []
        still = [name for name, moved in self.moved.items() if now - moved >= self._still]
        return sorted(still, key=self.moved.__getitem__)[:count]
