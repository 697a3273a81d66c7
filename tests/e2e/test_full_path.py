"""The one path through all of Sluice: real clients, broker, trace, archive, Spark, result page."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.e2e.installation import Browser, Installation

#: Seconds the demo runs, and until an analysis is done: Spark's first job on two cores takes some twenty.
DEMO_SECONDS = 5
ANALYSIS_SECONDS = 120


@pytest.fixture(scope="module")
def sluice(tmp_path_factory):
    with Installation(tmp_path_factory.mktemp("installation") / "data") as installation:
        yield installation


def destinations(sluice: Installation) -> dict[str, dict]:
    found = json.loads(sluice.run("brokerctl", "--json", "destinations"))
    return {each["destination"]: each for each in found}


def finished(browser: Browser, address: str) -> str:
    """The page of a run once it ended."""
    deadline = time.monotonic() + ANALYSIS_SECONDS
    while time.monotonic() < deadline:
        _, page = browser.get(address)
        if "<progress" not in page:
            return page
        time.sleep(0.5)
    raise AssertionError(f"{address} did not end:\n{page}")


@pytest.mark.spark
@pytest.mark.slow
def test_what_clients_do_is_seen_in_the_console_and_answered_by_spark(sluice):
    story = sluice.run("demo", "--seconds", str(DEMO_SECONDS))
    published = int(re.search(r"([\d,]+) orders", story)[1].replace(",", ""))
    time.sleep(1.5)  # one snapshot of the numbers
    numbers = destinations(sluice)
    assert numbers["queue://Consumer.Billing.VirtualTopic.Orders"]["EnqueueCount"] == published
    assert numbers["queue://Consumer.Audit.VirtualTopic.Orders"]["QueueSize"] > 0
    assert numbers["queue://ActiveMQ.DLQ"]["QueueSize"] > 0

    browser = sluice.browser()
    _, queues = browser.get("/queues/")
    assert "Consumer.Audit.VirtualTopic.Orders" in queues

    rows = archived(sluice)
    address, _ = browser.submit("/analytics/", to="/analytics/start", kind="traffic", window="1h")
    page = finished(browser, address)
    assert "Rows read" in page, page
    run = address.rstrip("/").rpartition("/")[2]
    result = json.loads((sluice.folder / "results" / run / "result.json").read_text())
    assert result["rows_read"] >= rows
    by_destination = {row[0]: row for row in result["tables"][0]["rows"]}
    assert any("VirtualTopic.Orders" in name for name in by_destination)
    assert len(result["charts"]) >= 2


def archived(sluice: Installation) -> int:
    """Events in the archive once it holds what was recorded so far."""
    import pyarrow.dataset as dataset

    deadline = time.monotonic() + 30
    seen = -1
    while time.monotonic() < deadline:
        parts = list((sluice.folder / "archive").rglob("part-*.parquet"))
        rows = dataset.dataset(parts).count_rows() if parts else 0
        if rows and rows == seen:
            return rows
        seen = rows
        time.sleep(6)  # longer than the archiver waits between two files
    raise AssertionError("the archiver wrote nothing")


@pytest.mark.slow
def test_a_second_start_finds_everything(sluice):
    before = destinations(sluice)
    password = sluice.password
    sluice.__exit__()
    started = time.monotonic()
    sluice.__enter__()
    assert time.monotonic() - started < 60
    assert sluice.password == password
    assert destinations(sluice)["queue://ActiveMQ.DLQ"]["QueueSize"] == before["queue://ActiveMQ.DLQ"]["QueueSize"]
