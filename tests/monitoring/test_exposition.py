"""Test the metrics for Prometheus with an independent parser."""

import time
from dataclasses import replace

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from analytics.spans.progress import ExportProgress
from brokerapp.model.stats_records import DestinationStats, ListenerStats, NodeStatus
from brokerapp.monitoring.node_metrics import of_one_node
from brokerapp.store.server.disk_space import MIB, DiskLevel, DiskSpace
from brokerapp.version import VERSION
from console.exporters.options import MonitorOptions
from console.exporters.prometheus.exposition import open_metrics, plain, snake
from tests.monitoring.readings import AWKWARD, ORDERS, PRICES, Q, beans, node

#: What Grafana's mixin for ActiveMQ and jmx_exporter's example make of the broker's beans.
OF_DASHBOARDS = (
    "activemq_connections", "activemq_connections_total", "activemq_consumer_total", "activemq_producer_total",
    "activemq_message_total", "activemq_enqueue_total", "activemq_dequeue_total", "activemq_managedqueues_total",
    "activemq_memory_usage_ratio", "activemq_store_usage_ratio", "activemq_temp_usage_ratio",
    "activemq_jobschedulerstore_usage_ratio",
    *(
        f"activemq_{kind}_{name}"
        for kind in ("queue", "topic")
        for name in (
            "queue_size", "enqueue_count", "dequeue_count", "consumer_count", "producer_count", "expired_count",
            "in_flight_count", "memory_percent_usage", "average_enqueue_time", "average_message_size",
        )
    ),
)  # fmt: skip


def samples(pieces, parse=text_string_to_metric_families):
    """Name of every sample, and what it is of, with its value."""
    found = {}
    for family in parse("".join(pieces)):
        for each in family.samples:
            key = (each.name, each.labels.get("destination") or each.labels.get("node"))
            assert key not in found, "a series comes twice"
            found[key] = each.value
    return found


def test_dashboards_find_every_name_they_ask_for():
    text = "".join(plain(beans()))
    assert [name for name in OF_DASHBOARDS if f"\n{name} " not in text and f"\n{name}{{" not in text] == []


def test_each_destination_has_its_numbers():
    found = samples(plain(beans(ORDERS, PRICES, AWKWARD)))
    assert found["activemq_queue_queue_size", "Orders.In"] == 42
    assert found["activemq_queue_average_enqueue_time", "Orders.In"] == 1.5
    assert found["activemq_queue_memory_percent_usage", "Orders.In"] == 20
    assert found["activemq_topic_consumer_count", "Prices"] == 1
    assert found["activemq_store_usage_ratio", None] == 0.25
    assert found["activemq_memory_usage_ratio", None] == 0.3
    assert found["activemq_queue_queue_size", AWKWARD.destination.name] == 1


def test_the_export_of_spans_has_metrics_where_it_is_on():
    progress = ExportProgress(exported=7, refused=1, lag_seconds=2.5, written_at=time.time())
    found = samples(plain(beans(), (), progress))
    assert (found["sluice_spans_exported_total", None], found["sluice_spans_lag_seconds", None]) == (7, 2.5)
    found = samples(open_metrics(beans(), (), progress), openmetrics.text_string_to_metric_families)
    assert found["sluice_spans_refused_total", None] == 1
    assert 0 <= found["sluice_spans_progress_age_seconds", None] < 60
    assert "sluice_spans" not in "".join(plain(beans()))


@pytest.mark.parametrize(
    "pieces", [plain(beans()), open_metrics(beans()), of_one_node(node())], ids=["plain", "open", "node"]
)
def test_the_version_is_the_label_of_a_metric(pieces):
    assert f'\nsluice_build_info{{version="{VERSION}"}} 1\n' in "".join(pieces)


@pytest.mark.parametrize("exposed", [plain, open_metrics])
def test_the_disk_of_a_store_is_told_where_a_node_watches_it(exposed):
    disk = DiskSpace(500_000 * MIB, 3 * MIB, 128 * MIB).assess(DiskLevel.ENOUGH).to_json()
    watching = node(store={**node().store, "disk": disk})
    parse = text_string_to_metric_families if exposed is plain else openmetrics.text_string_to_metric_families
    found = samples(exposed(beans(node=watching)), parse)
    assert found["sluice_store_disk_free_bytes", None] == 3 * MIB
    assert found["sluice_store_disk_limit_bytes", None] == 256 * MIB
    assert found["sluice_store_disk_blocked", None] == 1
    assert ("sluice_store_disk_free_bytes", None) not in samples(exposed(beans()), parse)


