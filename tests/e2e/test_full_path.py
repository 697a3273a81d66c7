"""Test one path through all of Sluice: clients, broker, trace, archive, Spark, result page; and a restart."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import stat
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy

import psutil
import pyarrow.dataset as dataset
import pytest
import stomp
from playwright.sync_api import expect, sync_playwright

from analytics.archive.broker_archive import BrokerArchive
from brokerapp.tracing.schema import KINDS, WITHOUT_MESSAGE
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.e2e.installation import STOP_SECONDS, Browser, Installation
from tests.waiting import wait_until

#: Seconds the demo runs, and until an analysis is done: some twenty, many more where others are at work, too.
DEMO_SECONDS = 5
ANALYSIS_SECONDS = 300
#: The next start takes some ten on a machine that has nothing else to do.
RESTART_SECONDS = 120
#: Processes of an installation, at least.
PARTS = 8


@pytest.fixture(scope="module")
def sluice(tmp_path_factory):
    with Installation(tmp_path_factory.mktemp("installation") / "data") as installation:
        yield installation


@dataclass(frozen=True)
class Story:
    """What the demo did."""

    orders: int
    over: datetime  #: all of it was recorded before


@pytest.fixture(scope="module")
def story(sluice) -> Story:
    """The demo, run for some seconds."""
    said = sluice.run("demo", "--seconds", str(DEMO_SECONDS))
    time.sleep(1.5)  # one snapshot of the numbers, and longer than a recorder keeps a batch
    return Story(int(re.search(r"([\d,]+) orders", said)[1].replace(",", "")), datetime.now(UTC))


def test_one_command_starts_everything_and_says_how_to_log_in(sluice):
    said, kept = sluice.output.read_text(), sluice.folder / "admin-password"
    assert f"user admin, password {sluice.password} (stored in {kept}" in said
    ours_alone = (kept, sluice.folder / "console.sqlite3")
    assert [stat.S_IMODE(each.stat().st_mode) for each in ours_alone] == [0o600, 0o600]
    assert f"http://127.0.0.1:{sluice.console}/" in said


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
def test_what_clients_do_is_seen_in_the_console_and_answered_by_spark(sluice, story, schedule):
    numbers = destinations(sluice)
    assert numbers["queue://Consumer.Billing.VirtualTopic.Orders"]["EnqueueCount"] == story.orders
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
    """Events of messages in the archive, once it holds what was recorded so far."""
    archive, now_us = BrokerArchive(sluice.folder / "archive", "sluice"), time.time_ns() // 1000
    wait_until(lambda: (archive.fresh_until_us or 0) >= now_us, "all is archived", ANALYSIS_SECONDS)
    files = dataset.dataset(list(archive.folder.rglob("part-*.parquet")))
    of_no_message = [KINDS[kind] for kind in WITHOUT_MESSAGE]
    return files.count_rows(filter=~dataset.field("kind").isin(of_no_message))


#: Lets the report be due once an hour, and next at a moment: the first look at reports from then on begins it.
IS_DUE = """
from datetime import datetime
from console.analyses.reports.models import Report
Report.objects.filter(name="Morning").update(cron="{due.minute} * * * *", due=datetime.fromisoformat("{due}"))
"""


@pytest.fixture(scope="module")
def page(sluice):
    """A real browser, logged in; what a page complains about fails the test."""
    complaints = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        page.set_default_timeout(ANALYSIS_SECONDS * 1000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{site(sluice)}/login/")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(sluice.password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/")
        yield page
        browser.close()
    assert complaints == []


def site(sluice: Installation) -> str:
    return f"http://localhost:{sluice.console}"


@pytest.fixture(scope="module")
def schedule(sluice, story, page) -> None:
    """A report on what the demo did, which is due when the next minute begins: others need not wait for that."""
    page.goto(f"{site(sluice)}/reports/new")
    page.get_by_label("Name").fill("Morning")
    page.locator('[name="kind"][value="traffic"]').check()
    page.get_by_role("combobox", name="Time zone").fill("America/New_York")
    page.get_by_label("Email to addresses").fill("reader@example.org")
    page.get_by_role("button", name="Create report").click()
    page.get_by_text("No editions yet").first.wait_for()
    assert page.locator(".moments li").count() == 3
    due = story.over.replace(second=0, microsecond=0) + timedelta(minutes=1)  # as soon as a schedule can say
    sluice.run("shell", "-c", IS_DUE.format(due=due))


#: Messages of each region that are sent, before and after.
SENT = {"eu": 40, "us": 25, "": 5}


def send_orders(sluice: Installation) -> None:
    """Orders of all regions, and some that say none."""
    for region, count in SENT.items():
        send(sluice, "/queue/shop.in", count, **({"region": region} if region else {}))


@pytest.mark.slow
def test_a_check_of_the_running_installation_finds_all_of_its_processes(sluice):
    needed = ("ports", "store.server", "store.durability", "versions.nodes", "console.database", "console.workers")

    def checked() -> dict:
        """What is found, once Spark and the workers are ready, which nobody waits for when it starts."""
        said = json.loads(sluice.run("checkinstallation", "--json"))
        found = {each["id"]: each for each in said["checks"]}
        assert said["state"] == "running"
        return found if all(found[name]["level"] == "ok" for name in needed) else {}

    found = wait_until(checked, "all is ready", RESTART_SECONDS)
    [held] = found["ports"]["findings"]
    assert held["text"].startswith(f"Held by Sluice: {sluice.console} (the console), {sluice.stomp} (STOMP)")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.browser
@pytest.mark.slow
def test_a_draft_that_was_tried_on_recorded_traffic_does_what_was_foretold(sluice, page):
    send_orders(sluice)
    archived(sluice)
    page.goto(f"{site(sluice)}/routing/new/compositeQueue")
    page.locator("[name=name]").fill("shop.in")
    page.locator("[name=target_name]").first.fill("shop.split")
    page.locator("[name=target_selector]").first.fill("region = 'us'")
    page.get_by_role("button", name="Save as draft").click()
    page.get_by_role("link", name="Edit").click()
    page.locator("[name=target_selector]").first.fill("region = 'eu'")
    page.get_by_role("button", name="Save to draft").click()
    page.get_by_role("link", name="What-if analysis").click()
    page.get_by_label("Time range").select_option("1h")
    page.get_by_role("button", name="Run what-if analysis").click()
    row = page.locator("tr", has=page.locator("a[href='/queues/shop.split/']")).first
    expect(row).to_contain_text("new", timeout=ANALYSIS_SECONDS * 1000)
    foretold = int(row.locator("td[data-label='Draft']").inner_text())
    assert foretold == SENT["eu"]
    page.get_by_role("link", name="Create shop.in").first.click()
    page.get_by_role("button", name="Apply 1 change").click()
    expect(page.locator(".note-success")).to_contain_text("is active on all nodes")
    send_orders(sluice)
    page.goto(f"{site(sluice)}/queues/?q=shop.split")
    live = page.locator('tr[data-row="shop.split"] [data-cell="QueueSize"]')
    expect(live).to_have_text(str(foretold), timeout=ANALYSIS_SECONDS * 1000)


TRIED = """<broker xmlns="http://activemq.apache.org/schema/core">
  <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    <compositeQueue name="desk.in"><forwardTo>
      <filteredDestination queue="desk.eu" selector="region = 'eu'"/>
    </forwardTo></compositeQueue>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
