"""Test that the broker's counters are what clients saw, in brokerctl, in monitoring and in the store."""

import json
import re
from io import StringIO

import pytest
from django.core.management import call_command

from brokerapp.model.destination import Destination
from brokerapp.store.redis import RedisStore
from console.exporters.prometheus.exposition import METRICS, snake
from tests.console.conftest import close_console, point_at
from tests.ledger import numbers
from tests.ledger.rules import BROKER
from tests.monitoring.conftest import client_of, endpoints, monitor, text  # noqa: F401 (fixtures)
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def expected(done):
    return numbers.counters(done.ledger)


def ctl(done, *arguments):
    """What a verb of brokerctl says, as JSON."""
    out = StringIO()
    call_command("brokerctl", *arguments, "--json", redis=done.node.redis_url, name=BROKER, stdout=out)
    return json.loads(out.getvalue())


def test_brokerctl_counts_what_clients_saw_at_each_destination(done, expected):
    names = {name for each in expected.values() for name in each}

    def told():
        rows = [*ctl(done, "destinations"), *ctl(done, "subscriptions")]
        found = {row["destination"]: {name: row[name] for name in names if row[name]} for row in rows}
        return {place: each for place, each in found.items() if each}

    wait_until(lambda: "ConsumerCount" not in told()["queue://many"], "the last numbers are told")
    assert told() == expected


def test_the_sums_of_brokerctl_are_those_of_all_queues_and_subscriptions(done, expected):
    out = StringIO()
    call_command("brokerctl", "stats", redis=done.node.redis_url, name=BROKER, stdout=out)
    [flow] = [line for line in out.getvalue().splitlines() if line.startswith("queues and subscriptions: ")]
    told = [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", flow)]
    queues = [each for place, each in expected.items() if not place.startswith("topic://")]
    assert told == [sum(each.get(name, 0) for each in queues) for name in ("EnqueueCount", "DequeueCount", "QueueSize")]


def test_waits_until_given_are_between_what_clients_measured(done):
    for place in {each.copy.place for each in done.ledger.deliveries}:
        told = done.node.numbers(Destination.parse(place))
        times = [each.given - each.copy.message.born for each in done.ledger.deliveries if each.copy.place == place]
        assert sum(each.after for each in times) <= told.EnqueueTimeUs <= sum(each.before for each in times), place
        assert min(each.after for each in times) // 1000 <= told.MinEnqueueTime, place
        assert told.MinEnqueueTime <= min(each.before for each in times) // 1000, place
        assert max(each.after for each in times) // 1000 <= told.MaxEnqueueTime, place
        assert told.MaxEnqueueTime <= max(each.before for each in times) // 1000, place


async def test_the_store_holds_what_nobody_took_away(done, expected):
    store = RedisStore(done.node.redis_url, BROKER)
    try:
        depths = await store.logs.depths(list(await store.logs.all_attributes()))
    finally:
        await store.close()
    wanted = {place: each["QueueSize"] for place, each in expected.items() if each.get("QueueSize")}
    assert {log: depth for log, depth in depths.items() if depth} == wanted


@pytest.fixture
def scrape(done, settings, monitor, tmp_path):  # noqa: F811
    """A function from a page to its values by metric and destination."""
    point_at(settings, done.node.redis_url, BROKER, tmp_path)

    def read(page: str) -> dict[tuple[str, str], float]:
        lines = re.findall(r'^(\w+)\{destination="([^"]+)"\} (\S+)$', text(monitor.get(page)), re.M)
        return {(name, place): float(value) for name, place, value in lines}

    yield read
    close_console()


@pytest.mark.parametrize("page", ["/metrics", "/metrics/v2"])
def test_metrics_say_what_clients_saw(scrape, expected, page):
    read, names = scrape(page), {name for each in expected.values() for name in each}
    for metric in (each for each in METRICS if each.attribute in names):
        for place, values in expected.items():
            kind, _, name = place.partition("://")
            if kind != "subscription":
                label = _of_v2(kind, metric) if page.endswith("v2") else f"activemq_{kind}_{snake(metric.attribute)}"
                assert read[label, name] == values.get(metric.attribute, 0), (label, name)


def _of_v2(kind, metric):
    return f"sluice_{kind}_{metric.name}{'_total' if metric.type == 'counter' else ''}"
