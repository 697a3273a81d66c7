"""Define a snapshot of the broker's figures, with rates and a short history. Immutable values and pure functions.

A rate is a sliding mean over the last WINDOW seconds. Only destinations that changed within it have a track; all others
stand still. What is older is history (console/metrics/charts_history.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from brokerapp.cluster.status import ClusterStatus
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats, NodeStatus
from console.access.roles import Sees, everything

#: Seconds over which rates are means.
WINDOW = 5.0
#: A node writes its numbers once a second; a sample older than this means that nothing happened since.
FRESH = 1.6
#: Seconds of the past that a picture has: what the history does not show yet, and some more.
PAST = 60.0
#: Seconds between two looks at all depths, and for how many seconds these are kept: consumers that read in batches make
#: the rates of a few seconds dip and leap, while a queue that grows is deeper than it was minutes ago.
DEPTHS_STEP, DEPTHS_SPAN = 20.0, 180.0


class CounterSample(NamedTuple):
    """Counters of one destination at time `at` (seconds since the epoch)."""

    at: float
    enqueued: int
    dequeued: int
    dispatched: int


class Rates(NamedTuple):
    """Rates in messages per second."""

    enqueue: float = 0.0
    dequeue: float = 0.0
    dispatch: float = 0.0


class ChartPoint(NamedTuple):
    """One point of a chart: time (seconds since the epoch), messages pending, messages a second in and out."""

    at: float
    pending: int
    enqueue: float
    dequeue: float


class DepthSample(NamedTuple):
    """Messages pending in each queue at time `at` (seconds since the epoch)."""

    at: float
    of: Mapping[Destination, int]


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
class BrokerSnapshot:
    """The state of the broker as this process last read it.

    `at` is when the broker last answered, seconds since the epoch.
    """

    at: float = 0.0
    version: int = 0
    stats: Mapping[Destination, DestinationStats] = field(default_factory=dict)
    subscriptions: Mapping[Destination, DestinationStats] = field(default_factory=dict)  #: logs of named ones
    tracks: Mapping[Destination, tuple[CounterSample, ...]] = field(default_factory=dict)
    past: tuple[ChartPoint, ...] = ()
    depths: tuple[DepthSample, ...] = ()  #: of the last minutes, the oldest first
    totals: Totals = Totals()
    nodes: tuple[NodeStatus, ...] = ()
    routing: int = 0  #: version of the definitions in force
    trouble: str = "Waiting for the first metrics."

    @property
    def cluster(self) -> ClusterStatus | None:
        """Return the cluster of the broker, in brief; None: it is in none, or no node says."""
        told = next((each.cluster for each in self.nodes if each.cluster), None)
        return ClusterStatus.from_json(told) if told else None

    def of_kind(self, kind: DestinationKind) -> list[DestinationStats]:
        """Return all queues, or all topics."""
        return [stats for destination, stats in self.stats.items() if destination.kind is kind]

    def rates(self, destination: Destination) -> Rates:
        """Messages a second of this destination as of this picture."""
        track = self.tracks.get(destination)
        return _rates(track, self.at) if track else Rates()


def apply_changes(
    old: BrokerSnapshot, now: float, version: int, changed: Iterable[DestinationStats], deleted: Iterable[Destination]
) -> BrokerSnapshot:
    """Return the picture after the broker reported these changes."""
    stats, tracks, subscriptions = dict(old.stats), dict(old.tracks), dict(old.subscriptions)
    for each in changed:
        if each.destination.kind is DestinationKind.SUBSCRIPTION:
            subscriptions[each.destination] = each
        elif each.destination.kind in NAMED_KINDS:
            track, before = tracks.get(each.destination, ()), stats.get(each.destination)
            tracks[each.destination] = _extended(track, before, each, now)
            stats[each.destination] = each
    for destination in deleted:
        for numbers in (stats, tracks, subscriptions):
            numbers.pop(destination, None)
    new = replace(old, at=now, version=version, stats=stats, subscriptions=subscriptions, tracks=tracks, trouble="")
    return _summed(new)


def initial_snapshot(
    now: float, version: int, everything: Iterable[DestinationStats], old: BrokerSnapshot
) -> BrokerSnapshot:
    """Return the snapshot after a complete reading: new figures, with the history kept."""
    everything = list(everything)
    stats = {each.destination: each for each in everything if each.destination.kind in NAMED_KINDS}
    subscriptions = {
        each.destination: each for each in everything if each.destination.kind is DestinationKind.SUBSCRIPTION
    }
    new = replace(old, at=now, version=version, stats=stats, subscriptions=subscriptions, tracks={}, trouble="")
    return _summed(new)


def apply_tick(old: BrokerSnapshot, now: float, nodes: Iterable[NodeStatus], routing: int = 0) -> BrokerSnapshot:
    """Return the picture a second later: totals summed, standstill noticed, the past moved on."""
    tracks = {each: track for each, track in old.tracks.items() if now - track[-1].at < WINDOW}
    moved = _summed(replace(old, at=now, tracks=tracks, nodes=tuple(nodes), routing=routing, trouble=""))
    totals = moved.totals
    mark = ChartPoint(now, totals.pending, totals.enqueue, totals.dequeue)
    past = (*(each for each in old.past if now - each.at <= PAST), mark)
    return replace(moved, past=past, depths=_depths(moved))


def _depths(picture: BrokerSnapshot) -> tuple[DepthSample, ...]:
    kept = tuple(each for each in picture.depths if picture.at - each.at <= DEPTHS_SPAN)
    if kept and picture.at - kept[-1].at < DEPTHS_STEP:
        return kept
    return (
        *kept,
        DepthSample(picture.at, {each.destination: each.QueueSize for each in picture.of_kind(DestinationKind.QUEUE)}),
    )


def visible_snapshot(picture: BrokerSnapshot, sees: Sees) -> BrokerSnapshot:
    """Restrict a snapshot, its sums included, to the destinations that a user may see."""
    if sees is everything:
        return picture
    stats = {each: numbers for each, numbers in picture.stats.items() if sees(each)}
    tracks = {each: track for each, track in picture.tracks.items() if sees(each)}
    seen = _summed(replace(picture, stats=stats, tracks=tracks))
    now = seen.totals
    past = tuple(ChartPoint(each.at, now.pending, now.enqueue, now.dequeue) for each in picture.past[-1:])
    return replace(seen, past=past)


def mark_stale(old: BrokerSnapshot, trouble: str) -> BrokerSnapshot:
    """Return the same numbers, now stale, and why."""
    return replace(old, trouble=trouble)


def _sample(stats: DestinationStats, at: float) -> CounterSample:
    return CounterSample(at, stats.EnqueueCount, stats.DequeueCount, stats.DispatchCount)


def _extended(
    track: tuple[CounterSample, ...], before: DestinationStats | None, after: DestinationStats, now: float
) -> tuple[CounterSample, ...]:
    sample = _sample(after, now)
    if not track:
        # It stood still until a second ago, at what it was, or at nothing when it is new.
        track = (_sample(before, now - 1) if before else CounterSample(now - 1, 0, 0, 0),)
    if any(new < old for new, old in zip(sample[1:], track[-1][1:], strict=True)):
        return (sample,)  # its node started anew, and so did the counters
    base = max((i for i, each in enumerate(track) if now - each.at >= WINDOW), default=0)
    return (*track[base:], sample)


def _rates(track: tuple[CounterSample, ...], now: float) -> Rates:
    latest = track[-1]
    base = max((each for each in track if now - each.at >= WINDOW), default=track[0])
    seconds = (latest.at if now - latest.at < FRESH else now) - base.at
    if seconds <= 0 or now - latest.at >= WINDOW:
        return Rates()
    return Rates(*(max(0.0, (new - old) / seconds) for new, old in zip(latest[1:], base[1:], strict=True)))


def _summed(picture: BrokerSnapshot) -> BrokerSnapshot:
    return replace(picture, totals=_totals(picture))


def _totals(picture: BrokerSnapshot) -> Totals:
    queues = picture.of_kind(DestinationKind.QUEUE)
    moving = {destination: _rates(track, picture.at) for destination, track in picture.tracks.items()}
    of_queues = [rates for destination, rates in moving.items() if destination.kind is DestinationKind.QUEUE]
    return Totals(
        queues=len(queues),
        topics=len(picture.stats) - len(queues),
        pending=sum(each.QueueSize for each in queues if not each.DLQ),
        dead=sum(each.QueueSize for each in queues if each.DLQ),
        in_flight=sum(each.InFlightCount for each in queues),
        consumers=sum(each.ConsumerCount for each in picture.stats.values()),
        enqueue=sum(rates.enqueue for rates in of_queues),
        dequeue=sum(rates.dequeue for rates in of_queues),
        topic_enqueue=sum(rates.enqueue for each, rates in moving.items() if each.kind is DestinationKind.TOPIC),
    )
