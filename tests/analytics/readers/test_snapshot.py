"""Test that archive and stream are read without a duplicate or a gap while the archiver moves events."""

import signal
import threading
from collections import Counter

import pyarrow as pa
import pytest
from forks import exit_of_archiver
from recorded_traffic import BROKER

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US
from analytics.archive.housekeeping import ArchiveLimits, Housekeeping
from analytics.archive.trace_stream import TraceStream
from analytics.readers import snapshot as view_module
from analytics.readers.snapshot import ArchiveView, archived_files, events_of, read_snapshot
from analytics.requests.request import TimeWindow
from brokerapp.errors import StoreUnavailable
from brokerapp.store.client.keys import trace_key
from tests.analytics.archive.test_archiver import START_US, expected, flush, record


@pytest.fixture
def archive(tmp_path) -> BrokerArchive:
    return BrokerArchive(tmp_path / "archive", BROKER)


@pytest.fixture
def stream(store, store_url):
    stream = TraceStream(store_url, BROKER)
    yield stream
    stream.close()


def seen(view: ArchiveView) -> Counter:
    columns = ["msg_id", "kind", "destination"]
    tables = [pa.parquet.read_table(file.path, columns=columns, partitioning=None) for file in view.files]
    rows = [row for table in (*tables, events_of(view.tail).select(columns)) for row in table.to_pylist()]
    return Counter((row["msg_id"], row["kind"], row["destination"]) for row in rows)


def test_what_is_sent_is_seen_before_and_after_it_is_archived(archive, stream, store, store_url):
    assert read_snapshot(archive, stream) == ArchiveView(0, [], [])
    record(store, 0, 3)
    assert seen(read_snapshot(archive, stream)) == expected(range(3))
    flush(store_url, archive)
    record(store, 3, 2)
    view = read_snapshot(archive, stream)
    assert (len(view.files), len(view.tail), view.lost_batches) == (1, 1, 0)
    assert seen(view) == expected(range(5))
    assert seen(archived_files(archive)) == expected(range(3))


@pytest.mark.parametrize(
    "fault", ["staged", "before-commit", "committed", "published", "listed", "before-trim", "trimmed"]
)
def test_all_is_seen_once_beside_an_archiver_that_was_killed(
    fault, archive, stream, store, store_url, environment_variables
):
    record(store, 0, 5)
    flush(store_url, archive)
    record(store, 5, 90, step_us=60_000_000)  # two or three files
    assert exit_of_archiver(environment_variables, fault) == -signal.SIGKILL
    assert seen(read_snapshot(archive, stream)) == expected(range(95))


def test_all_is_seen_once_while_the_archiver_goes_on(archive, stream, store, store_url):
    """Whoever looks sees all that was sent before, once, and of what is being sent a beginning."""
    sent, over = 0, threading.Event()

    def move() -> None:
        nonlocal sent
        housekeeping = Housekeeping(archive, ArchiveLimits(), (), lambda _step: None)
        for number in range(60):
            record(store, number, 1)
            sent = number + 1
            if number % 2:
                flush(store_url, archive)
            if number % 7 == 0:
                housekeeping.step(START_US + 10 * HOUR_US)
        over.set()

    mover = threading.Thread(target=move)
    mover.start()
    looks = 0
    while not over.is_set() or not looks:
        before = sent
        view = read_snapshot(archive, stream)
        if view.set_aside:  # compacted between listing and checking: the lock of a run would have prevented it
            continue
        try:
            found = seen(view)
        except FileNotFoundError:  # compacted between looking and reading, in the same way
            continue
        complete = [n for n in range(60) if found[f"ID:sluice-1:{n}", "enqueue", "queue://a"]]
        assert found == expected(complete)
        assert complete == list(range(len(complete)))
        assert before <= len(complete) <= sent + 1
        looks += 1
    mover.join()
    assert seen(read_snapshot(archive, stream)) == expected(range(60))


def test_only_the_hours_of_the_window_are_looked_into(archive, stream, store, store_url):
    record(store, 0, 4, step_us=HOUR_US)
    flush(store_url, archive)
    spans = [(START_US, START_US + 1), (START_US + 2 * HOUR_US, START_US + 2 * HOUR_US + 5)]
    assert [file.folder.name for file in read_snapshot(archive, stream, spans).files] == ["hour=09", "hour=11"]


def test_entries_that_nobody_kept_are_counted(archive, stream, store, store_url):
    record(store, 0, 1)
    flush(store_url, archive)
    for number in range(1, 6):
        record(store, number, 1)
    store.xtrim(trace_key(BROKER), maxlen=3, approximate=False)
    view = read_snapshot(archive, stream)
    assert (len(view.tail), view.lost_batches) == (3, 2)
    assert seen(view) == expected([0, 3, 4, 5])


def test_a_store_that_was_emptied_is_read_from_its_beginning(archive, stream, store, store_url):
    record(store, 0, 2)
    flush(store_url, archive)
    store.flushall()
    assert seen(read_snapshot(archive, stream)) == expected(range(2))
    record(store, 2, 1)
    assert seen(read_snapshot(archive, stream)) == expected(range(3))


def test_an_archive_that_never_holds_still_is_said_to_be_so(archive, stream, store, store_url, monkeypatch):
    def never(*_):
        raise view_module.ArchiveChanged

    monkeypatch.setattr(view_module, "_try_snapshot", never)
    with pytest.raises(StoreUnavailable, match="cannot be read consistently"):
        read_snapshot(archive, stream)


@pytest.mark.spark
@pytest.mark.parametrize("most_files", [0, 500])  # none is looked into, or all
def test_analyses_see_archive_and_tail_as_one(most_files, spark, archive, store, store_url, tmp_path, monkeypatch):
    from analytics.spark import event_frames

    monkeypatch.setattr(event_frames, "MAX_FILES", most_files)
    record(store, 0, 3)
    flush(store_url, archive)
    record(store, 3, 2)
    record(store, 5, 1, start_us=START_US + HOUR_US)

    def read(*windows):
        found = event_frames.read_events(spark, tmp_path / "archive", *windows, unarchived=(store_url, BROKER))
        assert (found.rdd.getNumPartitions() == 1) == bool(most_files)
        rows = found.select("msg_id", "kind", "destination", "broker", "hour").toArrow().to_pylist()
        assert {row["broker"] for row in rows} == {BROKER}
        assert {row["hour"] for row in rows} <= {9, 10}
        return Counter((row["msg_id"], row["kind"], row["destination"]) for row in rows)

    window, millisecond = TimeWindow(START_US, START_US + HOUR_US), TimeWindow(START_US, START_US + 1000)
    assert read(window) == expected(range(5))
    assert read(millisecond) == expected([0, 3])
    assert read(window, TimeWindow(window.until_us, window.until_us + HOUR_US)) == expected(range(6))
    assert read(millisecond, TimeWindow(window.until_us, window.until_us + HOUR_US)) == expected([0, 3, 5])
