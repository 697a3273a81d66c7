"""Test that trace events reach the archive exactly once, whatever happens to the archiver."""

import json
import signal
import subprocess
import sys
from collections import Counter

import duckdb
import pandas
import pytest
from forks import PATIENCE, exit_of_archiver
from recorded_traffic import BROKER, message, send, wait_until

from analytics.archive import archiver as archiver_module
from analytics.archive.archiver import FAULT_VARIABLE, Archiver, fault_injector
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.trace_stream import TraceStream
from brokerapp.errors import StoreUnavailable
from brokerapp.store.client.keys import trace_key
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, FORWARD, VERSION

HOUR_US = 3_600_000_000
START_US = 1_760_000_400_000_000 // HOUR_US * HOUR_US
QUEUES = ["queue://a", "queue://b"]
EVENTS_A_MESSAGE = 4


@pytest.fixture
def archive(tmp_path) -> BrokerArchive:
    return BrokerArchive(tmp_path / "archive", BROKER)


def record(store, first: int, count: int, start_us: int = START_US, step_us: int = 1000) -> None:
    """Messages first.. of which each has four events, `step_us` apart."""
    recorder = TraceRecorder(BROKER)
    for number in range(first, first + count):
        now = start_us + (number - first) * step_us
        made = message(number, now, size=number, n=str(number))
        recorder.record_enqueue(now, [made], QUEUES[0])
        recorder.record(FORWARD, now + 1, [made], QUEUES, QUEUES[0])
        recorder.record_one(ACK, now + 2, made, QUEUES[0], QUEUES[0], "c1", None)
    send(store, recorder)


def archived(archive: BrokerArchive) -> Counter:
    """How often each event is in the archive, as an engine that is not ours reads it."""
    if not list(archive.folder.glob("*/*/*.parquet")):
        return Counter()
    rows = duckdb.sql(f"SELECT msg_id, kind, destination FROM '{archive.folder}/*/*/*.parquet'").fetchall()
    return Counter(rows)


def expected(numbers) -> Counter:
    return Counter(
        (f"ID:sluice-1:{number}", kind, queue)
        for number in numbers
        for kind, queue in (("enqueue", QUEUES[0]), ("forward", QUEUES[0]), ("forward", QUEUES[1]), ("ack", QUEUES[0]))
    )


def flush(store_url: str, archive: BrokerArchive) -> None:
    """What an archiver does that is started now."""
    stream = TraceStream(store_url, BROKER)
    archiver = Archiver(stream, archive, fault_injector(""))
    while not archiver.flush():
        pass
    stream.close()


def start_archiver(variables: dict[str, str], fault: str = "") -> subprocess.Popen:
    """The command itself, as it is supervised."""
    command = [sys.executable, "-m", "analytics.archive.archiver"]
    return subprocess.Popen(command, env={**variables, FAULT_VARIABLE: fault}, stderr=subprocess.PIPE, text=True)


