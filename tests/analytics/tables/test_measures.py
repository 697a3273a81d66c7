"""Hourly rows are the same however the events are read, and a damaged file is reported as such."""

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.archive.data_files import read_parts
from analytics.requests.request import TimeWindow
from analytics.spark.event_counts import slots_of
from analytics.tables.builder import UnreadableSource
from analytics.tables.definitions import CLIENTS, ROUTES, TABLES, TRAFFIC
from analytics.tables.measures import COLUMNS, count_messages, rows_of_hours
from analytics.tables.merging import merge
from benchmarks.analytics import traffic
from brokerapp.tracing.arrow_schema import MOMENT


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "archive"
    traffic.generate(folder, 20_000)
    return sorted((folder / f"broker={traffic.BROKER}").rglob("*.parquet"))


def counted(paths, events):
    found = rows_of_hours(lambda: read_parts(paths, events, COLUMNS), traffic.BROKER)
    return {name: sorted(rows.to_pylist(), key=repr) for name, rows in found.items()}


def test_events_in_parts_are_counted_like_all_at_once(paths):
    whole = counted(paths, 1_000_000)
    assert all(whole[name] for name in TABLES)
    assert counted(paths, 1) == whole


def test_files_without_dictionaries_and_weights_are_counted_alike(paths, tmp_path):
    plain = []
    for number, path in enumerate(paths):
        events = pq.read_table(path, partitioning=None).drop_columns(["weight"])
        plain.append(tmp_path / f"part-{number}-0.parquet")
        pq.write_table(events, plain[-1], store_schema=False)
    assert counted(plain, 1_000_000) == counted(paths, 1_000_000)


@pytest.mark.parametrize("table", [TRAFFIC, CLIENTS, ROUTES], ids=lambda each: each.name)
@pytest.mark.parametrize("part", [700, 1_000_000])
def test_messages_of_raw_events_are_counted_as_in_the_hourly_rows(paths, table, part):
    """By a way of its own, which reads what it needs only: analyses of raw events take it."""
    everything = [TimeWindow(0, 2**62)]
    rows = [
        count_messages(table, events, slots_of(events, 3600, everything))
        for events in read_parts(paths, part, ("ts", *table.keys, "size", "weight"))
    ]
    assert len(rows) > 1 or part > 700
    merged = merge(table, pa.concat_tables(rows))
    assert sorted(merged.to_pylist(), key=repr) == counted(paths, 1_000_000)[table.name]


def test_a_slot_begins_no_earlier_than_the_time_range_in_which_an_event_is():
    """A comparison of weeks tells by it to which week an event belongs."""
    windows = [TimeWindow(3_000_000, 9_000_000), TimeWindow(25_000_000, 40_000_000)]
    at = [3_000_000, 8_999_999, 25_000_001, 29_999_999, 30_000_000]
    events = pa.table({"ts": pa.array(at, pa.int64()).cast(MOMENT)})
    assert slots_of(events, 10, windows).tolist() == [3_000_000, 3_000_000, 25_000_000, 25_000_000, 30_000_000]
    assert slots_of(events.slice(4), 10, windows).tolist() == [30_000_000]
    assert slots_of(events.slice(5), 10, windows).tolist() == []


def test_hours_without_events_have_no_rows():
    assert rows_of_hours(lambda: [], traffic.BROKER) == {
        name: each.schema.empty_table() for name, each in TABLES.items()
    }


@pytest.mark.spark
def test_a_damaged_file_is_an_unreadable_source(spark, tmp_path):
    from analytics.spark.tables.rows import spark_rows

    damaged = tmp_path / "part-1-0.parquet"
    damaged.write_bytes(b"PAR1 and nothing else")
    hour = SimpleNamespace(rows=1, paths=[damaged])
    with pytest.raises(UnreadableSource):
        spark_rows(spark, lambda frame: frame.toArrow())(SimpleNamespace(broker="sluice"), [hour])
