"""Test that files and batches of earlier schema versions are read together with current ones."""

from datetime import UTC, datetime

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_traffic import BROKER, message

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.requests.request import TimeWindow
from brokerapp.tracing.arrow_schema import SCHEMA, current
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.depths import DepthRecorder
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, VERSION, VERSION_KEY

HOUR_US = 3_600_000_000
START_US = 1_760_000_400_000_000 // HOUR_US * HOUR_US
QUEUE = "queue://a"
#: What files had in version 1.
VERSION_1 = pa.schema([field for field in SCHEMA if field.name != "weight"], metadata={VERSION_KEY: b"1"})


def of_version_2() -> pa.Table:
    """Its columns are those of version 3, which knows one reason more."""
    recorder = TraceRecorder(BROKER)
    DepthRecorder(recorder).record(START_US, {QUEUE: 7})
    recorder.record_enqueue(START_US + 10, [message(2, START_US + 10, region="eu")], QUEUE)
    return decode(recorder.take_encoded()[0]).replace_schema_metadata({VERSION_KEY: b"2"})


def of_version_1() -> pa.Table:
    recorder = TraceRecorder(BROKER)
    recorder.record_one(ACK, START_US + 5, message(1, START_US), QUEUE, QUEUE, "c1", None)
    return decode(recorder.take_encoded()[0]).drop_columns("weight").replace_schema_metadata(VERSION_1.metadata)


@pytest.fixture
def archive(tmp_path) -> BrokerArchive:
    """With a file of each version, in one hour, the oldest first."""
    archive = BrokerArchive(tmp_path, BROKER)
    folder = archive.folder / datetime.fromtimestamp(START_US / 1e6, UTC).strftime("day=%Y-%m-%d/hour=%H")
    folder.mkdir(parents=True)
    pq.write_table(of_version_1().drop_columns("broker"), folder / "part-1-0.parquet")
    archive.append(of_version_2(), ArchiveCommit("2-0", schema=VERSION))
    return archive


def test_duckdb_and_pandas_read_both(archive):
    rows = duckdb.sql(
        f"SELECT kind, size, coalesce(weight, 1) FROM read_parquet('{archive.folder}/**/*.parquet', "
        "hive_partitioning = true, union_by_name = true) ORDER BY ts"
    ).fetchall()
    assert rows == [("depth", 7, 1), ("ack", 10, 1), ("enqueue", 10, 1)]
    assert set(pandas.read_parquet(archive.folder)["kind"]) == {"depth", "ack", "enqueue"}


@pytest.mark.spark
def test_analyses_read_both(spark, archive, tmp_path):
    from analytics.spark.event_frames import read_events

    events = read_events(spark, tmp_path, TimeWindow(START_US, START_US + HOUR_US)).orderBy("ts")
    rows = [(row["kind"], row["size"], row["weight"], row["reason"]) for row in events.toArrow().to_pylist()]
    assert rows == [("depth", 7, 1, "all"), ("ack", 10, 1, None), ("enqueue", 10, 1, None)]


def test_a_batch_of_version_1_becomes_one_of_this_version():
    table = current(of_version_1())
    assert table.schema.equals(SCHEMA)
    assert table["weight"].to_pylist() == [1]


def test_what_are_no_events_of_any_version_is_refused():
    with pytest.raises(pa.ArrowInvalid, match="no column msg_id"):
        current(of_version_1().drop_columns("msg_id"))
