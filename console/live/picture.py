"""Picture: the broker's numbers at one moment, with rates and a short past. Immutable values and pure functions.

A rate is a sliding mean over the last WINDOW seconds. Only destinations that changed within it have a track; all others
stand still. Trails are the coarser past of what changed within the last minutes, for sparklines and charts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from brokerapp.destination import NAMED_KINDS, Destination, Kind
from brokerapp.snapshot import DestinationStats, NodeStatus

#: Seconds over which rates are means.
WINDOW = 5.0
#: A node writes its numbers once a second; a sample older than this means that nothing happened since.
FRESH = 1.6
#: Seconds of the past that charts show, and the steps of the trails.
PAST = 300.0
TRAIL_STEP = 5.0
#: Bounds the memory of a process, whatever the number of destinations.
MAX_TRAILS = 1000


class Sample(NamedTuple):
    """Counters of one destination at time `at` (seconds since the epoch)."""

    at: float
    enqueued: int
    dequeued: int
    dispatched: int


class Rates(NamedTuple):
    """Messages a second."""

    enqueue: float = 0.0
    dequeue: float = 0.0
    dispatch: float = 0.0


class Mark(NamedTuple):
    """One point of a chart: time (seconds since the epoch), messages pending, messages a second in and out."""

    at: float
    pending: int
    enqueue: float
    dequeue: float


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the broker. Rates are those of queues: copies count where they land."""

    queues: int = 0
    topics: int = 0
    pending: int = 0  #: messages in queues, dead letters apart
    dead: int = 0  #: messages in dead-letter queues
    in_flight: int = 0
    consumers: int = 0
    enqueue: float = 0.0
    dequeue: float = 0.0
    topic_enqueue: float = 0.0


@dataclass(frozen=True, slots=True)
class Picture:
    """What this process knows of the broker. `at` is the last time the broker answered, seconds since the epoch."""

    at: float = 0.0
    version: int = 0
    stats: Mapping[Destination, DestinationStats] = field(default_factory=dict)
    tracks: Mapping[Destination, tuple[Sample, ...]] = field(default_factory=dict)
    trails: Mapping[Destination, tuple[Mark, ...]] = field(default_factory=dict)
    past: tuple[Mark, ...] = ()
    totals: Totals = Totals()
    nodes: tuple[NodeStatus, ...] = ()
    routing: int = 0  #: version of the definitions in force
    trouble: str = "The first numbers have not come yet."

    def of_kind(self, kind: Kind) -> list[DestinationStats]:
        """All queues, or all topics."""
        return [stats for destination, stats in self.stats.items() if destination.kind is kind]

    def rates(self, destination: Destination) -> Rates:
        """Messages a second of this destination as of this picture."""
        track = self.tracks.get(destination)
        return _rates(track, self.at) if track else Rates()


def updated(
    old: Picture, now: float, version: int, changed: Iterable[DestinationStats], deleted: Iterable[Destination]
) -> Picture:
    """The picture after the broker reported these changes."""
    stats, tracks = dict(old.stats), dict(old.tracks)
    for each in _shown(changed):
        tracks[each.destination] = _extended(tracks.get(each.destination, ()), stats.get(each.destination), each, now)
        stats[each.destination] = each
    for destination in deleted:
        stats.pop(destination, None)
        tracks.pop(destination, None)
    return _summed(replace(old, at=now, version=version, stats=stats, tracks=tracks, trouble=""))


def first(now: float, version: int, everything: Iterable[DestinationStats], old: Picture) -> Picture:
    """The picture after a complete reading: numbers anew, the past kept."""
    stats = {each.destination: each for each in _shown(everything)}
    return _summed(replace(old, at=now, version=version, stats=stats, tracks={}, trouble=""))


def _shown(stats: Iterable[DestinationStats]) -> Iterator[DestinationStats]:
    """Queues and topics: logs of subscriptions and temporary destinations have no pages yet."""
    return (each for each in stats if each.destination.kind in NAMED_KINDS)


