"""Test charts and depths of past days from the rollups, without reading events."""

import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.urls import reverse

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.data_files import ARCHIVED
from analytics.rollups.counters import COUNTED, NUMBERS, CounterCell, DepthNote, EventCounts
from analytics.rollups.store import DAY, HOUR, MINUTE, NAME, RollupStore, open_database
from brokerapp.model.destination import Destination
from console.metrics import rollup_history
from console.metrics.charts_history import ChartWindow
from console.metrics.views.depths import DepthsMoment

NOW = 1_760_004_000
A, B = "queue://past.a", "queue://past.b"


def cell(**numbers: int) -> CounterCell:
    return CounterCell(
        [numbers.get(name, 0) for name in NUMBERS], {160: numbers.get("ack", 0)} if "ack" in numbers else {}
    )


@pytest.fixture
def rollups(settings, tmp_path, monkeypatch):
    """Those of an installation that has them, for a test to fill."""
    folder = BrokerArchive(tmp_path, settings.SLUICE.broker_name).folder
    folder.mkdir()
    monkeypatch.setattr(rollup_history, "rollups", lambda: rollup_history.RollupQueries(folder))
    made = RollupStore(folder)
    yield made
    made.close()


def fill(rollups: RollupStore, now: float) -> None:
    """An hour of traffic five days ago, and depths then and three hours ago."""
    start = int(now) // HOUR * HOUR - 5 * DAY
    cells = {(A, "", start // MINUTE): cell(enqueue=3600, forward=3600), (A, "c1", start // MINUTE): cell(ack=1800)}
    depths = [DepthNote((start + 60) * 1_000_000, A, 1800, "all"), DepthNote((start + 60) * 1_000_000, B, 7, "all")]
    late = int(now) // HOUR * HOUR - 3 * HOUR
    depths += [DepthNote(late * 1_000_000, A, 12, "all")]
    rollups.add([EventCounts(cells, depths)], 1)


# -- without a page


@pytest.mark.parametrize(("name", "step"), [("7d", HOUR), ("30d", HOUR)])
def test_windows_of_days_are_told_by_rollups(name, step):
    window = ChartWindow.read({"window": name}, NOW)
    assert (window.is_rolled_up, window.resolution.step) == (True, step)
    chosen = ChartWindow.read({"from": str(NOW - 3 * DAY), "to": str(NOW - 2 * DAY)}, NOW)
    assert chosen.is_rolled_up
    assert not ChartWindow.read({"window": "24h"}, NOW).is_rolled_up


def test_a_chart_over_days_has_what_was_counted_and_gaps_where_nothing_was(rollups):
    fill(rollups, NOW)
    window = ChartWindow.read({"window": "7d"}, NOW)
    first, *rest = rollup_history.marks(rollup_history.rollups(), window, Destination.parse(A))
    assert first[1:] == [1800, 1.0, 0.5]
    assert [mark[1] for mark in rest] == [12]
    assert rollup_history.marks(rollup_history.rollups(), window, None)[0][1:] == [1807, 1.0, 0.5]
    assert [mark[1:] for mark in rollup_history.marks(rollup_history.rollups(), window, Destination.parse(B))] == [
        [7, 0, 0],
        [0, 0, 0],
    ]


def test_a_stretch_that_runs_still_is_told_as_far_as_it_came_and_never_in_the_future(rollups, monkeypatch):
    hour = NOW // HOUR * HOUR
    monkeypatch.setattr(rollup_history.time, "time", lambda: hour + 600.5)
    minutes = {(A, "", hour // MINUTE + each): cell(enqueue=60, forward=60) for each in range(11)}
    rollups.add([EventCounts(minutes | {(A, "", hour // MINUTE + 10): cell(enqueue=1, forward=1)}, [])], 1)
    days = ChartWindow.read({"window": "7d"}, hour + 600.5)
    assert [
        (mark[0], mark[2]) for mark in rollup_history.marks(rollup_history.rollups(), days, Destination.parse(A))
    ] == [((hour + 600) * 1000, 1.0)]
    day = ChartWindow.read({"window": "24h"}, hour + 600.5).rolled_up(hour + 600.5)
    marks = rollup_history.marks(rollup_history.rollups(), day, Destination.parse(A))
    assert [(mark[0], mark[2]) for mark in marks] == [((hour + 60 * each) * 1000, 1.0) for each in range(1, 11)]


def test_of_what_is_gone_nothing_is_drawn_after_the_last_that_happened(rollups):
    fill(rollups, NOW)
    later = {("queue://later", "", NOW // HOUR * 60 - 60): cell(enqueue=60, forward=60)}
    rollups.add([EventCounts(later, [])], 2)
    window = ChartWindow.read({"window": "7d"}, NOW)
    there = rollup_history.marks(rollup_history.rollups(), window, Destination.parse(B))
    assert [mark[1:] for mark in there] == [[7, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert rollup_history.marks(rollup_history.rollups(), window, Destination.parse(B), is_gone=True) == there[:2]


def test_who_sees_some_destinations_is_told_of_those_together(rollups):
    fill(rollups, NOW)
    window = ChartWindow.read({"window": "7d"}, NOW)
    [both, _] = rollup_history.summed_marks(
        rollup_history.rollups(), window, [Destination.parse(A), Destination.parse(B)]
    )
    assert both[1:] == [1807, 1.0, 0.5]
    assert rollup_history.summed_marks(rollup_history.rollups(), window, []) == []


def test_delays_are_of_all_consumers_and_of_each(rollups):
    fill(rollups, NOW)
    window = ChartWindow.read({"window": "7d"}, NOW)
    width = window.resolution.step
    found = rollup_history.delays(rollup_history.rollups(), window.start, window.end, width, Destination.parse(A))
    assert [(each.consumer, each.acked) for each in found] == [("", 1800), ("c1", 1800)]
    assert found[0].p50 == pytest.approx(2 ** (160 / 16) / 1000, rel=0.03)
    assert rollup_history.delays(rollup_history.rollups(), window.start, window.end, width, Destination.parse(B)) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("", ""), ("2025-10-09T08:00", ""), ("x", "not a date and time"), ("2025-10-10T08:00", "in the future"),
     ("2025-01-01T00:00", "31 days")],
)  # fmt: skip
def test_a_moment_is_read_from_the_url_or_said_to_be_none(text, wrong):
    moment = DepthsMoment.read(text, datetime.fromtimestamp(NOW, UTC))
    assert wrong in moment.wrong
    assert bool(moment.wrong) == bool(wrong)


def test_only_what_one_may_see_is_shown_the_deepest_first():
    noted = {A: 5, B: 9, "(others)": 3, "queue://secret": 99}
    rows = rollup_history.past_depths(noted, lambda _: 7, lambda destination: "secret" not in destination.name)
    assert [(str(row.destination), row.depth, row.change) for row in rows] == [(B, 9, "−2"), (A, 5, "+2")]


# -- pages


def test_the_page_of_a_past_moment_lists_depths_as_they_were(rollups, admin_client):
    now = time.time()
    fill(rollups, now)
    then = datetime.fromtimestamp(int(now) // HOUR * HOUR - 5 * DAY + 600, UTC)
    page = admin_client.get(reverse("depths"), {"at": f"{then:%Y-%m-%dT%H:%M}"}).content.decode()
    assert re.findall(r"past\.\W*(?:<wbr>)?([ab])", page)[:2] == ["a", "b"]
    assert "1,807 messages in 2 queues" in " ".join(page.split())
    before = admin_client.get(reverse("depths"), {"at": f"{then - timedelta(days=2):%Y-%m-%dT%H:%M}"}).content.decode()
    assert "No data" in before


def test_a_chart_of_thirty_days_comes_without_the_broker(rollups, admin_client):
    fill(rollups, time.time())
    chart = admin_client.get(reverse("chart"), {"window": "30d"}).json()
    assert chart["seconds"] == 30 * DAY
    assert any(mark[1] == 1807 for mark in chart["marks"])


#: What a month of a larger installation has, and the CPU seconds that a chart over days may take: it does not wait for
#: anything, so that this is what a browser waits on a machine that has nothing else to do.
QUEUES, CONSUMERS, DAYS = 300, 1, 30
AT_MOST = 0.3


@pytest.fixture(scope="module")
def month(tmp_path_factory) -> rollup_history.RollupQueries:
    """Rollups of a month: each hour some traffic at each queue, with delays, and what waited."""
    folder = BrokerArchive(tmp_path_factory.mktemp("month"), "sluice").folder
    folder.mkdir()
    rollups = RollupStore(folder)
    last, names = int(time.time()) // HOUR * HOUR, [f"queue://past.{number}" for number in range(QUEUES)]
    of_all = [(name, consumer) for name in names for consumer in ["", *(f"c{n}" for n in range(CONSUMERS))]]
    depths = [DepthNote(last * 1_000_000, name, 1 + number, "all") for number, name in enumerate(names)]
    cells = {(*each, last // MINUTE): cell(enqueue=3600, forward=3600, ack=1800) for each in of_all}
    rollups.add([EventCounts(cells, depths)], 1)
    rollups.close()
    with closing(open_database(folder / NAME)) as db, db:
        columns = ", ".join(
            f'"{row[1]}"' for row in db.execute("PRAGMA table_info(cell)") if row[1] not in ("width", "start")
        )
        earlier = f"SELECT width, start - ago, {columns} FROM cell JOIN back WHERE width = {HOUR}"
        back = f"VALUES ({HOUR}) UNION ALL SELECT ago + {HOUR} FROM back WHERE ago < {DAYS * DAY}"
        db.execute(f"INSERT INTO cell WITH RECURSIVE back(ago) AS ({back}) {earlier}")
    return rollup_history.RollupQueries(folder)


def cpu_seconds(ask: Callable[[], object]) -> float:
    """CPU of this process, in the best of three times."""
    best = []
    for _ in range(3):
        began = time.process_time()
        assert ask()
        best.append(time.process_time() - began)
    return min(best)


def test_charts_and_depths_of_a_month_of_many_queues_take_less_than_a_third_of_a_second(
    month, monkeypatch, admin_client
):
    monkeypatch.setattr(rollup_history, "rollups", lambda: month)
    now, queue = int(time.time()), Destination.parse("queue://past.7")
    window = ChartWindow.read({"window": "30d"}, now)
    some = [Destination.parse(f"queue://past.{number}") for number in range(rollup_history.MOST_TOGETHER)]
    then = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M}"
    asked = {
        "the chart of a month": lambda: admin_client.get(reverse("chart"), {"window": "30d"}).json()["marks"],
        "the chart of a week": lambda: admin_client.get(reverse("chart"), {"window": "7d"}).json()["marks"],
        "the chart of a queue": lambda: rollup_history.marks(month, window, queue),
        "of what one may see": lambda: rollup_history.summed_marks(month, window, some),
        "delays": lambda: rollup_history.delays(month, window.start, window.end, HOUR, queue),
        "depths": lambda: b"300 queues" in admin_client.get(reverse("depths"), {"at": then}).content,
    }
    took = {name: cpu_seconds(ask) for name, ask in asked.items()}
    assert max(took.values()) < AT_MOST, took
    assert len(rollup_history.marks(month, window, None)) >= DAYS * 24


def test_numbers_are_those_that_are_counted():
    assert NUMBERS[: len(COUNTED)] == COUNTED
    assert settings.SLUICE.archive_days == 31


def test_batches_that_were_lost_and_an_archiver_that_is_away_are_shown(settings, tmp_path, admin_client):
    settings.SLUICE = replace(settings.SLUICE, data=tmp_path)
    archive = BrokerArchive(settings.SLUICE.archive, settings.SLUICE.broker_name)
    assert "recorded batches" not in admin_client.get(reverse("analyses")).content.decode()
    archive.append(ARCHIVED.empty_table(), ArchiveCommit("5-0", events=1234, lost_batches=7))
    archive.write_freshness(int(time.time() - 600) * 1_000_000)
    page = admin_client.get(reverse("analyses")).content.decode()
    assert "1,234 archived events" in " ".join(page.split())
    assert "7 recorded batches are missing from the archive" in " ".join(page.split())
    assert "The archive ends at" in page