FAULTS = [
    "staged", "staged:2", "before-commit", "committed", "published", "published:2", "listed", "before-trim", "trimmed",
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_an_archiver_killed_at_any_step_loses_and_doubles_nothing(
    fault, store, store_url, archive, environment_variables
):
    # 90 minutes of traffic, so that one flush writes the files of two or three hours.
    record(store, 0, 90, step_us=60_000_000)
    assert exit_of_archiver(environment_variables, fault) == -signal.SIGKILL

    record(store, 90, 10)
    flush(store_url, archive)

    assert archived(archive) == expected(range(100))
    assert archive.commit.events == 100 * EVENTS_A_MESSAGE
    assert archive.commit.gaps == 0
    assert list(archive.folder.rglob(".*.tmp")) == []


def test_two_archivers_killed_one_after_the_other_lose_and_double_nothing(
    store, store_url, archive, environment_variables
):
    record(store, 0, 90, step_us=60_000_000)
    first = start_archiver(environment_variables, "committed")
    first.communicate(timeout=PATIENCE)
    assert first.returncode == -signal.SIGKILL
    assert exit_of_archiver(environment_variables, "published") == -signal.SIGKILL
    flush(store_url, archive)
    assert archived(archive) == expected(range(90))


def test_the_archiver_archives_what_came_last_when_it_is_asked_to_stop(store, archive, environment_variables):
    record(store, 0, 5)
    process = start_archiver(environment_variables)
    try:
        wait_until(lambda: archived(archive) == expected(range(5)))
        record(store, 5, 5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
    assert archived(archive) == expected(range(10))


def test_a_second_archiver_of_the_same_archive_refuses_to_run(store, archive, environment_variables):
    first = start_archiver(environment_variables)
    try:
        wait_until(lambda: archive.fresh_until_us)
        second = start_archiver(environment_variables)
        _, said = second.communicate(timeout=PATIENCE)
        assert second.returncode == 1
        assert "another archiver writes to" in said
    finally:
        first.kill()
        first.communicate()


def test_archived_entries_are_trimmed_but_for_the_last_which_stays_as_a_sentinel(store, store_url, archive):
    for number in range(3):
        record(store, number, 1)
    last = store.xinfo_stream(trace_key(BROKER))["last-generated-id"]
    flush(store_url, archive)
    assert [id for id, _ in store.xrange(trace_key(BROKER))] == [last]
    assert archive.commit.offset == last.decode()


def test_batches_that_were_trimmed_before_they_were_archived_are_counted(store, store_url, archive):
    record(store, 0, 1)
    flush(store_url, archive)
    for number in range(1, 8):
        record(store, number, 1)
    store.xtrim(trace_key(BROKER), maxlen=4, approximate=False)
    flush(store_url, archive)
    assert (archive.commit.gaps, archive.commit.lost_batches) == (1, 3)
    assert archived(archive) == expected([0, 4, 5, 6, 7])


def test_losing_only_the_sentinel_is_no_gap(store, store_url, archive):
    record(store, 0, 1)
    flush(store_url, archive)
    record(store, 1, 1)
    store.xtrim(trace_key(BROKER), maxlen=1, approximate=False)
    flush(store_url, archive)
    assert archive.commit.gaps == 0
    assert archived(archive) == expected([0, 1])


def test_batches_lost_before_the_first_start_are_counted(store, store_url, archive):
    for number in range(3):
        record(store, number, 1)
    store.xtrim(trace_key(BROKER), maxlen=0, approximate=False)
    flush(store_url, archive)
    record(store, 3, 1)
    flush(store_url, archive)
    assert (archive.commit.gaps, archive.commit.lost_batches) == (1, 3)
    assert archived(archive) == expected([3])


def test_the_archive_goes_on_with_a_store_that_was_emptied(store, store_url, archive):
    for number in range(3):
        record(store, number, 1)
    flush(store_url, archive)
    store.flushall()
    record(store, 3, 1)
    flush(store_url, archive)
    flush(store_url, archive)
    assert archive.commit.gaps == 1
    assert archived(archive) == expected(range(4))


def test_a_batch_that_cannot_be_read_is_counted_and_does_not_stop_the_others(store, store_url, archive):
    store.xadd(trace_key(BROKER), {"b": b"no batch", "n": 1})
    record(store, 0, 1)
    flush(store_url, archive)
    assert archive.commit.unreadable_batches == 1
    assert archived(archive) == expected([0])


def test_a_long_backlog_is_archived_in_several_appends(store, store_url, archive, monkeypatch):
    monkeypatch.setattr(archiver_module, "FLUSH_EVENTS", 10)
    for number in range(80):
        record(store, number, 1)
    flush(store_url, archive)
    assert len(list(archive.folder.rglob("*.parquet"))) > 1
    assert archived(archive) == expected(range(80))


def test_an_empty_stream_leaves_an_archive_that_is_fresh_and_empty(store, store_url, archive):
    flush(store_url, archive)
    assert archived(archive) == Counter()
    assert archive.fresh_until_us is not None
    assert archive.commit.events == 0


def test_a_store_that_does_not_answer_is_said_to_be_unavailable(tmp_path, archive):
    stream = TraceStream(f"unix://{tmp_path}/nothing", BROKER)
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        Archiver(stream, archive, fault_injector("")).flush()


def test_files_lie_by_broker_day_and_hour_and_pandas_reads_them_as_they_are(store, store_url, archive):
    record(store, 0, 2, step_us=HOUR_US)
    flush(store_url, archive)
    offset = archive.commit.offset
    assert sorted(str(path.relative_to(archive.folder.parent)) for path in archive.folder.rglob("*.parquet")) == [
        f"broker=sluice/day=2025-10-09/hour={hour}/part-{offset}.parquet" for hour in ("09", "10")
    ]
    frame = pandas.read_parquet(archive.folder.parent)
    assert Counter(frame["kind"]) == {"enqueue": 2, "forward": 4, "ack": 2}
    assert set(frame["broker"]) == {"sluice"}
    sent = frame[frame["kind"] == "enqueue"].sort_values("ts")
    assert [dict(texts) for texts in sent["ps"]] == [
        {"n": "0"},
        {"n": "1"},
    ]


def test_a_broker_name_that_is_no_folder_name_is_quoted(tmp_path):
    assert BrokerArchive(tmp_path, "a/b=c").folder == tmp_path / "broker=a%2Fb%3Dc"


def test_the_commit_record_is_plain_json(store, store_url, archive):
    record(store, 0, 1)
    flush(store_url, archive)
    fields = json.loads((archive.folder / "_commit.json").read_text())
    assert fields["events"] == EVENTS_A_MESSAGE
    assert fields["schema"] == VERSION