@pytest.mark.parametrize("form", [plain, open_metrics])
def test_rollbacks_of_the_store_are_counted(form):
    parse = text_string_to_metric_families if form is plain else openmetrics.text_string_to_metric_families
    rolled_back = node(store={**node().store, "rollbacks": 2, "rollback_ms": 1, "rollback_changes": 9})
    assert samples(form(beans(node=rolled_back)), parse)["sluice_store_rollbacks_total", None] == 2
    assert samples(form(beans()), parse)["sluice_store_rollbacks_total", None] == 0


@pytest.mark.parametrize("form", [plain, open_metrics])
def test_replicas_of_the_store_are_counted_beside_those_that_are_wanted(form):
    parse = text_string_to_metric_families if form is plain else openmetrics.text_string_to_metric_families
    found = samples(form(beans(node=node(store={**node().store, "replicas": 1, "replicas_wanted": 2}))), parse)
    assert (found["sluice_store_replicas", None], found["sluice_store_replicas_wanted", None]) == (1, 2)


@pytest.mark.parametrize("form", [plain, open_metrics])
def test_prepared_transactions_are_counted_and_the_age_of_the_oldest_is_told(form):
    parse = text_string_to_metric_families if form is plain else openmetrics.text_string_to_metric_families
    since = node().seen_ms - 90_000
    in_doubt = samples(form(beans(node=node(transactions={"prepared": 2, "oldest_ms": since}))), parse)
    none = samples(form(beans()), parse)
    for found, count, age in ((in_doubt, 2, 90), (none, 0, 0)):
        assert found["sluice_prepared_transactions", None] == count
        assert found["sluice_prepared_transaction_age_seconds", None] == age


@pytest.mark.parametrize("form", [plain, open_metrics])
def test_each_node_has_series_of_its_own_beside_those_of_all_nodes(form):
    parse = text_string_to_metric_families if form is plain else openmetrics.text_string_to_metric_families
    a = node(
        name="a", connected={"all": 2, "slow": 1}, homes={"logs": 7, "served": 1, "unreached": [], "settled": True}
    )
    b = node(name="b", connected={"all": 3, "slow": 0}, homes={"logs": 5, "unreached": ["a"]})
    found = samples(form(beans(node=a, others=[b])), parse)
    assert [found["sluice_node_up", each] for each in (None, "a", "b")] == [1, 1, 1]
    assert [found["sluice_node_connections", each] for each in "ab"] == [2, 3]
    assert [found["sluice_node_owned_queues", each] for each in "ab"] == [7, 5]
    assert [found["sluice_node_unreachable_nodes", each] for each in "ab"] == [0, 1]
    assert found["sluice_node_accepted_connections_total", "a"] == 9


@pytest.mark.parametrize("form", [plain, open_metrics])
def test_without_a_running_node_the_series_of_all_nodes_is_zero(form):
    parse = text_string_to_metric_families if form is plain else openmetrics.text_string_to_metric_families
    found = samples(form(beans(node=None)), parse)
    assert {name: value for (name, _), value in found.items() if name.startswith("sluice_node_")} == {
        "sluice_node_up": 0
    }


def test_the_open_form_keeps_the_rules_of_openmetrics():
    found = samples(open_metrics(beans(ORDERS, PRICES, AWKWARD)), openmetrics.text_string_to_metric_families)
    assert found["sluice_queue_enqueued_messages_total", "Orders.In"] == 1000
    assert found["sluice_queue_messages", "Orders.In"] == 42
    assert found["sluice_node_up", None] == 1


def test_beyond_the_limit_there_is_one_series_for_all_and_it_says_so():
    many = [DestinationStats(Q(f"q{n}"), n, n, DispatchCount=n, EnqueueTimeUs=n * 2000) for n in range(1, 6)]
    some = beans(*many, options=MonitorOptions(listed=4))
    found = samples(plain(some))
    assert found["activemq_queue_queue_size", None] == 15
    assert found["activemq_queue_average_enqueue_time", None] == 2
    assert found["sluice_metrics_merged_destinations", None] == 5
    assert ("activemq_queue_queue_size", "q1") not in found
    asked = samples(plain(some, ["q1", "q2"]))
    assert (asked["activemq_queue_queue_size", "q1"], asked["sluice_metrics_merged_destinations", None]) == (1, 0)
    assert ("activemq_queue_queue_size", "q3") not in asked


