"""Define the metrics of nodes and of what they report of their store, from the status of nodes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from brokerapp.model import JsonObject
from brokerapp.model.stats_records import NodeStatus
from brokerapp.monitoring.prometheus_text import COUNTER, GAUGE, Sample, label_text, metric, suffix
from brokerapp.store.server.disk_space import DiskSpace
from brokerapp.version import VERSION

#: What metrics of nodes are called by, before the name of each.
PREFIX = "sluice_node_"
NODE_UP = "sluice_node_up"
NODE_UP_HELP = "Whether a broker node runs; with the label node: whether this one does"

BrokerMetric = tuple[str, str, str, float]  #: name, type, help and value


class NodeMetric(NamedTuple):
    """Describe a metric that each node has, with the label `node`. `value` returns None where a node has none."""

    name: str
    type: str
    help: str
    value: Callable[[NodeStatus], float | None]


class ShardMetric(NamedTuple):
    """Describe a metric that each shard has, a gauge. `value` is made of what each node reports of the shard."""

    name: str
    help: str
    value: Callable[[Sequence[JsonObject]], float]


def _of_connectors(field: str) -> Callable[[NodeStatus], int]:
    """Return a function that sums a field over connectors, each of which may listen on several addresses."""
    return lambda node: sum({each["connector"]: each.get(field, 0) for each in node.listeners}.values())


NODE_METRICS = (
    NodeMetric("uptime_seconds", GAUGE, "Seconds since the node started", lambda node: _uptime(node)),
    NodeMetric("connections", GAUGE, "Open connections of clients", lambda node: node.connected.get("all", 0)),
    NodeMetric("slow_connections", GAUGE, "Connections with slow consumers",
               lambda node: node.connected.get("slow", 0)),
    NodeMetric("blocked_connections", GAUGE, "Connections blocked by flow control",
               lambda node: node.connected.get("held_back", 0)),
    NodeMetric("accepted_connections", COUNTER, "Connections accepted", _of_connectors("accepted")),
    NodeMetric("refused_connections", COUNTER, "Connections refused by a limit", _of_connectors("refused")),
    NodeMetric("held_bytes", GAUGE, "Bytes of messages in memory that are not stored yet",
               lambda node: node.memory.get("used")),
    NodeMetric("held_limit_bytes", GAUGE, "Limit of these bytes", lambda node: node.memory.get("limit")),
    NodeMetric("owned_queues", GAUGE, "Queues and subscriptions that the node owns",
               lambda node: node.homes.get("logs")),
    NodeMetric("remote_consumers", GAUGE, "Consumers of clients of other nodes that the node serves",
               lambda node: node.homes.get("served")),
    NodeMetric("unreachable_nodes", GAUGE, "Live nodes without a link to this one",
               lambda node: len(node.homes.get("unreached", ()))),
    NodeMetric("settled", GAUGE, "Whether the node delivers from all queues that it owns",
               lambda node: node.homes.get("settled", True)),
    NodeMetric("draining", GAUGE, "Whether the node is drained: it takes no connections and owns no queues",
               lambda node: bool(node.homes.get("draining"))),
    NodeMetric("definitions_version", GAUGE, "Version of the definitions that the node routes by",
               lambda node: node.definitions),
    NodeMetric("trace_recorded_events", COUNTER, "Trace events recorded", lambda node: node.trace.get("recorded", 0)),
    NodeMetric("trace_dropped_events", COUNTER, "Trace events dropped", lambda node: node.trace.get("dropped", 0)),
)  # fmt: skip


CERTIFICATE_HELP = "End of the certificate that a connector with TLS shows, in seconds since the epoch"


def _uptime(node: NodeStatus) -> float:
    return max(0, node.seen_ms - node.started_ms) / 1000


class PreparedTransactions(NamedTuple):
    """Distributed transactions that are prepared and did not end."""

    count: int
    oldest_seconds: float  #: since the oldest of them was prepared; 0: there is none


def prepared_transactions(nodes: Iterable[NodeStatus]) -> PreparedTransactions:
    """Return the prepared transactions of the broker, as the node knows them that has looked last."""
    told = [(node.seen_ms, node.transactions) for node in nodes if node.transactions]
    seen_ms, latest = max(told, key=lambda each: each[0], default=(0, {"prepared": 0, "oldest_ms": 0}))
    age_ms = seen_ms - latest["oldest_ms"] if latest["oldest_ms"] else 0
    return PreparedTransactions(latest["prepared"], max(age_ms, 0) / 1000)


def watched_disk(node: NodeStatus) -> DiskSpace | None:
    """Return the disk of a node's store; None where the node does not watch it."""
    disk = DiskSpace.from_json(node.store.get("disk", {}))
    return disk if disk.total else None