def ticked(old: Picture, now: float, nodes: Iterable[NodeStatus], routing: int = 0) -> Picture:
    """The picture a second later: totals summed, standstill noticed, the past moved on."""
    tracks = {each: track for each, track in old.tracks.items() if now - track[-1].at < WINDOW}
    moved = _summed(replace(old, at=now, tracks=tracks, nodes=tuple(nodes), routing=routing, trouble=""))
    totals = moved.totals
    mark = Mark(now, totals.pending, totals.enqueue, totals.dequeue)
    past = (*(each for each in old.past if now - each.at <= PAST), mark)
    return replace(moved, past=past, trails=_trails(moved, now))


def troubled(old: Picture, trouble: str) -> Picture:
    """The same numbers, now stale, and why."""
    return replace(old, trouble=trouble)


def _sample(stats: DestinationStats, at: float) -> Sample:
    return Sample(at, stats.EnqueueCount, stats.DequeueCount, stats.DispatchCount)


def _extended(
    track: tuple[Sample, ...], before: DestinationStats | None, after: DestinationStats, now: float
) -> tuple[Sample, ...]:
    sample = _sample(after, now)
    if not track:
        # It stood still until a second ago, at what it was, or at nothing when it is new.
        track = (_sample(before, now - 1) if before else Sample(now - 1, 0, 0, 0),)
    if any(new < old for new, old in zip(sample[1:], track[-1][1:], strict=True)):
        return (sample,)  # its node started anew, and so did the counters
    base = max((i for i, each in enumerate(track) if now - each.at >= WINDOW), default=0)
    return (*track[base:], sample)


def _rates(track: tuple[Sample, ...], now: float) -> Rates:
    latest = track[-1]
    base = max((each for each in track if now - each.at >= WINDOW), default=track[0])
    seconds = (latest.at if now - latest.at < FRESH else now) - base.at
    if seconds <= 0 or now - latest.at >= WINDOW:
        return Rates()
    return Rates(*(max(0.0, (new - old) / seconds) for new, old in zip(latest[1:], base[1:], strict=True)))


def _summed(picture: Picture) -> Picture:
    return replace(picture, totals=_totals(picture))


def _totals(picture: Picture) -> Totals:
    queues = picture.of_kind(Kind.QUEUE)
    moving = {destination: _rates(track, picture.at) for destination, track in picture.tracks.items()}
    of_queues = [rates for destination, rates in moving.items() if destination.kind is Kind.QUEUE]
    return Totals(
        queues=len(queues),
        topics=len(picture.stats) - len(queues),
        pending=sum(each.QueueSize for each in queues if not each.DLQ),
        dead=sum(each.QueueSize for each in queues if each.DLQ),
        in_flight=sum(each.InFlightCount for each in queues),
        consumers=sum(each.ConsumerCount for each in picture.stats.values()),
        enqueue=sum(rates.enqueue for rates in of_queues),
        dequeue=sum(rates.dequeue for rates in of_queues),
        topic_enqueue=sum(rates.enqueue for each, rates in moving.items() if each.kind is Kind.TOPIC),
    )


def _trails(picture: Picture, now: float) -> dict[Destination, tuple[Mark, ...]]:
    trails = dict(picture.trails)
    for destination in picture.tracks:
        trail, rates, size = (
            trails.get(destination, ()),
            picture.rates(destination),
            picture.stats[destination].QueueSize,
        )
        if not trail or now - trail[-1].at >= TRAIL_STEP:
            recent = tuple(mark for mark in trail if now - mark.at <= PAST)
            trails[destination] = (*recent, Mark(now, size, rates.enqueue, rates.dequeue))
    gone = [each for each, trail in trails.items() if each not in picture.stats or now - trail[-1].at > PAST]
    for destination in gone:
        del trails[destination]
    if len(trails) > MAX_TRAILS:
        latest = sorted(trails, key=lambda each: trails[each][-1].at, reverse=True)[:MAX_TRAILS]
        return {each: trails[each] for each in latest}
    return trails
