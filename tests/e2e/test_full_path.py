"""The one path through all of Sluice: real clients, broker, trace, archive, Spark, result page."""

from __future__ import annotations

import json
import re
import time
from email import message_from_bytes, policy

import pytest
import stomp
from playwright.sync_api import sync_playwright

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


IS_DUE = """
from django.utils import timezone
from console.models import Report
Report.objects.filter(name="Morning").update(due=timezone.now())
"""


@pytest.mark.spark
@pytest.mark.browser
@pytest.mark.slow
def test_a_schedule_fires_and_the_report_is_mailed_and_read(sluice):
    url = f"http://localhost:{sluice.console}"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = chromium.new_page()
        page.set_default_timeout(ANALYSIS_SECONDS * 1000)
        page.goto(f"{url}/login/?next=/reports/new")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(sluice.password)
        page.get_by_role("button", name="Log in").click()
        page.get_by_label("Name").fill("Morning")
        page.locator('[name="kind"][value="traffic"]').check()
        page.get_by_label("Time zone").fill("America/New_York")
        page.get_by_label("and to these addresses").fill("reader@example.org")
        page.get_by_role("button", name="Create the report").click()
        page.get_by_text("No edition yet").first.wait_for()
        assert page.locator(".moments li").count() == 3

        send(sluice, "/queue/morning", 5)
        sluice.run("shell", "-c", IS_DUE)  # what time does, sooner
        mail = sent(sluice, "reader@example.org")
        assert mail["Subject"].startswith("[sluice] Morning, ")
        text = mail.get_body(("html",)).get_content()
        assert [part.get_content_type() for part in mail.walk()].count("image/png") == 1
        [link] = set(re.findall(rf'href="({url}/reports/[^"]+)"', text))

        page.goto(link)
        page.get_by_role("heading", name="Morning", exact=True).wait_for()
        assert "messages arrived at" in page.locator(".summary").inner_text()
        page.locator(".figure-host .main-svg").first.wait_for()
        page.get_by_role("link", name="Arrived").click()
        page.get_by_text("Rows read").wait_for()
        chromium.close()


def send(sluice: Installation, destination: str, count: int) -> None:
    """Send messages as the admin; they are recorded when it returns."""
    connection = stomp.Connection12([("127.0.0.1", sluice.stomp)])
    connection.connect("admin", sluice.password, wait=True)
    for number in range(count):
        connection.send(destination, str(number), persistent="true")
    connection.disconnect(receipt="sent")
    time.sleep(1.5)  # longer than a recorder keeps a batch


def sent(sluice: Installation, recipient: str):
    """The mail to somebody in the outbox, once there is one."""
    deadline = time.monotonic() + ANALYSIS_SECONDS
    while time.monotonic() < deadline:
        for path in (sluice.folder / "outbox").glob("*.log"):
            mail = message_from_bytes(path.read_bytes().rpartition(b"-" * 79)[0], policy=policy.default)
            if mail["To"] == recipient:
                return mail
        time.sleep(0.5)
    raise AssertionError(f"nobody wrote to {recipient}")


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