def store_metrics(nodes: Sequence[NodeStatus]) -> Iterator[BrokerMetric]:
    """Yield metrics of the store, as nodes report it: its fullest disk, replicas, rollbacks, prepared transactions."""
    watched = [disk for disk in map(watched_disk, nodes) if disk is not None]
    for disk in sorted(watched, key=lambda disk: disk.free)[:1]:
        yield "sluice_store_disk_free_bytes", GAUGE, "Bytes free on the disk of the store", disk.free
        yield "sluice_store_disk_limit_bytes", GAUGE, "Free bytes below which sends are blocked", disk.limit
        yield "sluice_store_disk_blocked", GAUGE, "Whether sends are blocked by low disk space", int(disk.is_low)
    for name, about, choose in (
        ("replicas", "Replicas that follow the store's primary", min),
        ("replicas_wanted", "Replicas that have to confirm a change", max),
    ):
        found = choose((node.store.get(name, 0) for node in nodes), default=0)
        yield f"sluice_store_{name}", GAUGE, about, found
    rollbacks = max((node.store.get("rollbacks", 0) for node in nodes), default=0)
    yield "sluice_store_rollbacks", COUNTER, "Times the store lost confirmed changes", rollbacks
    count, oldest_seconds = prepared_transactions(nodes)
    yield "sluice_prepared_transactions", GAUGE, "Distributed transactions that wait for their end", count
    yield (
        "sluice_prepared_transaction_age_seconds",
        GAUGE,
        "Seconds since the oldest of these was prepared",
        oldest_seconds,
    )


def _shard(name: str, help: str, field: str, choose: Callable[..., float] = max) -> ShardMetric:
    return ShardMetric(f"sluice_shard_{name}", help, lambda shards: choose(each[field] for each in shards))


#: Nodes know the shards at slightly different times. What only some of them reach is not up.
SHARD_METRICS = (
    _shard("up", "Whether the shard answers all nodes", "answers", min),
    _shard("used_bytes", "Bytes of messages in the shard", "used"),
    _shard("limit_bytes", "Limit of these bytes, the shard's part of the broker's limit; 0: none", "limit"),
    _shard("destinations", "Destinations and subscriptions in the shard", "logs"),
    _shard("messages", "Messages in the shard", "messages"),
    _shard("intents", "Writes over several shards that this one coordinates and that are not complete", "intents"),
)


def shard_metrics(nodes: Iterable[NodeStatus]) -> Iterator[str]:
    """Yield the metrics of each shard, with the label `shard`; none for a broker with one store."""
    reports: dict[int, list[JsonObject]] = {}
    for node in nodes:
        for report in node.shards:
            reports.setdefault(report["number"], []).append(report)
    if not reports:
        return
    for name, help, value in SHARD_METRICS:
        samples = [
            Sample(value(found), label_text({"shard": str(number)})) for number, found in sorted(reports.items())
        ]
        yield metric(name, GAUGE, help, samples)


def _label(node: NodeStatus) -> str:
    return label_text({"node": node.name or node.node})


def of_each_node(nodes: Sequence[NodeStatus], *, is_open: bool) -> Iterator[str]:
    """Yield the metrics that each node has; with `is_open`, names of counters end in `_total`."""
    for name, type, help, value in NODE_METRICS:
        values = ((_label(node), value(node)) for node in nodes)
        samples = [Sample(found, labels) for labels, found in values if found is not None]
        if samples:
            yield metric(PREFIX + name, type, help, samples, suffix(type) if is_open else "")
    yield from certificate_metrics(nodes)


def certificate_metrics(nodes: Iterable[NodeStatus]) -> Iterator[str]:
    """Yield the metric of certificates, with the labels `node` and `connector`; none where no connector has TLS."""
    ends = {
        label_text({"node": node.name or node.node, "connector": each["connector"]}): each["certificate_until"]
        for node in nodes
        for each in node.listeners
        if each.get("certificate_until")  # nodes of an earlier version do not say it
    }
    if ends:
        samples = [Sample(until, labels) for labels, until in ends.items()]
        yield metric("sluice_node_certificate_expiry_timestamp_seconds", GAUGE, CERTIFICATE_HELP, samples)


def nodes_up(nodes: Sequence[NodeStatus]) -> str:
    """Return the metric of which nodes run: one sample for all, one for each."""
    each = [Sample(1, _label(node)) for node in nodes]
    return metric(NODE_UP, GAUGE, NODE_UP_HELP, [Sample(int(bool(nodes))), *each])


def build_info() -> str:
    """Return the metric whose label is the version of what answers."""
    about = "Version of Sluice as a label; the value is always 1"
    return metric("sluice_build_info", GAUGE, about, [Sample(1, label_text({"version": VERSION}))])


def of_one_node(node: NodeStatus) -> Iterator[str]:
    """Yield the page /metrics of one node, whose names are those of /metrics/v2."""
    yield build_info()
    up = Sample(1, _label(node))
    yield metric(NODE_UP, GAUGE, NODE_UP_HELP, [up])
    for name, type, help, value in store_metrics([node]):
        yield _plain_metric(name, type, help, [Sample(value)])
    yield from shard_metrics([node])
    yield from certificate_metrics([node])
    for name, type, help, read in NODE_METRICS:
        if (found := read(node)) is not None:
            yield _plain_metric(PREFIX + name, type, help, [Sample(found, up.labels)])


def _plain_metric(name: str, type: str, help: str, samples: Sequence[Sample]) -> str:
    """Return a metric in the plain format, which describes a counter by its full name."""
    return metric(name + suffix(type), type, help, samples)
