"""Define the history of depths and rates in steps of fixed length. Pure; stored by history_rings.py.

A destination gets a point for a step in which it changed, and none otherwise: between two points it stood still. The
broker gets a point for every step, so that a step without one is a step in which nobody looked: a gap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats

_LARGEST = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Resolution:
    """Resolution of a history: number of steps and their length in seconds."""

    name: str
    step: int
    length: int

    @property
    def span(self) -> int:
        """Return how many seconds the history reaches back."""
        return self.step * self.length


FINE = Resolution("fine", step=10, length=360)
COARSE = Resolution("coarse", step=60, length=1440)


class DestinationPoint(NamedTuple):
    """One destination at the end of a step."""

    at: int  #: seconds since the epoch
    pending: int
    arrived: int  #: messages, in the step
    left: int  #: messages acknowledged, expired, removed or moved in the step; of a topic those handed out
    consumers: int
    #: What seldom happens, in the step: messages that expired, that came back from a consumer, that were not kept; and
    #: sends that found no room and had to wait.
    expired: int = 0
    redelivered: int = 0
    dropped: int = 0
    blocked: int = 0


class BrokerPoint(NamedTuple):
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
    #: None in what was kept before these were. Shares are of the fullest node, in thousandths; 0: it has no limit.
    memory: int | None = None  #: share of what messages may take that a node has taken and not stored yet
    machine: int | None = None  #: share of its machine's memory that the store takes
    temporary: int | None = None  #: share of what non-persistent messages may take of the store
    nodes: int | None = None  #: that run
    links_down: int | None = None  #: ways of network connectors that should be connected, and are not
    away: int | None = None  #: other brokers of the cluster that cannot be reached
    held_back: int | None = None  #: connections of which a send waits for room
    slow: int | None = None  #: connections that do not keep up
    disk: int | None = None  #: share of the disk of the store that is used; None: nobody watches it


#: A point has its second part only where something of it happened, and the broker's where somebody knew: a busy
#: destination's day stays at 36 KB.
_POINT, _SELDOM = struct.Struct("<5I"), struct.Struct("<4I")
_WHOLE, _REST, _DISK = struct.Struct("<7I2Q"), struct.Struct("<8I"), struct.Struct("<I")
#: What a step counts, beside where it ended.
_FLOWS = ("arrived", "left", "expired", "redelivered", "dropped", "blocked")


def pack_point(point: DestinationPoint | BrokerPoint) -> bytes:
    """Encode a point for the store."""
    if isinstance(point, BrokerPoint):
        rest = b"" if point.nodes is None else _REST.pack(*_cut(value or 0 for value in point[9:17]))
        disk = b"" if point.nodes is None or point.disk is None else _DISK.pack(point.disk)
        return _WHOLE.pack(*_cut(point[:7]), *point[7:9]) + rest + disk
    seldom = _SELDOM.pack(*_cut(point[5:])) if any(point[5:]) else b""
    return _POINT.pack(*_cut(point[:5])) + seldom


def _cut(values: Iterable[int]) -> Iterator[int]:
    return (min(value, _LARGEST) for value in values)


def unpack_destination_points(kept: Iterable[bytes]) -> list[DestinationPoint]:
    """The points of a destination."""
    return [DestinationPoint(*_unpacked(each, _POINT, _SELDOM)) for each in kept]


def unpack_broker_points(kept: Iterable[bytes]) -> list[BrokerPoint]:
    """The points of the broker."""
    return [BrokerPoint(*_unpacked(each, _WHOLE, _REST, _DISK)) for each in kept]


def _unpacked(kept: bytes, *parts: struct.Struct) -> tuple[int, ...]:
    """The values of as many of these parts as are there, one behind the other."""
    values: tuple[int, ...] = ()
    at = 0
    for part in parts:
        if at < len(kept):
            values += part.unpack_from(kept, at)
            at += part.size
    return values


def merge_destination_points(fine: list[DestinationPoint], at: int) -> DestinationPoint:
    """Points of one destination as one."""
    flows = {name: sum(getattr(each, name) for each in fine) for name in _FLOWS}
    return fine[-1]._replace(at=at, **flows)


def merge_broker_points(fine: list[BrokerPoint], at: int) -> BrokerPoint:
    """Points of the broker as one."""
    arrived, left = sum(each.arrived for each in fine), sum(each.left for each in fine)
    return fine[-1]._replace(at=at, arrived=arrived, left=left)


class HistorySampler:
    """Makes points of the numbers it is shown once a step. Counters begin anew with a node; the points do not."""

    def __init__(self) -> None:
        self._seen: Mapping[Destination, DestinationStats] | None = None

    def points(self, at: int, stats: Mapping[Destination, DestinationStats]) -> dict[Destination, DestinationPoint]:
        """A point for each queue, topic and named subscription that changed since the last call; none at first."""
        seen, self._seen = self._seen, dict(stats)
        return {} if seen is None else dict(self._changes(at, seen, stats))

    @staticmethod
    def _changes(
        at: int, seen: Mapping[Destination, DestinationStats], stats: Mapping[Destination, DestinationStats]
    ) -> Iterator[tuple[Destination, DestinationPoint]]:
        for destination, now in stats.items():
            before = seen.get(destination)
            if before is now or destination.kind not in _SAMPLED:
                continue
            counted, known = _counters_of(now), _counters_of(before) if before else _NOTHING
            if any(new < old for new, old in zip(counted, known, strict=True)):  # its node started anew
                known = _NOTHING
            arrived, left, *seldom = (new - old for new, old in zip(counted, known, strict=True))
            point = DestinationPoint(at, now.QueueSize, arrived, left, now.ConsumerCount, *seldom)
            if before is None or counted != known or _standing(before) != _standing(now):
                yield destination, point


#: What has a history: what is named by people, and what is kept for their named subscriptions.
_SAMPLED = (*NAMED_KINDS, DestinationKind.SUBSCRIPTION)
_NOTHING = (0,) * len(_FLOWS)


def _standing(stats: DestinationStats) -> tuple[int, int]:
    return stats.QueueSize, stats.ConsumerCount


def _counters_of(stats: DestinationStats) -> tuple[int, ...]:
    """Return the counters behind _FLOWS, counted since the node started."""
    left = stats.DispatchCount if stats.destination.kind is DestinationKind.TOPIC else stats.DequeueCount
    return (
        stats.EnqueueCount,
        left,
        stats.ExpiredCount,
        stats.RedeliveredCount,
        stats.DroppedCount,
        stats.BlockedSends,
    )


class HistoryAdmission:
    """Which destinations have a history, so that all together stay bounded: those that moved last."""

    def __init__(self, moved: Mapping[str, float], most: int, still: float) -> None:
        self.moved = dict(moved)  #: name -> when it moved last, seconds since the epoch
        self._most, self._still = most, still

    def admit(self, names: Iterable[str], now: float) -> tuple[list[str], list[str]]:
        """Return which of the changed destinations get a point, and whose history is deleted for them.

        A destination keeps its history while it changes: with more busy destinations than fit, some have a complete
        history, rather than all an incomplete one.
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