</broker>"""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_a_file_is_tried_on_recorded_traffic_from_a_terminal(sluice):
    send(sluice, "/queue/desk.in", 3, region="eu")
    send(sluice, "/queue/desk.in", 2, region="us")
    file = sluice.folder / "tried.xml"
    file.write_text(TRIED)
    told = json.loads(sluice.run("brokerctl", "--json", "whatif", str(file), "--since", "1h", seconds=ANALYSIS_SECONDS))
    [targets] = [each for each in told["tables"] if each["file"] == "targets.parquet"]
    columns = [each["name"] for each in targets["columns"]]
    found = {row[0]: dict(zip(columns, row, strict=True)) for row in targets["rows"]}
    assert (found["queue://desk.eu"]["in_force"], found["queue://desk.eu"]["draft"]) == (0, 3)
    assert found["queue://desk.in"]["in_force"] == 5
    assert "queue://desk.eu" not in destinations(sluice)  # nothing was sent, nothing changed


@pytest.mark.spark
@pytest.mark.browser
@pytest.mark.slow
def test_a_schedule_fires_and_the_report_is_mailed_and_read(sluice, schedule, page):
    mail = sent(sluice, "reader@example.org")
    assert mail["Subject"].startswith("[sluice] Morning, ")
    text = mail.get_body(("html",)).get_content()
    assert [part.get_content_type() for part in mail.walk()].count("image/png") == 1
    [link] = set(re.findall(rf'href="({site(sluice)}/reports/[^"]+)"', text))

    page.goto(link)
    page.get_by_role("heading", name="Morning", exact=True).wait_for()
    assert "messages were sent to" in page.locator(".summary").inner_text()
    page.locator(".figure-host .main-svg").first.wait_for()
    page.get_by_role("link", name="Sent", exact=True).click()
    page.get_by_text("Rows read").wait_for()


def connected(sluice: Installation) -> stomp.Connection12:
    """A client of the broker, logged in as the admin."""
    connection = stomp.Connection12([("127.0.0.1", sluice.stomp)])
    connection.connect("admin", sluice.password, wait=True)
    return connection


def send(sluice: Installation, destination: str, count: int, **headers: str) -> None:
    """Send messages as the admin; they are recorded when it returns."""
    connection = connected(sluice)
    for number in range(count):
        connection.send(destination, str(number), persistent="true", headers=headers)
    connection.disconnect(receipt="sent")
    time.sleep(1.5)  # longer than a recorder keeps a batch


def sent(sluice: Installation, recipient: str):
    """The mail to somebody in the outbox, once there is one."""
    deadline = time.monotonic() + ANALYSIS_SECONDS
    while time.monotonic() < deadline:
        for path in (sluice.folder / "outbox").glob("*.eml"):
            mail = message_from_bytes(path.read_bytes(), policy=policy.default)
            if mail["To"] == recipient:
                return mail
        time.sleep(0.5)
    raise AssertionError(f"nobody wrote to {recipient}")


#: A report that is begun at once.
BEGINS = """
from console.analyses.reports.models import Report
from console.analyses.reports.editions import start_edition_now
start_edition_now(Report.objects.create(name="Tried again", questions=[{"kind": "traffic", "window": "1h"}]), "admin")
"""


def spark_server(sluice: Installation) -> psutil.Process:
    return psutil.Process(int((sluice.folder / "spark" / "server.pid").read_text().split()[0]))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_an_edition_whose_worker_is_killed_is_tried_again_and_comes_to_its_end(sluice, story):
    def run() -> tuple[str, int, str]:
        with closing(sqlite3.connect(sluice.folder / "console.sqlite3", timeout=30)) as db:
            asked = (
                "SELECT run.state, run.tries, edition.state FROM console_analysisrun run "
                "JOIN console_edition edition ON edition.id = edition_id WHERE run.asked_by LIKE '%Tried again'"
            )
            return db.execute(asked).fetchone()

    server = spark_server(sluice)
    server.suspend()  # so that the run is under way for as long as this takes
    try:
        sluice.run("shell", "-c", BEGINS)
        wait_until(lambda: run()[0] in ("starting", "running"), "a worker has it", ANALYSIS_SECONDS)
        started = psutil.Process(sluice.process.pid).children()
        [worker] = [each for each in started if "-n spark@%h" in " ".join(each.cmdline())]
        for each in (worker, *worker.children(recursive=True)):
            each.kill()
        wait_until(lambda: run()[1] == 1, "it is tried again", ANALYSIS_SECONDS)
    finally:
        server.resume()
    wait_until(lambda: run()[2] != "running", "it is over", ANALYSIS_SECONDS)
    assert run() == ("done", 1, "done")


@pytest.mark.long
@pytest.mark.slow
def test_ctrl_c_ends_every_process_and_the_next_start_finds_it_all_again(sluice):
    send(sluice, "/queue/first.order", 1)
    before, password = destinations(sluice), sluice.password
    family = psutil.Process(sluice.process.pid).children(recursive=True)
    assert len(family) >= PARTS
    spark_server(sluice).suspend()  # as one that is busy with nothing but its garbage: it does not end when asked
    sluice.process.send_signal(signal.SIGINT)
    assert sluice.process.wait(STOP_SECONDS) == 0, sluice.output.read_text()
    assert re.findall(r"(\S+) did not stop and was killed", sluice.output.read_text()) == ["spark"]
    assert [each.pid for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []

    started = time.monotonic()
    sluice.__enter__()
    assert time.monotonic() - started < RESTART_SECONDS
    said = sluice.output.read_text()
    assert password not in said
    assert str(sluice.folder / "admin-password") in said
    assert sluice.password == password
    assert destinations(sluice)["queue://ActiveMQ.DLQ"]["QueueSize"] == before["queue://ActiveMQ.DLQ"]["QueueSize"]
    connection = connected(sluice)
    received = stomp.listener.TestListener(print_to_log=False)
    connection.set_listener("received", received)
    connection.subscribe("/queue/first.order", id="1")
    wait_until(lambda: received.message_list, "the message that was stored before", ANALYSIS_SECONDS)
    assert [body for _, body in received.message_list] == ["0"]
    connection.disconnect()
