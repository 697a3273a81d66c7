"""Write the Grafana dashboards beside this file from one table: `python deploy/grafana/build.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24  #: columns of Grafana's grid
STAT_HEIGHT, GRAPH_HEIGHT = 4, 8
#: Oldest schema that Grafana 10 and 11 read without changing the file.
SCHEMA_VERSION = 39

DESTINATION = 'destination=~"$destination"'
NODE = 'node=~"$node"'


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel and how its series are called."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A number (`stat`), a graph (`timeseries`) or a bar for each series (`bargauge`)."""

    title: str
    about: str
    queries: tuple[Query, ...]
    unit: str = "short"
    type: str = "timeseries"
    width: int = 12
    #: From which value on a number is orange and red; None: it has no bad values.
    warning: float | None = None
    critical: float | None = None


def graph(title: str, about: str, *queries: Query, unit: str = "short") -> Panel:
    """Return a graph of half the width."""
    return Panel(title, about, queries, unit)


def stat(
    title: str,
    about: str,
    expression: str,
    unit: str = "short",
    *,
    width: int = 4,
    warning: float | None = None,
    critical: float | None = None,
) -> Panel:
    """Return a single number."""
    return Panel(title, about, (Query(expression),), unit, "stat", width, warning, critical)


def _rate(kind: str, name: str) -> str:
    return f"sum(rate(sluice_{kind}_{name}_total[$__rate_interval]))"


def _of_destinations(kind: str, name: str, *, rate: bool = False) -> Query:
    """Return the 20 largest series of destinations; more make a graph unreadable."""
    series = f"sluice_{kind}_{name}{{{DESTINATION}}}"
    value = f"rate({series}[$__rate_interval])" if rate else series
    return Query(f"topk(20, sum by (destination) ({value}))", "{{destination}}")


def _of_queues(name: str, *, rate: bool = False) -> Query:
    return _of_destinations("queue", name, rate=rate)


def _of_nodes(name: str, *, rate: bool = False) -> Query:
    series = f"sluice_node_{name}{{{NODE}}}"
    return Query(f"max by (node) ({f'rate({series}[$__rate_interval])' if rate else series})", "{{node}}")


BROKER = (
    stat("Nodes", "Nodes of the broker that run", 'count(max by (node) (sluice_node_up{node!=""})) or vector(0)'),
    stat("Connections", "Open connections of clients", "max(sluice_connections)"),
    stat("Messages in queues", "Not yet acknowledged, those in flight included", "sum(sluice_queue_messages)"),
    stat(
        "Dead-lettered in 1 h",
        "Messages that failed for good",
        "sum(increase(sluice_queue_dead_lettered_messages_total[1h]))",
        warning=1,
    ),
    stat(
        "Store",
        "Message bytes of the limit",
        "max(sluice_store_used_bytes / (sluice_store_limit_bytes > 0))",
        "percentunit",
        warning=0.8,
        critical=0.95,
    ),
    stat("Uptime", "Since the node started", "max(sluice_uptime_seconds)", "s"),
    graph(
        "Messages per second",
        "Of all queues",
        Query(_rate("queue", "enqueued_messages"), "enqueued"),
        Query(_rate("queue", "dequeued_messages"), "dequeued"),
        Query(_rate("queue", "dispatched_messages"), "dispatched"),
        unit="cps",
    ),
    graph(
        "Messages of topics per second",
        "Of all topics",
        Query(_rate("topic", "enqueued_messages"), "enqueued"),
        Query(_rate("topic", "dispatched_messages"), "dispatched"),
        unit="cps",
    ),
    graph(
        "Messages in queues",
        "Not yet acknowledged",
        Query("sum(sluice_queue_messages)", "all"),
        Query("sum(sluice_queue_in_flight_messages)", "in flight"),
    ),
    graph(
        "Clients",
        "Consumers and producers of queues",
        Query("sum(sluice_queue_consumers)", "consumers"),
        Query("sum(sluice_queue_producers)", "producers"),
    ),
    graph(
        "Bytes per second",
        "Bodies of messages of queues",
        Query(_rate("queue", "enqueued_bytes"), "enqueued"),
        Query(_rate("queue", "dequeued_bytes"), "dequeued"),
        unit="Bps",
    ),
    graph(
        "Messages not delivered, per second",
        "Dead-lettered, expired, dropped because of a limit",
        Query(_rate("queue", "dead_lettered_messages"), "dead-lettered"),
        Query(_rate("queue", "expired_messages"), "expired"),
        Query(_rate("queue", "dropped_messages"), "dropped"),
        unit="cps",
    ),
)

