"""Write statistics in the text formats of Prometheus and OpenMetrics, metric by metric. Pure.

`/metrics` has the names that jmx_exporter's example for ActiveMQ makes, so that dashboards made for it fill. Some of
them break Prometheus' own rules of naming (counters without `_total`, gauges with it): `/metrics/v2` has names that
keep them.

Up to a limit each destination has series of its own. Beyond it, a metric has one series without the label
`destination`, the sum or mean over all; who asks with `?destination=PATTERN` gets those that match, up to the limit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from analytics.spans.progress import ExportProgress
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.destination import DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.monitoring.node_metrics import build_info, nodes_up, of_each_node, shard_metrics, store_metrics
from brokerapp.monitoring.prometheus_text import COUNTER, GAUGE, family, label_text, number, suffix
from console.exporters.jolokia.attributes import KINDS, store_memory_share
from console.exporters.jolokia.beans import Beans

Value = Callable[[DestinationStats, Beans], float]
Merge = Callable[[Sequence[DestinationStats], Beans], float]


@dataclass(frozen=True, slots=True)
class ExposedMetric:
    """Describe a metric of destinations: its JMX attribute, and its name in /metrics/v2."""

    attribute: str
    name: str
    type: str
    help: str
    value: Value
    merged: Merge  #: the one number of many destinations

    @property
    def factor(self) -> float:
        """Return the factor from JMX's milliseconds to OpenMetrics' seconds."""
        return 0.001 if "_seconds" in self.name else 1


def _field(attribute: str) -> Value:
    return lambda stats, beans: getattr(stats, attribute)


def _sum(attribute: str, name: str, type: str, help: str, value: Value | None = None) -> ExposedMetric:
    of_one = value or _field(attribute)
    return ExposedMetric(
        attribute, name, type, help, of_one, lambda many, beans: sum(of_one(each, beans) for each in many)
    )


def _extreme(attribute: str, name: str, help: str, choose: Callable[..., float], counted: str) -> ExposedMetric:
    def merged(many: Sequence[DestinationStats], beans: Beans) -> float:
        return choose((getattr(each, attribute) for each in many if getattr(each, counted)), default=0)

    return ExposedMetric(attribute, name, GAUGE, help, _field(attribute), merged)


def _mean(attribute: str, name: str, help: str, counted: str) -> ExposedMetric:
    def merged(many: Sequence[DestinationStats], beans: Beans) -> float:
        weight = sum(getattr(each, counted) for each in many)
        return sum(getattr(each, attribute) * getattr(each, counted) for each in many) / (weight or 1)

    return ExposedMetric(attribute, name, GAUGE, help, _field(attribute), merged)


def _fullest(attribute: str, name: str, help: str) -> ExposedMetric:
    value = KINDS["queue"].attributes[attribute].value
    return ExposedMetric(
        attribute, name, GAUGE, help, value, lambda many, beans: max(value(each, beans) for each in many)
    )


def _held(stats: DestinationStats, beans: Beans) -> int:
    return beans.used(stats)


#: What each destination tells. Counts are since its node started.
METRICS = (
    _sum("QueueSize", "messages", GAUGE, "Messages not yet acknowledged, those in flight included"),
    _sum("InFlightCount", "in_flight_messages", GAUGE, "Messages dispatched and not yet acknowledged"),
    _sum("ConsumerCount", "consumers", GAUGE, "Consumers"),
    _sum("ProducerCount", "producers", GAUGE, "Producers"),
    _sum("EnqueueCount", "enqueued_messages", COUNTER, "Messages enqueued"),
    _sum("DequeueCount", "dequeued_messages", COUNTER, "Messages acknowledged, expired, removed or moved"),
    _sum("DispatchCount", "dispatched_messages", COUNTER, "Messages dispatched to consumers, including redeliveries"),
    _sum("ExpiredCount", "expired_messages", COUNTER, "Messages expired"),
    _sum("DeadLetterCount", "dead_lettered_messages", COUNTER, "Messages dead-lettered"),
    _sum("DroppedCount", "dropped_messages", COUNTER, "Messages dropped because of a limit"),
    _sum("BlockedSends", "blocked_sends", COUNTER, "Sends blocked by flow control"),
    _sum("TotalBlockedTime", "blocked_seconds", COUNTER, "Time that sends were blocked by flow control"),
    _sum("EnqueueBytes", "enqueued_bytes", COUNTER, "Bytes of bodies enqueued"),
    _sum("DequeueBytes", "dequeued_bytes", COUNTER, "Bytes of bodies dequeued"),
    _mean("AverageEnqueueTime", "wait_mean_seconds", "Mean time from enqueue to dispatch", "DispatchCount"),
    _extreme("MinEnqueueTime", "wait_min_seconds", "Shortest time from enqueue to dispatch", min, "DispatchCount"),
    _extreme("MaxEnqueueTime", "wait_max_seconds", "Longest time from enqueue to dispatch", max, "DispatchCount"),
    _mean("AverageMessageSize", "body_mean_bytes", "Mean size of enqueued bodies", "EnqueueCount"),
    _extreme("MinMessageSize", "body_min_bytes", "Smallest body so far", min, "EnqueueCount"),
    _extreme("MaxMessageSize", "body_max_bytes", "Largest body so far", max, "EnqueueCount"),
    _sum("MemoryUsageByteCount", "held_bytes", GAUGE, "Bytes of stored messages", _held),
    _fullest("MemoryPercentUsage", "used_percent", "Percent of the memory limit in use"),
    _sum("Paused", "paused", GAUGE, "Whether delivery is paused"),
)

#: Numbers of the broker that end in _total whatever they are, as jmx_exporter's example makes them.
_TOTALS = (
    "Message", "Enqueue", "Dequeue", "Consumer", "Producer", "Connections", "Queues", "Topics", "ManagedQueues",
    "ManagedTopics", "TemporaryQueues", "TemporaryTopics", "MaxUncommittedExceeded",
)  # fmt: skip
_SHARES = ("Memory", "Store", "Temp", "JobSchedulerStore")


@dataclass(frozen=True, slots=True)
class SeriesSelection:
    """Select series: one for each of `listed`, one for all of `merged`."""

    listed: list[DestinationStats]
    merged: list[DestinationStats]


def select(
    everything: Iterable[DestinationStats], kind: DestinationKind, patterns: Sequence[str], most: int
) -> SeriesSelection:
    """Select matching destinations of a kind, individually up to a maximum."""
    found = [
        each
        for each in everything
        if each.destination.kind is kind
        and (not patterns or any(matches(pattern, each.destination.name) for pattern in patterns))
    ]
    return SeriesSelection(found, []) if len(found) <= most else SeriesSelection([], found)


def plain(beans: Beans, patterns: Sequence[str] = (), spans: ExportProgress | None = None) -> Iterator[str]:
    """Yield the page /metrics; with the export of spans where there is one."""
    yield build_info()
    for name, type, help, value in chain(_of_broker(beans), _of_spans(spans)):
        yield family(name, type, help) + f"{name} {number(value)}\n"
    yield from _of_nodes(beans, is_open=False)
    for kind, selection in _selections(beans, patterns):
        labels = _labels(selection.listed)
        for metric in METRICS:
            name = f"activemq_{kind}_{snake(metric.attribute)}"
            yield family(name, metric.type, metric.help) + _samples(name, metric, selection, labels, beans)
    yield from _omitted(beans, patterns)


def open_metrics(beans: Beans, patterns: Sequence[str] = (), spans: ExportProgress | None = None) -> Iterator[str]:
    """Yield the page /metrics/v2; with the export of spans where there is one."""
    yield build_info()
    for name, type, help, value in chain(_of_broker_v2(beans), _of_spans(spans)):
        yield family(name, type, help) + f"{name}{suffix(type)} {number(value)}\n"
    yield from _of_nodes(beans, is_open=True)
    for kind, selection in _selections(beans, patterns):
        labels = _labels(selection.listed)
        for metric in METRICS:
            name = f"sluice_{kind}_{metric.name}"
            yield family(name, metric.type, metric.help) + _samples(
                name + suffix(metric.type), metric, selection, labels, beans, metric.factor
            )
    yield from _omitted(beans, patterns)
    yield "# EOF\n"


def _selections(beans: Beans, patterns: Sequence[str]) -> list[tuple[str, SeriesSelection]]:
    everything = beans.reading.destinations
    return [
        (str(kind), select(everything, kind, patterns, beans.options.listed))
        for kind in (DestinationKind.QUEUE, DestinationKind.TOPIC)
    ]


def _omitted(beans: Beans, patterns: Sequence[str]) -> Iterator[str]:
    name = "sluice_metrics_merged_destinations"
    merged = sum(len(selection.merged) for _, selection in _selections(beans, patterns))
    yield family(name, GAUGE, "Destinations without own series; select them with ?destination=PATTERN") + (
        f"{name} {merged}\n"
    )


def _samples(
    name: str, metric: ExposedMetric, selection: SeriesSelection, labels: Sequence[str], beans: Beans, factor: float = 1
) -> str:
    if selection.merged:
        return f"{name} {number(metric.merged(selection.merged, beans) * factor)}\n"
    value = metric.value
    return "".join(
        [
            f"{name}{label} {number(value(each, beans) * factor)}\n"
            for label, each in zip(labels, selection.listed, strict=True)
        ]
    )


def _of_broker(beans: Beans) -> Iterator[tuple[str, str, str, float]]:
    value = _reader(beans)
    yield "activemq_connections", GAUGE, "Open connections", value("CurrentConnectionsCount")
    for each in _TOTALS:
        name = f"Total{each}Count"
        yield f"activemq_{each.lower()}_total", GAUGE, f"{name} of the broker", value(name)
    for each in _SHARES:
        name = f"{each}PercentUsage"
        yield f"activemq_{each.lower()}_usage_ratio", GAUGE, f"{name} of the broker, 0 to 1", value(name) / 100
    yield from store_metrics(beans.reading.nodes)


def _of_broker_v2(beans: Beans) -> Iterator[tuple[str, str, str, float]]:
    value = _reader(beans)
    yield "sluice_uptime_seconds", GAUGE, "Seconds since the node started", value("UptimeMillis") / 1000
    yield "sluice_connections", GAUGE, "Open connections", value("CurrentConnectionsCount")
    yield "sluice_accepted_connections", COUNTER, "Connections accepted", value("TotalConnectionsCount")
    yield "sluice_store_used_bytes", GAUGE, "Bytes of all messages in the store", beans.reading.used[0]
    yield "sluice_store_limit_bytes", GAUGE, "Limit of message bytes in the store", value("StoreLimit")
    yield (
        "sluice_store_memory_ratio",
        GAUGE,
        "Memory the store's server uses, 0 to 1",
        store_memory_share(beans) / 100,
    )
    yield from store_metrics(beans.reading.nodes)
    yield "sluice_trace_recorded_events", COUNTER, "Trace events recorded", _trace(beans, "recorded")
    yield "sluice_trace_dropped_events", COUNTER, "Trace events dropped", _trace(beans, "dropped")


def _of_nodes(beans: Beans, *, is_open: bool) -> Iterator[str]:
    """Yield the metrics of shards, whether nodes run, and the metrics of each."""
    yield from shard_metrics(beans.reading.nodes)
    yield nodes_up(beans.reading.nodes)
    yield from of_each_node(beans.reading.nodes, is_open=is_open)


def _of_spans(progress: ExportProgress | None) -> Iterator[tuple[str, str, str, float]]:
    """Yield metrics of the export of spans; none where it never ran, or is off."""
    if progress is None:
        return
    yield "sluice_spans_exported", COUNTER, "Spans that the OTLP receiver accepted", progress.exported
    yield "sluice_spans_refused", COUNTER, "Spans that the OTLP receiver refused for good", progress.refused
    yield "sluice_spans_unsampled", COUNTER, "Spans that the sampler did not select", progress.unsampled
    yield (
        "sluice_spans_late_events",
        COUNTER,
        "Events dropped as too old to be exported",
        progress.late_events,
    )
    yield "sluice_spans_lost_batches", COUNTER, "Batches of events gone before their export", progress.lost_batches
    unknown = progress.unknown_contexts
    yield "sluice_spans_unknown_contexts", COUNTER, "Messages whose trace context was not known", unknown
    yield "sluice_spans_lag_seconds", GAUGE, "Age of the newest exported batch, 0 without backlog", progress.lag_seconds
    age = max(0.0, time.time() - progress.written_at)
    yield "sluice_spans_progress_age_seconds", GAUGE, "Seconds since the exporter wrote its progress", age


def _reader(beans: Beans) -> Callable[[str], float]:
    """Return a function that reads attributes of the broker's bean."""
    attributes = KINDS["broker"].attributes
    return lambda name: attributes[name].value(beans.reading, beans)


def _trace(beans: Beans, name: str) -> int:
    return sum(node.trace.get(name, 0) for node in beans.reading.nodes)


def snake(name: str) -> str:
    """Return a name in snake case as jmx_exporter does: QueueSize is queue_size."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _labels(listed: Iterable[DestinationStats]) -> list[str]:
    return [label_text({"destination": each.destination.name}) for each in listed]