def test_without_a_node_the_page_says_so():
    assert samples(plain(beans(node=None)))["sluice_node_up", None] == 0


@pytest.mark.parametrize(
    ("name", "expected"), [("QueueSize", "queue_size"), ("DLQ", "dlq"), ("MemoryPercentUsage", "memory_percent_usage")]
)
def test_names_become_what_jmx_exporter_makes_of_them(name, expected):
    assert snake(name) == expected


def test_ten_thousand_queues_take_less_than_a_second_and_come_in_pieces():
    many = [DestinationStats(Q(f"orders.region.{n}"), n, n) for n in range(10_000)]
    some = beans(*many, options=MonitorOptions(listed=10_000))
    started, largest, length = time.process_time(), 0, 0
    for piece in plain(some):
        largest, length = max(largest, len(piece)), length + len(piece)
    assert time.process_time() - started < 1.0
    assert largest < length / 10


def test_connections_and_trace_events_are_those_of_all_nodes():
    two = beans(others=[replace(node(), node="n2", trace={"recorded": 7})])
    assert samples(plain(two))["activemq_connections", None] == 6
    named = samples(open_metrics(two), openmetrics.text_string_to_metric_families)
    assert named["sluice_trace_recorded_events_total", None] == 12


def shard(number, **more):
    """What a node reports of a shard."""
    values = {"answers": True, "used": 500, "limit": 2_000, "logs": 3, "messages": 7, "intents": 0}
    return {"number": number, "state": "serving", **values, **more}


def of_shards(pieces, parse=text_string_to_metric_families):
    """Values of the metrics of shards by name and label."""
    return {
        (each.name.removeprefix("sluice_shard_"), each.labels["shard"]): each.value
        for family in parse("".join(pieces))
        for each in family.samples
        if each.name.startswith("sluice_shard_")
    }


@pytest.mark.parametrize(
    ("page", "parse"),
    [(plain, text_string_to_metric_families), (open_metrics, openmetrics.text_string_to_metric_families)],
)
def test_each_shard_has_its_metrics(page, parse):
    found = of_shards(page(beans(node=node(shards=[shard(0), shard(2, messages=9, intents=1)]))), parse)
    assert {key: value for key, value in found.items() if key[1] == "2"} == {
        ("up", "2"): 1, ("used_bytes", "2"): 500, ("limit_bytes", "2"): 2_000, ("destinations", "2"): 3,
        ("messages", "2"): 9, ("intents", "2"): 1,
    }  # fmt: skip
    assert found["messages", "0"] == 7
    assert len(found) == 12


def test_a_shard_that_one_of_the_nodes_does_not_reach_is_not_up():
    deaf = replace(node(shards=[shard(0), shard(1, answers=False)]), node="n2")
    found = of_shards(plain(beans(node=node(shards=[shard(0), shard(1)]), others=[deaf])))
    assert (found["up", "0"], found["up", "1"]) == (1, 0)


def test_a_broker_with_one_store_has_no_metrics_of_shards():
    assert not of_shards(open_metrics(beans()), openmetrics.text_string_to_metric_families)


def test_the_page_of_one_node_has_the_metrics_of_shards():
    assert of_shards(of_one_node(node(shards=[shard(0), shard(1)])))["up", "1"] == 1


@pytest.mark.parametrize("form", [plain, open_metrics])
def test_the_end_of_each_certificate_is_told_by_node_and_connector_where_there_is_tls(form):
    parse = text_string_to_metric_families if form is plain else openmetrics.text_string_to_metric_families

    def ends(of: NodeStatus) -> dict[tuple[str, str], float]:
        return {
            (each.labels["node"], each.labels["connector"]): each.value
            for family in parse("".join(form(beans(node=of))))
            for each in family.samples
            if each.name == "sluice_node_certificate_expiry_timestamp_seconds"
        }

    listeners = [
        ListenerStats("ssl", "ssl://127.0.0.1:1", certificate_until=1_800_000_000).to_json(),
        ListenerStats("ssl", "ssl://[::1]:1", certificate_until=1_800_000_000).to_json(),
        ListenerStats("stomp", "stomp://127.0.0.1:2").to_json(),
        {"connector": "wss", "address": "wss://127.0.0.1:3", "accepted": 0},  # of a node of an earlier version
    ]
    assert ends(node(name="a", listeners=listeners)) == {("a", "ssl"): 1_800_000_000}
    assert ends(node(name="a")) == {}
