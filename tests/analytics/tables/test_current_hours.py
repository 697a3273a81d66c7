"""Rows counted from the stream as events come equal those of a build, and analyses find the same in them."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.stream_ids import position_of
from analytics.requests.request import TimeWindow
from analytics.tables.builder import TableBuilder
from analytics.tables.catalog import TableCatalog
from analytics.tables.current_hours import (
    CurrentHours,
    empty_rows,
    merge_counts,
    read_current_hours,
    write_current_hours,
)
from analytics.tables.definitions import DAY_US, HOUR_US, TABLES
from analytics.tables.storage import FolderStorage
from benchmarks.analytics import traffic
from tests.analytics.tables.test_tables_and_events import answer, rows_of

pytestmark = pytest.mark.spark
EVENTS = 12_000
BEGIN, END = traffic.START_US, traffic.START_US + 170 * traffic.MINUTE_US
#: Appends of the archiver; batches of the query end with some of them, in hours and between.
APPENDS, BATCHES = 12, (5, 9)
HOURS = {BEGIN, BEGIN + HOUR_US, BEGIN + 2 * HOUR_US}
WEEKS = TimeWindow(BEGIN - 8 * DAY_US + 1234, END)


def arrow(frame):
    return frame.toArrow()


def offset_of(number: int) -> str:
    """The last entry of an append: it is written when its events have happened."""
    return f"{(BEGIN + (number + 1) * 3 * HOUR_US // APPENDS) // 1000}-0"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Generated traffic of three hours, appended as it happens, after that of a week before."""
    made = tmp_path_factory.mktemp("made") / "archive"
    traffic.generate(made, EVENTS)
    generated = BrokerArchive(made, traffic.BROKER)
    events = pa.concat_tables(generated.events_after(-1)).drop_columns(["entry"]).sort_by("ts")
    at = events["ts"].cast(pa.int64())
    archive = BrokerArchive(tmp_path_factory.mktemp("recorded") / "archive", traffic.BROKER)
    archive.append(events.filter(pc.less(at, BEGIN)), ArchiveCommit(f"{(BEGIN - DAY_US) // 1000}-0"))
    for number in range(APPENDS):
        since, until = (BEGIN + each * 3 * HOUR_US // APPENDS for each in (number, number + 1))
        of_append = events.filter(pc.and_(pc.greater_equal(at, since), pc.less(at, until)))
        archive.append(of_append, ArchiveCommit(offset_of(number)))
    return archive


def catalog_of(archive, folder):
    return TableCatalog(FolderStorage(folder), archive)


def count_up_to(spark, catalog, writer, number):
    """Count a batch of the query that ends with an append, and begins with the first one."""
    from analytics.spark.event_frames import read_events
    from analytics.spark.tables.stream import BatchCounter

    archive = catalog.archive.folder.parent
    events = read_events(spark, archive, TimeWindow(BEGIN, END + HOUR_US))
    counter = BatchCounter(archive.parent / "tables", archive, catalog.broker, writer, arrow)
    counter(events.where(events.entry <= position_of(offset_of(number))), 0)


@pytest.fixture(scope="module")
def counted(spark, archive):
    """The rows after each batch: all but the last two appends are counted."""
    catalog = catalog_of(archive, archive.folder.parents[1] / "tables")
    write_current_hours(catalog, CurrentHours(position_of(f"{BEGIN // 1000 - 60_000}-0"), BEGIN, "query"))
    found = []
    for number in BATCHES:
        count_up_to(spark, catalog, "query", number)
        found.append(read_current_hours(catalog))
    return found


def built(spark, archive, until):
    """The rows of a build from the events of some appends."""
    from analytics.spark.event_frames import read_events
    from analytics.tables.measures import COLUMNS, rows_of_hours

    events = read_events(spark, archive.folder.parent, TimeWindow(BEGIN, END + HOUR_US))
    rows = arrow(events.where(events.entry <= position_of(offset_of(until))).select(*COLUMNS))
    return rows_of_hours(lambda: [rows], traffic.BROKER)


@pytest.mark.parametrize("batch", [0, 1])
def test_rows_counted_in_batches_equal_the_rows_of_a_build_from_the_same_events(spark, archive, counted, batch):
    current, expected = counted[batch], built(spark, archive, BATCHES[batch])
    assert sum(each.num_rows for each in expected.values()) > 300
    for name in TABLES:
        rows = current.table_rows(name, current.starts).to_pylist()
        assert sorted(rows, key=repr) == sorted(expected[name].to_pylist(), key=repr), name


def test_the_rows_say_up_to_which_entry_and_event_they_count(archive, counted):
    last = counted[-1]
    newest = pc.max(pa.concat_tables(archive.events_after(-1))["ts"].cast(pa.int64())).as_py()
    assert last.position == position_of(offset_of(BATCHES[-1]))
    assert BEGIN < last.newest_us < newest
    assert last.starts == HOURS
    assert [last.is_whole(each) for each in sorted(last.starts)] == [True, True, False]


def test_a_batch_that_comes_again_is_not_counted_again(spark, archive, counted):
    catalog = catalog_of(archive, archive.folder.parents[1] / "tables")
    count_up_to(spark, catalog, "query", BATCHES[-1])
    assert read_current_hours(catalog) == counted[-1]


def test_a_query_that_was_replaced_stops_before_it_counts(spark, archive, counted):
    from analytics.spark.tables.stream import StreamReplaced

    catalog = catalog_of(archive, archive.folder.parents[1] / "tables")
    with pytest.raises(StreamReplaced):
        count_up_to(spark, catalog, "earlier query", APPENDS)
    assert read_current_hours(catalog) == counted[-1]


@pytest.mark.parametrize(
    "kind", ["traffic", *(pytest.param(each, marks=pytest.mark.long) for each in ("dead-letters", "depth"))]
)
def test_an_analysis_of_current_hours_finds_what_one_of_events_finds(spark, archive, counted, kind):
    folder, tables = archive.folder.parent, archive.folder.parents[1] / "tables"
    expected, _ = answer(spark, folder, kind, WEEKS)
    found, levels = answer(spark, folder, kind, WEEKS, FolderStorage(tables))
    assert levels.hours & HOURS == (HOURS if kind != "depth" else {BEGIN, BEGIN + HOUR_US})
    ours, theirs = rows_of(found), rows_of(expected)
    # The last hour is read from its rows and from events, and each has a newest message of a cause.
    assert len(ours.pop("examples", ())) == len(theirs.pop("examples", ()))
    assert (found.sentence, ours, found.charts) == (expected.sentence, theirs, expected.charts)


def test_rows_that_are_newer_than_the_end_of_a_time_range_are_not_read(spark, archive, counted):
    folder, tables = archive.folder.parent, archive.folder.parents[1] / "tables"
    early = TimeWindow(WEEKS.since_us, counted[-1].newest_us)
    expected, _ = answer(spark, folder, "traffic", early)
    found, levels = answer(spark, folder, "traffic", early, FolderStorage(tables))
    assert levels.hours & HOURS == {BEGIN, BEGIN + HOUR_US}
    assert rows_of(found) == rows_of(expected)


@pytest.mark.long
def test_hours_that_a_build_has_computed_are_no_longer_current(spark, archive, counted, tmp_path):
    from analytics.spark.tables.rows import spark_rows

    catalog = catalog_of(archive, tmp_path / "tables")
    archive.write_freshness(END + DAY_US)
    write_current_hours(catalog, counted[-1])
    rows = spark_rows(spark, arrow)
    TableBuilder(catalog, rows).build(BEGIN + HOUR_US + 15 * 60_000_000, BEGIN - HOUR_US)
    left = read_current_hours(catalog).without_closed(catalog)
    assert left.starts == {BEGIN + HOUR_US, BEGIN + 2 * HOUR_US}
    for kind in ("traffic", "depth"):
        expected, _ = answer(spark, archive.folder.parent, kind, WEEKS)
        found, _ = answer(spark, archive.folder.parent, kind, WEEKS, catalog.storage)
        assert rows_of(found) == rows_of(expected), "an hour with rows of both is read once"


def test_rows_of_no_events_change_nothing(counted):
    last = counted[-1]
    assert merge_counts(last.rows, empty_rows()) == last.rows
    assert merge_counts(empty_rows(), last.rows) == last.rows


def test_rows_whose_next_events_are_too_old_or_were_removed_are_not_continued(counted):
    from analytics.spark.tables.stream import CATCH_UP_US, resumed

    last, soon = counted[-1], END + HOUR_US
    assert resumed(last, soon) == last
    for late in (resumed(last, soon + CATCH_UP_US + DAY_US), resumed(last, soon, last.position + 1)):
        assert (late.starts, late.since_us % HOUR_US) == (set(), 0)
        assert late.position < position_of(f"{late.since_us // 1000}-0")
