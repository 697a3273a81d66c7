"""Tables, raw events and rollups of the same traffic have the same counts, and analyses find the same in them."""

from importlib import import_module

import pyarrow.compute as pc
import pytest

from analytics.archive.broker_archive import BrokerArchive
from analytics.requests.catalogue import ANALYSES
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.rollups.counters import count_events
from analytics.tables.builder import TableBuilder
from analytics.tables.catalog import TableCatalog
from analytics.tables.definitions import DAY_US, HOUR_US, TABLES
from analytics.tables.storage import FolderStorage
from benchmarks.analytics import traffic

# One analysis of tables that were built is in test_current_hours.py, and not long.
pytestmark = [pytest.mark.spark, pytest.mark.long]
EVENTS = 20_000
BEGIN, END = traffic.START_US, traffic.START_US + 170 * traffic.MINUTE_US
#: Time ranges of which hours, and days, are read from tables; they begin and end within an hour.
HOURLY = TimeWindow(BEGIN - 8 * DAY_US + 1234, END)
DAILY = TimeWindow(BEGIN - 20 * DAY_US + 1234, END + 2 * DAY_US)
NOW_US = END + 3 * DAY_US


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "archive"
    traffic.generate(folder, EVENTS)
    return folder


@pytest.fixture(scope="module")
def storage(spark, archive):
    from analytics.spark.tables.rows import spark_rows

    storage = FolderStorage(archive.parent / "tables")
    rows_of = spark_rows(spark, lambda frame: frame.toArrow())
    for catalog in TableCatalog.all_of(storage, archive):
        result = TableBuilder(catalog, rows_of).build(NOW_US)
        assert result.is_done
        assert result.events
        assert not list(catalog.pending(NOW_US))
    return storage


def answer(spark, archive, kind, window, storage=None):
    """Run a job: its result and which levels it read."""
    from analytics.spark.event_frames import EventReader
    from analytics.tables.reader import TableReader

    reader = EventReader(spark, archive)
    tables = storage and TableReader(spark, storage, archive)
    question = RunQuestion(
        window, reader.events, {}, traffic.DEFINITIONS,
        began_us=window.since_us, tables=tables, count=reader.counts,
    )  # fmt: skip
    found = import_module(ANALYSES[kind].module).run(question, lambda _, frame: frame.toArrow())
    return found, tables and tables.levels


def rows_of(result):
    return {each.name: sorted(each.rows.to_pylist(), key=repr) for each in result.tables}


@pytest.mark.parametrize("kind", [kind for kind, each in ANALYSES.items() if each.reads_tables])
def test_an_analysis_of_tables_finds_what_one_of_events_finds(spark, archive, storage, kind):
    expected, _ = answer(spark, archive, kind, HOURLY if kind != "weeks" else TimeWindow(END - DAY_US, END))
    found, levels = answer(spark, archive, kind, HOURLY if kind != "weeks" else TimeWindow(END - DAY_US, END), storage)
    assert levels.hours
    assert found.sentence == expected.sentence
    assert found.headline == expected.headline
    assert rows_of(found) == rows_of(expected)
    assert found.charts == expected.charts
    assert found.rows_read == expected.rows_read > 100


@pytest.mark.parametrize("kind", ["traffic", "dead-letters"])
def test_an_analysis_of_daily_tables_finds_what_one_of_events_finds(spark, archive, storage, kind):
    expected, _ = answer(spark, archive, kind, DAILY)
    found, levels = answer(spark, archive, kind, DAILY, storage)
    assert len(levels.days) >= 9
    assert (found.sentence, rows_of(found), found.charts) == (expected.sentence, rows_of(expected), expected.charts)


def test_tables_and_rollups_count_alike(archive, storage):
    for catalog in TableCatalog.all_of(storage, archive):
        counted: dict[tuple[str, str], int] = {}
        latencies: dict[tuple[str, int], int] = {}
        for events in BrokerArchive(archive, catalog.broker).events_after(-1):
            for (destination, _, _), cell in count_events(events).cells.items():
                for kind in ("enqueue", "forward", "dispatch", "ack", "dead_letter", "drop", "expire", "redeliver"):
                    counted[destination, kind] = counted.get((destination, kind), 0) + cell[kind]
                for bucket, count in cell.latency.items():
                    latencies[destination, bucket] = latencies.get((destination, bucket), 0) + count
        builder = TableBuilder(catalog, None)
        stored: dict[tuple[str, str], int] = {}
        stored_latencies: dict[tuple[str, int], int] = {}
        for day_us in catalog.days():
            files = catalog.day(day_us).files["hourly"]
            for each in builder._read(day_us, files["traffic"]).to_pylist() if "traffic" in files else ():
                key = each["destination"], each["kind"]
                stored[key] = stored.get(key, 0) + each["messages"]
            for each in builder._read(day_us, files["latency"]).to_pylist() if "latency" in files else ():
                key = each["destination"], each["bucket"]
                stored_latencies[key] = stored_latencies.get(key, 0) + each["messages"]
        assert {key: count for key, count in counted.items() if count} == {
            key: count for key, count in stored.items() if key[1] in {kind for _, kind in counted}
        }
        assert stored_latencies == latencies


def test_files_have_the_columns_that_the_definitions_name(archive, storage):
    catalog = TableCatalog.all_of(storage, archive)[0]
    day_us = catalog.days()[0]
    for name, file in catalog.day(day_us).files["hourly"].items():
        rows = TableBuilder(catalog, None)._read(day_us, file)
        assert rows.schema.names == TABLES[name].schema.names
        hours = pc.unique(rows["slot"].cast("int64")).to_pylist()
        assert all(day_us <= each < day_us + DAY_US and each % HOUR_US == 0 for each in hours)
