"""Hourly rows are the same however the events are read, and a damaged file is reported as such."""

from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from analytics.archive.data_files import read_parts
from analytics.tables.builder import UnreadableSource
from analytics.tables.definitions import TABLES
from analytics.tables.measures import COLUMNS, rows_of_hours
from benchmarks.analytics import traffic


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
