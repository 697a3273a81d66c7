"""Test that all readers return the columns of docs/data.md, with the same names, types and values."""

import re
from datetime import date
from pathlib import Path

import pandas
import pyarrow.parquet as pq
import pytest
from recorded_traffic import BROKER

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US, data_files, hour_folders
from analytics.requests.request import TimeWindow
from benchmarks.analytics import duckdb_queries
from tests.analytics.archive.test_archiver import EVENTS_A_MESSAGE, START_US, flush, record

DOCUMENT = Path(__file__).parents[3] / "docs/data.md"
WINDOW = TimeWindow(START_US, START_US + HOUR_US)
FROM_PATH = {"broker": BROKER, "day": date(2025, 10, 9), "hour": 9}


@pytest.fixture
def archive(tmp_path) -> BrokerArchive:
    return BrokerArchive(tmp_path / "archive", BROKER)


def last_place(archive: BrokerArchive) -> int:
    """The place of the newest event that is archived."""
    return max(file.last for hour in hour_folders(archive.folder) for file in data_files(hour))


def without_entries(archive: BrokerArchive) -> None:
    """Write each file again as the first versions wrote it, without the column `entry`."""
    for path in archive.folder.rglob("part-*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns("entry"), path)
    for path in archive.folder.rglob("_manifests"):
        for each in path.iterdir():
            each.unlink()
        path.rmdir()


def test_the_documentation_lists_every_column_with_its_type_and_meaning():
    from analytics.archive.event_columns import COLUMNS

    text = DOCUMENT.read_text().partition("\n## Columns\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", text.partition("\n| kind |")[0], re.MULTILINE)
    assert rows == [(each.name, each.type_in_words, each.meaning) for each in COLUMNS]


def test_the_columns_of_files_and_paths_are_the_documented_ones():
    from analytics.archive.data_files import ARCHIVED
    from analytics.archive.event_columns import COLUMNS

    assert [each.name for each in COLUMNS] == [*ARCHIVED.names, *FROM_PATH]


def test_duckdb_finds_the_columns_with_their_types(archive, store, store_url):
    from analytics.archive.event_columns import COLUMNS

    record(store, 0, 1)
    flush(store_url, archive)
    found = duckdb_queries.connect(archive.folder.parent, WINDOW).sql("DESCRIBE events").fetchall()
    assert {row[0]: row[1] for row in found} == {each.name: each.duckdb for each in COLUMNS}
    rows = (
        duckdb_queries.connect(archive.folder.parent, WINDOW)
        .sql("SELECT DISTINCT broker, day, hour FROM events")
        .fetchall()
    )
    assert rows == [tuple(FROM_PATH.values())]


def test_the_name_of_a_broker_stays_a_text_where_it_looks_like_a_number(tmp_path, store, store_url, archive):
    record(store, 0, 1)
    flush(store_url, archive)
    archive.folder.rename(archive.folder.with_name("broker=7"))
    found = duckdb_queries.connect(archive.folder.parent, WINDOW).sql("SELECT DISTINCT broker FROM events").fetchall()
    assert found == [("7",)]


def test_pandas_finds_the_hour_as_a_number(archive, store, store_url):
    record(store, 0, 1)
    flush(store_url, archive)
    assert set(pandas.read_parquet(archive.folder)["hour"]) == {9}


@pytest.fixture
def session(spark):
    from analytics.spark.data_source import SluiceSource

    spark.dataSource.register(SluiceSource)
    return spark


@pytest.fixture
def source(session, archive, store_url):
    """All events by the data source `sluice`."""
    options = {"archive": str(archive.folder.parent), "redis": store_url, "broker": BROKER}
    return lambda: session.read.format("sluice").options(**options).load()


@pytest.mark.long
@pytest.mark.spark
def test_the_spark_source_and_analyses_find_the_same_columns_and_values(
    spark, source, archive, store, store_url, tmp_path
):
    from analytics.archive.event_columns import COLUMNS
    from analytics.spark.event_frames import read_events

    record(store, 0, 2)
    flush(store_url, archive)
    record(store, 2, 1)  # not archived yet
    analysed = read_events(spark, archive.folder.parent, WINDOW, unarchived=(store_url, BROKER))
    tables = [frame.orderBy("entry", "ts", "kind", "destination").toArrow() for frame in (source(), analysed)]
    rows, others = (table.to_pylist() for table in tables)
    assert rows == others
    assert [table.schema.names for table in tables] == [[each.name for each in COLUMNS]] * 2
    assert len(rows) == 3 * EVENTS_A_MESSAGE
    assert all(row["entry"] <= last_place(archive) for row in rows[: 2 * EVENTS_A_MESSAGE])
    assert all(row["entry"] > last_place(archive) for row in rows[2 * EVENTS_A_MESSAGE :])
    assert [{name: row[name] for name in FROM_PATH} for row in rows] == [FROM_PATH] * len(rows)


@pytest.mark.spark
def test_files_from_before_there_was_an_entry_are_read(spark, source, archive, store, store_url):
    """The data source gives their events the place of the last one in the file, Spark's own reader none."""
    from analytics.spark.event_frames import read_events

    record(store, 0, 1)
    flush(store_url, archive)
    without_entries(archive)
    record(store, 1, 1, start_us=START_US + 1000)
    flush(store_url, archive)
    old, new = sorted(file.last for hour in hour_folders(archive.folder) for file in data_files(hour))
    found = dict(source().groupBy("entry").count().collect())
    assert found == {old: EVENTS_A_MESSAGE, new: EVENTS_A_MESSAGE}
    read = read_events(spark, archive.folder.parent, WINDOW)
    assert dict(read.groupBy("entry").count().collect()) == {None: EVENTS_A_MESSAGE, new: EVENTS_A_MESSAGE}


@pytest.mark.spark
def test_a_query_reads_no_column_that_it_does_not_ask_for(spark, archive, store, store_url, capsys):
    from analytics.spark.event_frames import read_events

    record(store, 0, 1)
    flush(store_url, archive)
    read = read_events(spark, archive.folder.parent, WINDOW)
    read.groupBy("kind", "hour").count().explain()
    assert re.findall(r"ReadSchema: (struct<.*>)", capsys.readouterr().out) == ["struct<kind:string>"]