DESTINATIONS = (
    graph("Messages", "Not yet acknowledged, those in flight included; the 20 largest", _of_queues("messages")),
    graph("In flight", "Dispatched and not yet acknowledged", _of_queues("in_flight_messages")),
    graph("Enqueued per second", "", _of_queues("enqueued_messages_total", rate=True), unit="cps"),
    graph(
        "Dequeued per second",
        "Acknowledged, expired, removed or moved",
        _of_queues("dequeued_messages_total", rate=True),
        unit="cps",
    ),
    graph("Consumers", "", _of_queues("consumers")),
    graph("Mean time from enqueue to dispatch", "Since the node started", _of_queues("wait_mean_seconds"), unit="s"),
    graph("Dead-lettered per second", "", _of_queues("dead_lettered_messages_total", rate=True), unit="cps"),
    graph("Expired per second", "", _of_queues("expired_messages_total", rate=True), unit="cps"),
    graph(
        "Seconds blocked per second",
        "Time that flow control blocked producers",
        _of_queues("blocked_seconds_total", rate=True),
    ),
    graph("Stored bytes", "Bytes of stored messages", _of_queues("held_bytes"), unit="bytes"),
    Panel(
        "Memory limit in use",
        "Percent of the limit of the queue",
        (_of_queues("used_percent"),),
        "percent",
        "bargauge",
        warning=80,
        critical=100,
    ),
    graph(
        "Topics, enqueued per second",
        "",
        _of_destinations("topic", "enqueued_messages_total", rate=True),
        unit="cps",
    ),
)

NODES = (
    Panel("Settled", "1: the node delivers from all queues that it owns", (_of_nodes("settled"),), "short", "stat", 8),
    Panel(
        "Drained",
        "1: the node takes no connections and owns no queues",
        (_of_nodes("draining"),),
        "short",
        "stat",
        8,
        warning=1,
    ),
    Panel(
        "Unreachable nodes",
        "Live nodes without a link to this one",
        (_of_nodes("unreachable_nodes"),),
        "short",
        "stat",
        8,
        warning=1,
    ),
    graph("Connections", "Open connections of clients", _of_nodes("connections")),
    graph("Accepted connections per second", "", _of_nodes("accepted_connections_total", rate=True), unit="cps"),
    graph("Blocked by flow control", "Connections", _of_nodes("blocked_connections")),
    graph("Slow consumers", "Connections with slow consumers", _of_nodes("slow_connections")),
    graph(
        "Refused connections per second",
        "Refused by a limit",
        _of_nodes("refused_connections_total", rate=True),
        unit="cps",
    ),
    graph(
        "Bytes that are not stored yet",
        "Messages in memory, and their limit",
        Query(f"max by (node) (sluice_node_held_bytes{{{NODE}}})", "{{node}}"),
        Query(f"max by (node) (sluice_node_held_limit_bytes{{{NODE}}})", "{{node}}, limit"),
        unit="bytes",
    ),
    graph("Owned queues and subscriptions", "Only of brokers with several nodes", _of_nodes("owned_queues")),
    graph(
        "Remote consumers", "Consumers of clients of other nodes that the node serves", _of_nodes("remote_consumers")
    ),
    graph(
        "Version of the definitions",
        "Nodes of one broker have the same, soon after a change",
        _of_nodes("definitions_version"),
    ),
    graph(
        "Trace events per second",
        "Recorded and dropped",
        Query(f"max by (node) (rate(sluice_node_trace_recorded_events_total{{{NODE}}}[$__rate_interval]))", "{{node}}"),
        Query(
            f"max by (node) (rate(sluice_node_trace_dropped_events_total{{{NODE}}}[$__rate_interval]))",
            "{{node}}, dropped",
        ),
        unit="cps",
    ),
    graph("Uptime", "A fall is a restart", _of_nodes("uptime_seconds"), unit="s"),
)

