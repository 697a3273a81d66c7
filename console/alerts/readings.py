"""Read the current value of each metric for a destination, a subscription or the broker. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from analytics.model.traffic_comparison import TrafficHour
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.model.time_series import BrokerPoint, DestinationPoint
from brokerapp.monitoring.node_metrics import prepared_transactions
from console.alerts.metrics import LATELY_SECONDS, AlertMetric
from console.broker.broker_sample import broker_point, links_down, unreachable_brokers
from console.broker.snapshot import BrokerSnapshot
from console.objectives.targets import Measurement

#: What a rule of the whole broker is about.
BROKER = "broker"
#: The number of what nobody knows it of now, as the history has no room for it. It breaks no rule.
UNKNOWN = math.nan


@dataclass(frozen=True, slots=True)
class MetricReadings:
    """The figures that rules are evaluated on.

    `oldest`: arrival of each queue's first message, ms since the epoch.
    `recent`: points of the last minutes of the destinations that changed then, for metrics counted over minutes.
    `has_all_points`: destinations that are not in `recent` are known not to have changed.
    `watched`: points were recorded without a gap all that time.
    `named`: durable subscriptions by their logs.
    `offline`: since when a subscription has had no consumer, ms since the epoch, by the name of its log.
    `gone`: when the last consumer of a destination left, seconds since the epoch, by its name in native form.
    `traffic`: the last hour of destinations that have an expected range, by their names in native form.
    `objectives`: measurements of objectives by their names.
    `failed_backups`: how many failed since the last successful one. `backup_failure`: why the last of them failed.
    `certificate_days`: until a certificate expires, by where it is shown.
    `unread`: metrics whose figures are unavailable now.
    """

    now: float
    picture: BrokerSnapshot
    oldest: Mapping[Destination, int] = field(default_factory=dict)
    recent: Mapping[Destination, Sequence[DestinationPoint]] = field(default_factory=dict)
    has_all_points: bool = True
    watched: bool = True
    named: Mapping[Destination, SubscriptionIdentity] = field(default_factory=dict)
    offline: Mapping[str, int] = field(default_factory=dict)
    gone: Mapping[str, int] = field(default_factory=dict)
    traffic: Mapping[str, TrafficHour] = field(default_factory=dict)
    objectives: Mapping[str, Measurement] = field(default_factory=dict)
    failed_backups: int = 0
    backup_failure: str = ""
    certificate_days: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[AlertMetric] = frozenset()


Reading = Callable[[DestinationStats, MetricReadings], float | None]

#: What is counted over LATELY_SECONDS: which part of a point. The history tells: counters of a node begin anew with it.
COUNTED_LATELY: dict[AlertMetric, Callable[[DestinationPoint], int]] = {
    AlertMetric.DEAD: lambda point: point.arrived,
    AlertMetric.EXPIRED: lambda point: point.expired,
    AlertMetric.REDELIVERED: lambda point: point.redelivered,
    AlertMetric.DROPPED: lambda point: point.dropped,
    AlertMetric.BLOCKED: lambda point: point.blocked,
}


def _lately(metric: AlertMetric) -> Reading:
    count = COUNTED_LATELY[metric]

    def reading(stats: DestinationStats, readings: MetricReadings) -> float | None:
        if metric is AlertMetric.DEAD and not stats.DLQ:
            return None
        recent = readings.recent.get(stats.destination, () if readings.has_all_points else None)
        if recent is None:
            return UNKNOWN
        return float(sum(count(each) for each in recent if each.at > readings.now - LATELY_SECONDS))

    return reading


#: What is compared with the weekly pattern: which deviation of an hour.
OF_PATTERN: dict[AlertMetric, Callable[[TrafficHour], int]] = {
    AlertMetric.TRAFFIC_ANOMALY: lambda hour: hour.deviation,
    AlertMetric.TRAFFIC_SHORTFALL: lambda hour: hour.shortfall,
    AlertMetric.TRAFFIC_EXCESS: lambda hour: hour.excess,
}


def _of_pattern(metric: AlertMetric) -> Reading:
    deviation = OF_PATTERN[metric]

    def reading(stats: DestinationStats, readings: MetricReadings) -> float | None:
        hour = readings.traffic.get(str(stats.destination))
        return None if hour is None else float(deviation(hour))

    return reading


def _age(stats: DestinationStats, readings: MetricReadings) -> float | None:
    came = readings.oldest.get(stats.destination)
    return max(0.0, readings.now - came / 1000) if came and stats.QueueSize else None


def _out(stats: DestinationStats, readings: MetricReadings) -> float:
    rates = readings.picture.rates(stats.destination)
    return rates.dequeue if stats.destination.kind is DestinationKind.QUEUE else rates.dispatch


def _offline(stats: DestinationStats, readings: MetricReadings) -> float | None:
    since = readings.offline.get(str(stats.destination))
    return max(0.0, readings.now - since / 1000) if since and not stats.ConsumerCount else None


def _gone(stats: DestinationStats, readings: MetricReadings) -> float | None:
    since = readings.gone.get(str(stats.destination))
    return max(0.0, readings.now - since) if since is not None and not stats.ConsumerCount else None


OF_DESTINATION: dict[AlertMetric, Reading] = {
    AlertMetric.DEPTH: lambda stats, _: stats.QueueSize,
    AlertMetric.OLDEST: _age,
    AlertMetric.NO_CONSUMER: lambda stats, _: None if stats.ConsumerCount else stats.QueueSize,
    AlertMetric.CONSUMER_GONE: _gone,
    AlertMetric.RATE_IN: lambda stats, readings: readings.picture.rates(stats.destination).enqueue,
    AlertMetric.RATE_OUT: _out,
    AlertMetric.CONSUMERS: lambda stats, _: stats.ConsumerCount,
    AlertMetric.PRODUCERS: lambda stats, _: stats.ProducerCount,
    AlertMetric.IN_FLIGHT: lambda stats, _: stats.InFlightCount,
    AlertMetric.BACKLOG: lambda stats, _: stats.QueueSize,
    AlertMetric.OFFLINE: _offline,
    **{metric: _lately(metric) for metric in COUNTED_LATELY},
    **{metric: _of_pattern(metric) for metric in OF_PATTERN},
}


def _budget(found: Measurement) -> float | None:
    return None if found.budget_left is None else max(0.0, 100 * found.budget_left)


#: Of objectives, now and in the past; None: no messages.
OF_OBJECTIVE: dict[AlertMetric, Callable[[Measurement], float | None]] = {
    AlertMetric.BURN_FAST: lambda found: found.fast_burn,
    AlertMetric.BURN_SLOW: lambda found: found.slow_burn,
    AlertMetric.BUDGET: _budget,
}


def _percent(thousandths: int | None) -> float | None:
    return None if thousandths is None else thousandths / 10


#: Of the broker, now and in the history.
OF_BROKER: dict[AlertMetric, Callable[[BrokerPoint], float | None]] = {
    AlertMetric.STORE: lambda whole: 100 * whole.store_used / whole.store_limit if whole.store_limit else None,
    AlertMetric.TEMPORARY: lambda whole: _percent(whole.temporary),
    AlertMetric.MEMORY: lambda whole: _percent(whole.machine),
    AlertMetric.ROOM: lambda whole: _percent(whole.memory),
    AlertMetric.DISK: lambda whole: _percent(whole.disk),
    AlertMetric.CONNECTIONS: lambda whole: whole.connections,
    AlertMetric.HELD_BACK: lambda whole: whole.held_back,
    AlertMetric.SLOW: lambda whole: whole.slow,
    AlertMetric.LINKS_DOWN: lambda whole: whole.links_down,
    AlertMetric.AWAY: lambda whole: whole.away,
    AlertMetric.NODES: lambda whole: whole.nodes,
    AlertMetric.PREPARED: lambda _whole: None,  # see _NOW_ONLY
    AlertMetric.BACKUPS: lambda _whole: None,  # see OF_INSTALLATION
    AlertMetric.CERTIFICATE: lambda _whole: None,
}

#: Metrics that fire for each part of the broker by itself: what the parts are called, and their numbers.
_OF_PARTS: dict[AlertMetric, Callable[[BrokerSnapshot], dict[str, float]]] = {
    AlertMetric.LINKS_DOWN: lambda picture: {f"connector {name}": n for name, n in links_down(picture.nodes).items()},
    AlertMetric.AWAY: lambda picture: {f"broker {name}": 1 for name in unreachable_brokers(picture)},
}

#: Of the installation, or of each of its parts, now only: known without a node, too.
OF_INSTALLATION: dict[AlertMetric, Callable[[MetricReadings], Mapping[str, int]]] = {
    AlertMetric.BACKUPS: lambda readings: {BROKER: readings.failed_backups},
    AlertMetric.CERTIFICATE: lambda readings: readings.certificate_days,
}

#: Why a value of the installation is what it is, as a sentence, where that is known.
CAUSES: dict[AlertMetric, Callable[[MetricReadings], str]] = {
    AlertMetric.BACKUPS: lambda readings: readings.backup_failure,
}

#: Of the broker, now only: the history does not hold it.
_NOW_ONLY: dict[AlertMetric, Callable[[BrokerSnapshot], float]] = {
    AlertMetric.PREPARED: lambda picture: prepared_transactions(picture.nodes).oldest_seconds,
}


def of_broker(metric: AlertMetric, readings: MetricReadings) -> dict[str, float]:
    """Return the broker's value, or that of each of its parts. Without a node the number of nodes is known, and what
    is not of nodes.
    """
    picture = readings.picture
    if metric in OF_INSTALLATION:
        return {part: float(number) for part, number in OF_INSTALLATION[metric](readings).items()}
    if not picture.nodes:
        return {BROKER: 0.0} if metric is AlertMetric.NODES else {}
    if metric in _OF_PARTS:
        return _OF_PARTS[metric](picture)
    if metric in _NOW_ONLY:
        return {BROKER: _NOW_ONLY[metric](picture)}
    value = OF_BROKER[metric](broker_point(picture, 0, {}))
    return {} if value is None else {BROKER: float(value)}
