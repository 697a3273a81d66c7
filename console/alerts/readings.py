"""Readings: the number that each metric has now, of a destination, a subscription or the broker. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from brokerapp.model.destination import Destination, Kind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.model.subscription_identity import NamedSubscription
from brokerapp.model.time_series import Point, Whole
from console.alerts.metrics import LATELY_SECONDS, Metric
from console.broker.broker_sample import away, links_down, whole_of
from console.broker.snapshot import Picture

#: What a rule of the whole broker is about.
BROKER = "broker"
#: The number of what nobody knows it of now, as the history has no room for it. It breaks no rule.
UNKNOWN = math.nan


@dataclass(frozen=True, slots=True)
class Readings:
    """What rules are judged by. `oldest`: when the first message came, ms since the epoch; `recent`: points of the
    last minutes, for what is counted over them, of all that moved then (`knows_all`: of what is not in it, too, it is
    known that it did not; `watched`: somebody looked all that time, so that there was no more); `named`: the durable
    subscriptions by their logs; `offline`: since when nobody consumes one, ms since the epoch, by the name of its log;
    `unread`: metrics whose numbers cannot be had now.
    """

    now: float
    picture: Picture
    oldest: Mapping[Destination, int] = field(default_factory=dict)
    recent: Mapping[Destination, Sequence[Point]] = field(default_factory=dict)
    knows_all: bool = True
    watched: bool = True
    named: Mapping[Destination, NamedSubscription] = field(default_factory=dict)
    offline: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[Metric] = frozenset()


Reading = Callable[[DestinationStats, Readings], float | None]

#: What is counted over LATELY_SECONDS: which part of a point. The history tells: counters of a node begin anew with it.
COUNTED_LATELY: dict[Metric, Callable[[Point], int]] = {
    Metric.DEAD: lambda point: point.arrived,
    Metric.EXPIRED: lambda point: point.expired,
    Metric.REDELIVERED: lambda point: point.redelivered,
    Metric.DROPPED: lambda point: point.dropped,
    Metric.BLOCKED: lambda point: point.blocked,
}


def _lately(metric: Metric) -> Reading:
    count = COUNTED_LATELY[metric]

    def reading(stats: DestinationStats, readings: Readings) -> float | None:
        if metric is Metric.DEAD and not stats.DLQ:
            return None
        recent = readings.recent.get(stats.destination, () if readings.knows_all else None)
        if recent is None:
            return UNKNOWN
        return float(sum(count(each) for each in recent if each.at > readings.now - LATELY_SECONDS))

    return reading


def _age(stats: DestinationStats, readings: Readings) -> float | None:
    came = readings.oldest.get(stats.destination)
    return max(0.0, readings.now - came / 1000) if came and stats.QueueSize else None


def _out(stats: DestinationStats, readings: Readings) -> float:
    rates = readings.picture.rates(stats.destination)
    return rates.dequeue if stats.destination.kind is Kind.QUEUE else rates.dispatch


def _offline(stats: DestinationStats, readings: Readings) -> float | None:
    since = readings.offline.get(str(stats.destination))
    return max(0.0, readings.now - since / 1000) if since and not stats.ConsumerCount else None


OF_DESTINATION: dict[Metric, Reading] = {
    Metric.DEPTH: lambda stats, _: stats.QueueSize,
    Metric.OLDEST: _age,
    Metric.NO_CONSUMER: lambda stats, _: None if stats.ConsumerCount else stats.QueueSize,
    Metric.RATE_IN: lambda stats, readings: readings.picture.rates(stats.destination).enqueue,
    Metric.RATE_OUT: _out,
    Metric.CONSUMERS: lambda stats, _: stats.ConsumerCount,
    Metric.PRODUCERS: lambda stats, _: stats.ProducerCount,
    Metric.IN_FLIGHT: lambda stats, _: stats.InFlightCount,
    Metric.BACKLOG: lambda stats, _: stats.QueueSize,
    Metric.OFFLINE: _offline,
    **{metric: _lately(metric) for metric in COUNTED_LATELY},
}


def _percent(thousandths: int | None) -> float | None:
    return None if thousandths is None else thousandths / 10


#: Of the broker, now and in the history.
OF_BROKER: dict[Metric, Callable[[Whole], float | None]] = {
    Metric.STORE: lambda whole: 100 * whole.store_used / whole.store_limit if whole.store_limit else None,
    Metric.TEMPORARY: lambda whole: _percent(whole.temporary),
    Metric.MEMORY: lambda whole: _percent(whole.machine),
    Metric.ROOM: lambda whole: _percent(whole.memory),
    Metric.DISK: lambda whole: _percent(whole.disk),
    Metric.CONNECTIONS: lambda whole: whole.connections,
    Metric.HELD_BACK: lambda whole: whole.held_back,
    Metric.SLOW: lambda whole: whole.slow,
    Metric.LINKS_DOWN: lambda whole: whole.links_down,
    Metric.AWAY: lambda whole: whole.away,
    Metric.NODES: lambda whole: whole.nodes,
}

#: Metrics that fire for each part of the broker by itself: what the parts are called, and their numbers.
_OF_PARTS: dict[Metric, Callable[[Picture], dict[str, float]]] = {
    Metric.LINKS_DOWN: lambda picture: {f"connector {name}": n for name, n in links_down(picture.nodes).items()},
    Metric.AWAY: lambda picture: {f"broker {name}": 1 for name in away(picture)},
}


def of_broker(metric: Metric, picture: Picture) -> dict[str, float]:
    """The broker's number, or that of each of its parts. Without a node nobody tells, but that there is none."""
    if not picture.nodes:
        return {BROKER: 0.0} if metric is Metric.NODES else {}
    if metric in _OF_PARTS:
        return _OF_PARTS[metric](picture)
    value = OF_BROKER[metric](whole_of(picture, 0, {}))
    return {} if value is None else {BROKER: float(value)}