STORE = (
    stat(
        "Message bytes",
        "Of the limit",
        "max(sluice_store_used_bytes / (sluice_store_limit_bytes > 0))",
        "percentunit",
        warning=0.8,
        critical=0.95,
    ),
    stat(
        "Memory of the server",
        "Of what it may use",
        "max(sluice_store_memory_ratio)",
        "percentunit",
        warning=0.75,
        critical=0.85,
    ),
    stat("Sends blocked by the disk", "1: too little is free", "max(sluice_store_disk_blocked)", critical=1),
    stat(
        "Missing replicas",
        "That have to confirm a change",
        "clamp_min(max(sluice_store_replicas_wanted) - min(sluice_store_replicas), 0)",
        critical=1,
    ),
    stat(
        "Rollbacks in 24 h",
        "Times the store lost confirmed changes",
        "max(increase(sluice_store_rollbacks_total[24h]))",
        critical=1,
    ),
    stat(
        "Oldest prepared transaction",
        "Distributed transactions that wait for their end",
        "max(sluice_prepared_transaction_age_seconds)",
        "s",
        warning=600,
    ),
    graph(
        "Bytes of messages",
        "And their limit",
        Query("max(sluice_store_used_bytes)", "used"),
        Query("max(sluice_store_limit_bytes)", "limit"),
        unit="bytes",
    ),
    graph(
        "Memory of the server",
        "Of what it may use",
        Query("max(sluice_store_memory_ratio)", "used"),
        unit="percentunit",
    ),
    graph(
        "Disk",
        "Below the limit sends are blocked",
        Query("min(sluice_store_disk_free_bytes)", "free"),
        Query("max(sluice_store_disk_limit_bytes)", "limit"),
        unit="bytes",
    ),
    graph(
        "Replicas",
        "That follow the primary, and that have to confirm a change",
        Query("min(sluice_store_replicas)", "follow"),
        Query("max(sluice_store_replicas_wanted)", "wanted"),
    ),
    graph(
        "Prepared transactions",
        "Distributed transactions that wait for their end",
        Query("max(sluice_prepared_transactions)", "prepared"),
    ),
    graph(
        "Spans",
        "Export over OTLP, where it is on",
        Query("rate(sluice_spans_exported_total[$__rate_interval])", "exported"),
        Query("rate(sluice_spans_refused_total[$__rate_interval])", "refused"),
        Query("rate(sluice_spans_late_events_total[$__rate_interval])", "late"),
        unit="cps",
    ),
)

#: Name of the file: title, panels, and the label that can be chosen with a metric that has all of its values.
DASHBOARDS = {
    "broker": ("Sluice: broker", BROKER, None),
    "destinations": ("Sluice: destinations", DESTINATIONS, ("destination", "sluice_queue_messages")),
    "nodes": ("Sluice: nodes", NODES, ("node", "sluice_node_uptime_seconds")),
    "store": ("Sluice: store", STORE, None),
}


def dashboard(name: str) -> dict[str, Any]:
    """Return a dashboard in Grafana's format."""
    title, panels, choice = DASHBOARDS[name]
    return {
        "uid": f"sluice-{name}",
        "title": title,
        "tags": ["sluice"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [{"type": "dashboards", "tags": ["sluice"], "title": "Sluice", "asDropdown": True, "keepTime": True}],
        "templating": {"list": _variables(choice)},
        "panels": list(_placed(panels)),
    }


def _variables(choice: tuple[str, str] | None) -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    if choice is None:
        return [source]
    label, metric = choice
    query = f"label_values({metric}, {label})"
    return [
        source,
        {
            "name": label,
            "label": label.capitalize(),
            "type": "query",
            "datasource": SOURCE,
            "definition": query,
            "query": {"query": query, "refId": "values"},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        },
    ]


def _placed(panels: tuple[Panel, ...]) -> Iterator[dict[str, Any]]:
    """Yield panels from left to right, a row as high as its panels."""
    x = y = row = 0
    for number, panel in enumerate(panels, start=1):
        height = STAT_HEIGHT if panel.type == "stat" else GRAPH_HEIGHT
        if x + panel.width > WIDTH:
            x, y = 0, y + row
        yield _panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": height})
        x, row = x + panel.width, height


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green" if panel.type != "timeseries" else "text", "value": None}]
    steps += [{"color": "orange", "value": panel.warning}] if panel.warning is not None else []
    steps += [{"color": "red", "value": panel.critical}] if panel.critical is not None else []
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    options: dict[str, Any] = {}
    if panel.type == "timeseries":
        defaults |= {
            "color": {"mode": "palette-classic"},
            "custom": {"lineWidth": 1, "fillOpacity": 8, "showPoints": "never"},
        }
        options = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    else:
        defaults |= {"color": {"mode": "thresholds"}}
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    return {
        "id": number,
        "title": panel.title,
        "description": panel.about,
        "type": panel.type,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend or "__auto",
            }
            for place, query in enumerate(panel.queries)
        ],
    }


def written(name: str) -> str:
    """Return the text of a dashboard's file."""
    return json.dumps(dashboard(name), indent=1) + "\n"


if __name__ == "__main__":
    for each in DASHBOARDS:
        (FOLDER / f"{each}.json").write_text(written(each))
