"""Test that the Spark source reads archive and stream as one table, in batches and as a stream, each event once."""

import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from recorded_traffic import BROKER

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US, hour_folders
from analytics.archive.housekeeping import ArchiveLimits, Housekeeping
from analytics.archive.retention import remove
from analytics.archive.stream_ids import id_of, position_of
from analytics.readers import stream_ranges
from analytics.readers.stream_ranges import DataLoss, TraceSource
from brokerapp.errors import RequestRefused
from brokerapp.store.client.keys import trace_key
from tests.analytics.archive.test_archiver import EVENTS_A_MESSAGE, START_US, expected, flush, record

LATER_US = START_US + 10 * HOUR_US


@pytest.fixture
def archive(tmp_path) -> BrokerArchive:
    return BrokerArchive(tmp_path / "archive", BROKER)


@pytest.fixture
def source(archive, store, store_url) -> TraceSource:
    return TraceSource(archive.folder.parent, store_url, BROKER)


def counted(rows) -> Counter:
    return Counter((row["msg_id"], row["kind"], row["destination"]) for row in rows)


def read(source: TraceSource, after: int, upto: int) -> Counter:
    parts = stream_ranges.partitions_of(source, after, upto)
    return counted(row for part in parts for table in stream_ranges.read(source, part) for row in table.to_pylist())


def compact(archive: BrokerArchive) -> None:
    Housekeeping(archive, ArchiveLimits(), (), lambda _step: None).step(LATER_US)


# -- stretches, without Spark


def test_parts_that_were_cut_read_the_same_whatever_the_archiver_does_before_they_are_read(
    source, archive, store, store_url
):
    for number in range(4):
        record(store, number, 1)
        if number < 3:
            flush(store_url, archive)
    parts = stream_ranges.partitions_of(source, 0, stream_ranges.end_position(source))
    for change in (lambda: None, lambda: flush(store_url, archive), lambda: compact(archive)):
        change()
        rows = [row for part in parts for table in stream_ranges.read(source, part) for row in table.to_pylist()]
        assert counted(rows) == expected(range(4))
        record(store, 100, 1)  # what comes later is not theirs


def test_any_cut_of_the_stream_gives_each_event_once(source, archive, store, store_url):
    """Also through the middle of what was appended at once, and of what was compacted since."""
    for number in range(6):
        record(store, number, 1)
    places = [position_of(id.decode()) for id, _ in store.xrange(trace_key(BROKER))]
    flush(store_url, archive)
    record(store, 6, 1, start_us=START_US + 1)
    flush(store_url, archive)
    compact(archive)
    end = stream_ranges.end_position(source)
    assert end > places[-1]
    for number, place in enumerate(places):
        assert read(source, 0, place) == expected(range(number + 1))
        assert read(source, place, end) == expected(range(number + 1, 7))


def test_a_stretch_is_bounded_where_an_entry_ends(source, archive, store, store_url):
    for number in range(5):
        record(store, number, 1)
    end, places = stream_ranges.end_position(source), [0]
    while places[-1] < end:
        places.append(stream_ranges.position_after(source, places[-1], end, most=EVENTS_A_MESSAGE * 2))
    assert len(places) == 4
    flush(store_url, archive)
    assert stream_ranges.position_after(source, 0, end, most=1) == end  # a row group of a file is not cut


def test_only_hours_within_the_bounds_are_parts(source, store, store_url, archive):
    record(store, 0, 4, step_us=HOUR_US)
    flush(store_url, archive)
    bounded = replace(source, since_us=START_US + HOUR_US, until_us=START_US + 2 * HOUR_US)
    end = stream_ranges.end_position(source)
    assert [part.hour[-2:] for part in stream_ranges.partitions_of(bounded, 0, end)] == ["10"]
    assert read(bounded, 0, end) == expected([1])


def test_what_was_removed_is_missed_by_who_wants_to_read_on_there(source, store, store_url, archive):
    record(store, 0, 1)
    flush(store_url, archive)
    place = stream_ranges.end_position(source)
    record(store, 1, 2)
    flush(store_url, archive)
    remove(hour_folders(archive.folder)[0], archive.work)
    with pytest.raises(DataLoss, match="was removed"):
        stream_ranges.require_available(source, place)
    stream_ranges.require_available(source, 0)
    stream_ranges.require_available(source, stream_ranges.end_position(source))


def test_what_was_trimmed_before_it_was_kept_is_missed(source, store, store_url, archive):
    record(store, 0, 1)
    flush(store_url, archive)
    for number in range(1, 5):
        record(store, number, 1)
    parts = stream_ranges.partitions_of(source, 0, stream_ranges.end_position(source))
    store.xtrim(trace_key(BROKER), maxlen=1, approximate=False)
    with pytest.raises(DataLoss, match="3 batches of sluice were trimmed"):
        [list(stream_ranges.read(source, part)) for part in parts]


