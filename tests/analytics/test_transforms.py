"""Transforms on a session of the test's own, compared with DuckDB on the same files."""

from datetime import UTC, datetime
from functools import partial

import duckdb
import generated_events
import pyarrow as pa
import pytest
from generated_events import CONSUMER_QUEUES, QUEUES, TOPIC, WINDOW

from analytics.question import Question
from analytics.request import Window

pytestmark = pytest.mark.spark
MESSAGES = 6000


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    generated_events.write(folder, MESSAGES)
    return folder


@pytest.fixture(scope="module")
def events(spark, archive):
    from analytics.events import read_events

    return read_events(spark, archive, WINDOW).cache()


@pytest.fixture(scope="module")
def oracle(archive):
    """The same window as DuckDB sees it."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        f"CREATE VIEW events AS FROM read_parquet('{archive}/**/*.parquet', hive_partitioning = true) "
        f"WHERE epoch_us(ts) >= {WINDOW.since_us} AND epoch_us(ts) < {WINDOW.until_us}"
    )
    return connection


def test_a_window_reads_the_events_in_it_and_no_others(events, oracle):
    counted = dict(events.groupBy("kind").count().collect())
    assert counted == dict(oracle.sql("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())
    assert sum(counted.values()) > MESSAGES


def test_events_have_the_columns_that_were_recorded(events, oracle):
    query = "SELECT msg_id, destination, size, epoch_us(born), ps['region'], pn['n'], broker FROM events"
    expected = oracle.sql(f"{query} WHERE kind = 'enqueue' ORDER BY msg_id LIMIT 50").fetchall()
    names = ["msg_id", "destination", "size", "unix_micros(born)", "ps['region']", "pn['n']", "broker"]
    found = events.where("kind = 'enqueue'").selectExpr(*names).orderBy("msg_id").limit(50)
    assert [tuple(row) for row in found.collect()] == expected


@pytest.mark.parametrize("bucket", [60, 600])
def test_traffic_by_destination_and_minute_is_what_duckdb_counts(bucket, events, oracle):
    from analytics.schemas import TRAFFIC
    from analytics.transforms.traffic import traffic

    frame = traffic(events, bucket)
    assert [(field.name, field.dataType) for field in frame.schema] == [
        (field.name, field.dataType) for field in TRAFFIC
    ]
    expected = oracle.sql(
        f"""SELECT destination, time_bucket(INTERVAL {bucket} SECONDS, ts) AS minute,
            greatest(count(*) FILTER (kind = 'enqueue'), count(*) FILTER (kind = 'forward')) AS arrived,
            count(*) FILTER (kind = 'dispatch') AS dispatched, count(*) FILTER (kind = 'ack') AS acked,
            greatest(coalesce(sum(size) FILTER (kind = 'enqueue'), 0),
                     coalesce(sum(size) FILTER (kind = 'forward'), 0))::BIGINT AS bytes,
            count(*) AS events
            FROM events GROUP BY ALL"""
    ).fetchall()
    found = [tuple(row.values()) for row in frame.toArrow().to_pylist()]
    assert sorted(found) == sorted(expected)
    assert {row[0] for row in found} == {TOPIC, *CONSUMER_QUEUES, *QUEUES}


def test_percentiles_of_latency_are_within_their_error_of_the_exact_ones(events, oracle):
    from analytics.schemas import LATENCY
    from analytics.transforms.latency import ERROR, PERCENTILES, latency

    frame = latency(events)
    assert [(field.name, field.dataType) for field in frame.schema] == [
        (field.name, field.dataType) for field in LATENCY
    ]
    found = {row["destination"]: row for row in frame.toArrow().to_pylist()}
    assert set(found) == {*CONSUMER_QUEUES, *QUEUES}
    for destination, row in found.items():
        [(acked, *exact)] = oracle.execute(
            "SELECT count(*), quantile_disc(us, 0.50), quantile_disc(us, 0.95), quantile_disc(us, 0.99) FROM "
            "(SELECT epoch_us(ts) - epoch_us(born) AS us FROM events WHERE kind = 'ack' AND destination = ?)",
            [destination],
        ).fetchall()
        assert row["acked"] == acked
        for name, value in zip(PERCENTILES, exact, strict=True):
            assert row[name] == pytest.approx(value, rel=ERROR + 1e-9), (destination, name)


def test_one_latency_of_one_message_is_all_percentiles(spark):
    from analytics.transforms.latency import ERROR, latency

    moment = datetime(2025, 1, 1, tzinfo=UTC)
    row = {"kind": "ack", "destination": "queue://a", "born": moment, "ts": moment.replace(microsecond=1000)}
    early = {**row, "destination": "queue://b", "ts": moment.replace(year=2024)}  # the clock was set back
    kinds = pa.schema(
        [("kind", pa.string()), ("destination", pa.string()), *((n, pa.timestamp("us", "UTC")) for n in ("born", "ts"))]
    )
    found = latency(spark.createDataFrame(pa.Table.from_pylist([row, early], kinds))).toArrow().to_pylist()
    by_destination = {each.pop("destination"): each for each in found}
    assert by_destination["queue://a"]["p99_us"] == pytest.approx(1000, rel=ERROR)
    assert by_destination["queue://b"]["p50_us"] == pytest.approx(1, rel=ERROR)


def test_the_job_says_charts_and_lists_what_the_transforms_found(events):
    from analytics.jobs import traffic as job

    steps = []

    def collect(title, frame):
        steps.append(title)
        return frame.toArrow()

    findings = job.run(Question(WINDOW, lambda *_: events), collect)
    assert len(steps) == job.STEPS
    assert findings.rows_read == events.count()
    assert "5 destinations" in findings.sentence
    assert [title for title, _ in findings.charts] == [
        "Arrived", "Acknowledged", "Time from the broker to the ack",
    ]  # fmt: skip
    totals, latencies, by_time = findings.tables
    arrived = {row["destination"]: row["arrived"] for row in totals.rows.to_pylist()}
    assert {trace["name"]: sum(trace["y"]) for trace in findings.charts[0][1]["data"]} == arrived
    assert latencies.rows.num_rows == 4
    assert sum(by_time.rows["arrived"].to_pylist()) == sum(arrived.values())


def test_the_job_says_so_when_nothing_was_recorded(spark, archive):
    from analytics.events import read_events
    from analytics.jobs import traffic as job

    question = Question(Window(0, 60_000_000), partial(read_events, spark, archive))
    findings = job.run(question, lambda _, frame: frame.toArrow())
    assert (findings.sentence, findings.rows_read) == ("Nothing was recorded in this window.", 0)


def test_an_archive_without_files_reads_as_nothing(spark, tmp_path):
    from analytics.events import read_events

    assert read_events(spark, tmp_path, WINDOW).count() == 0
