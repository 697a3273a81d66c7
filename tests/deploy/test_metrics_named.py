"""Every metric and label that rules and dashboards name is one that Sluice exposes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from analytics.spans.progress import ExportProgress
from brokerapp.monitoring.node_metrics import of_one_node
from brokerapp.store.server.disk_space import MIB, DiskLevel, DiskSpace
from console.exporters.prometheus.exposition import open_metrics
from deploy.grafana import build
from tests.deploy.files import DEPLOY, read_yaml
from tests.monitoring.readings import beans, node

#: What a node reports of a shard.
SHARD = {"number": 1, "answers": True, "used": 5, "limit": 9, "logs": 3, "messages": 7, "intents": 0}
#: What Prometheus itself adds to each series.
OF_PROMETHEUS = frozenset({"job", "instance"})
_METRIC = re.compile(r"\b((?:sluice|activemq)_\w+)(?:\{([^}]*)\})?")
_MATCHED = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
_SHOWN = re.compile(r"\$labels\.(\w+)|\{\{\s*(\w+)\s*\}\}")


def exposed() -> dict[str, set[str]]:
    """Return the labels of each series on /metrics/v2, and on the health port of a node, by its name."""
    disk = DiskSpace(500_000 * MIB, 3 * MIB, 128 * MIB).assess(DiskLevel.ENOUGH).to_json()
    homes = {"logs": 3, "served": 1, "unreached": ["b"], "settled": True}
    watching = node(store={**node().store, "disk": disk}, homes=homes, definitions=7, shards=[SHARD])
    pages = ["".join(open_metrics(beans(node=watching), (), ExportProgress())), *of_one_node(watching)]
    found: dict[str, set[str]] = {}
    for line in "".join(pages).splitlines():
        if not line.startswith("#"):
            name, labels = re.fullmatch(r"(\w+)(\{.*\})? \S+", line).groups()
            found.setdefault(name, set()).update(_MATCHED.findall(labels or ""))
    assert {family.name for family in text_string_to_metric_families(pages[0])}, "an independent parser reads it"
    return found


def expressions() -> Iterator[tuple[str, str, str]]:
    """Yield where a query is, the query, and the text that shows labels of its answer."""
    for group in read_yaml(DEPLOY / "prometheus/sluice-rules.yml")["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"], rule["annotations"]["summary"]
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"], target["legendFormat"]


CATALOGUE = exposed()
QUERIES = list(expressions())


def unknown(query: str, shown: str) -> list[str]:
    """Return what a query names that no series has."""
    named = [(name, set(_MATCHED.findall(matchers))) for name, matchers in _METRIC.findall(query)]
    missing = [name for name, _ in named if name not in CATALOGUE]
    labels = set().union(*(CATALOGUE.get(name, set()) for name, _ in named)) | OF_PROMETHEUS
    missing += [label for name, used in named for label in used - CATALOGUE.get(name, set()) - OF_PROMETHEUS]
    grouped = {each.strip() for group in _GROUPED.findall(query) for each in group.split(",")}
    shown_labels = {first or second for first, second in _SHOWN.findall(shown)}
    return missing + sorted((grouped | shown_labels) - labels)


@pytest.mark.parametrize(("where", "query", "shown"), QUERIES, ids=[each[0] for each in QUERIES])
def test_a_query_names_only_metrics_and_labels_that_are_exposed(where, query, shown):
    assert unknown(query, shown) == []
    assert _METRIC.search(query), f"{where} asks for no metric of Sluice"


def test_a_metric_or_label_that_is_not_exposed_is_found():
    assert unknown("sum(sluice_queue_size)", "") == ["sluice_queue_size"]
    assert unknown('sluice_queue_messages{queue="a"}', "") == ["queue"]
    assert unknown("max by (host) (sluice_node_settled)", "") == ["host"]
    assert unknown("sluice_store_replicas", "{{ $labels.node }} is away") == ["node"]
    assert unknown('rate(sluice_queue_blocked_seconds_total{destination="a"}[5m])', "{{destination}}") == []


@pytest.mark.parametrize("name", build.DASHBOARDS)
def test_the_file_of_a_dashboard_is_what_its_table_says(name):
    assert (DEPLOY / "grafana" / f"{name}.json").read_text() == build.written(name), "run deploy/grafana/build.py"


@pytest.mark.parametrize("name", build.DASHBOARDS)
def test_panels_of_a_dashboard_fill_rows_without_overlapping(name):
    places = [each["gridPos"] for each in build.dashboard(name)["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < build.WIDTH


def test_variables_of_dashboards_offer_values_of_labels_that_are_exposed():
    for name in build.DASHBOARDS:
        for variable in build.dashboard(name)["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()
                assert label in CATALOGUE[metric]


def test_every_alert_has_a_severity_and_a_test_in_which_it_fires():
    rules = [rule for group in read_yaml(DEPLOY / "prometheus/sluice-rules.yml")["groups"] for rule in group["rules"]]
    assert {rule["labels"]["severity"] for rule in rules} == {"critical", "warning", "info"}
    tests = read_yaml(Path(DEPLOY / "prometheus/sluice-rules-test.yml"))["tests"]
    fired = {each["alertname"] for test in tests for each in test["alert_rule_test"] if each.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in rules}