def test_places_and_ids_say_the_same_and_sort_alike():
    ids = ["0-0", "5-1", "1760000412345-0", "1760000412345-7", "1760000412346-0"]
    assert [id_of(position_of(id)) for id in ids] == ids
    assert sorted(map(position_of, ids)) == list(map(position_of, ids))


# -- the data source


@pytest.fixture
def session(spark):
    from analytics.spark.data_source import SluiceSource

    spark.dataSource.register(SluiceSource)
    return spark


@pytest.fixture
def options(archive, store_url) -> dict[str, str]:
    return {"archive": str(archive.folder.parent), "redis": store_url, "broker": BROKER}


@pytest.mark.spark
def test_archive_and_tail_are_one_table_with_the_schema_of_events(session, options, archive, store, store_url):
    from analytics.transforms.schemas import EVENTS

    record(store, 0, 3)
    flush(store_url, archive)
    record(store, 3, 1)
    record(store, 4, 1, start_us=START_US + HOUR_US)
    events = session.read.format("sluice").options(**options).load()
    assert events.schema == EVENTS
    rows = events.toArrow().to_pylist()
    assert counted(rows) == expected(range(5))
    sent = next(row for row in rows if row["kind"] == "enqueue" and row["msg_id"].endswith(":3"))
    assert (sent["ps"], sent["pn"], sent["weight"], sent["hour"]) == ([("n", "3")], [("n", 3.0)], 1, 9)
    bound = datetime.fromtimestamp(START_US / 1e6 + 3600, UTC)
    assert events.where(events.ts >= bound).count() == EVENTS_A_MESSAGE
    assert events.where(events.ts < bound).count() == EVENTS_A_MESSAGE * 4


def test_bounds_on_time_are_pushed_down():
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan

    from analytics.spark.data_source import TraceReaderBatch

    moment = datetime.fromtimestamp(START_US / 1e6, UTC)
    reader = TraceReaderBatch(TraceSource(None, "", BROKER))
    filters = [
        GreaterThanOrEqual(("ts",), moment), LessThan(("ts",), moment.replace(hour=23)), EqualTo(("kind",), "ack"),
    ]  # fmt: skip
    assert list(reader.pushFilters(filters)) == filters  # Spark applies them too
    assert reader._source.since_us == START_US
    assert reader._source.until_us == START_US + 14 * HOUR_US + 1


def test_an_option_or_a_moment_that_makes_no_sense_is_refused():
    from analytics.spark.data_source import source_of

    with pytest.raises(RequestRefused, match="no option 'topic'"):
        source_of({"topic": "x"})
    with pytest.raises(RequestRefused, match="'yesterday' is not a date and time"):
        source_of({"since": "yesterday"})


def run_stream(session, options, folder, **more) -> int:
    """Read all that is there now, from where the checkpoint ends; in how many batches."""
    stream = session.readStream.format("sluice").options(**options, **more).load()
    query = (
        stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True).start(str(folder / "out"))
    )  # fmt: skip
    try:
        assert query.awaitTermination(120)
        return sum(1 for each in query.recentProgress if each["numInputRows"])
    finally:
        query.stop()


@pytest.mark.spark
def test_a_stream_goes_on_where_it_ended_and_sees_each_event_once_while_the_archiver_moves_them(
    session, options, archive, store, store_url, tmp_path
):
    for number in range(6):
        record(store, number, 1)
        if number == 2:
            flush(store_url, archive)
    sending = threading.Thread(target=lambda: (flush(store_url, archive), compact(archive)))
    sending.start()
    batches = run_stream(session, options, tmp_path, maxEventsPerTrigger=EVENTS_A_MESSAGE)
    sending.join()
    assert batches >= 1  # several, unless all was archived and compacted before the first began
    record(store, 6, 2)
    run_stream(session, options, tmp_path)
    rows = session.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    assert counted(rows) == expected(range(8))


@pytest.mark.long
@pytest.mark.spark
def test_a_stream_that_would_miss_events_fails_and_says_so(session, options, archive, store, store_url, tmp_path):
    record(store, 0, 1)
    run_stream(session, options, tmp_path)
    record(store, 1, 2)
    flush(store_url, archive)
    remove(hour_folders(archive.folder)[0], archive.work)
    record(store, 3, 1)
    with pytest.raises(Exception, match="was removed: it was too old"):
        run_stream(session, options, tmp_path)
