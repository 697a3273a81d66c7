"""Test compaction of the small files of past hours, also when it is interrupted, and retention."""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forks import exit_of_archiver, exit_of_housekeeping
from recorded_traffic import BROKER, wait_until

from analytics.archive import compaction
from analytics.archive.archiver import Archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.compaction import delete_replaced
from analytics.archive.data_files import ARCHIVED, HOUR_US, data_files, hour_folders, start_us
from analytics.archive.housekeeping import ArchiveLimits, Housekeeping
from analytics.archive.read_locks import read_lock
from analytics.archive.retention import ArchiveHour, expired_hours
from analytics.archive.trace_stream import TraceStream
from analytics.readers.message_trace import TraceReader
from tests.analytics.archive.test_archiver import archived, expected, flush, record

START_US = 1_760_000_400_000_000 // HOUR_US * HOUR_US
LATER_US = START_US + 10 * HOUR_US


def nothing(_step: str) -> None:
    """What production does at each step."""


@pytest.fixture
def archive(tmp_path) -> BrokerArchive:
    return BrokerArchive(tmp_path / "archive", BROKER)


@pytest.fixture
def small_files(store, store_url, archive) -> BrokerArchive:
    """Ten messages in five files of one hour, and one of the next."""
    for first in range(0, 10, 2):
        record(store, first, 2)
        flush(store_url, archive)
    record(store, 10, 1, start_us=START_US + HOUR_US)
    flush(store_url, archive)
    return archive


def tidy(archive: BrokerArchive, bounds: ArchiveLimits = ArchiveLimits(), now_us: int = LATER_US) -> int:  # noqa: B008
    """Do all there is to do; in how many steps."""
    housekeeping, steps = Housekeeping(archive, bounds, (), nothing), 0
    while housekeeping.step(now_us):
        steps += 1
    return steps


def names(archive: BrokerArchive) -> list[int]:
    """How many files each hour has."""
    return [len(data_files(hour)) for hour in hour_folders(archive.folder)]


def test_the_small_files_of_a_past_hour_become_one_with_all_that_was_in_them(small_files):
    assert names(small_files) == [5, 1]
    assert tidy(small_files) == 1
    assert names(small_files) == [1, 1]
    assert archived(small_files) == expected(range(11))
    [merged] = data_files(hour_folders(small_files.folder)[0])
    assert merged.path.name.endswith("_5.parquet")
    assert pq.read_metadata(merged.path).num_row_groups == 1
    entries = pq.read_table(merged.path, columns=["entry"], partitioning=None)["entry"].to_pylist()
    assert entries == sorted(entries)
    assert (len(set(entries)), entries[-1]) == (5, merged.last)
    assert tidy(small_files) == 0


@pytest.fixture
def running(store, store_url, archive):
    """Yield a function that records two messages and archives them, always by the same archiver."""
    stream = TraceStream(store_url, BROKER)
    archiver = Archiver(stream, archive, nothing)

    def append(first: int, start_us: int = START_US) -> None:
        record(store, first, 2, start_us)
        assert archiver.flush()

    yield append
    archiver.close()
    stream.close()


def test_an_archiver_reads_no_small_file_that_it_appended_itself(running, archive, store_url, monkeypatch):
    monkeypatch.setattr(compaction, "_WAITING_TABLES", 2)
    monkeypatch.setattr(compaction, "ROW_GROUP_EVENTS", 30)  # an append has 8 events
    monkeypatch.setattr(compaction, "read_parts", None)
    for first in range(0, 10, 2):
        running(first)
    running(10, START_US + HOUR_US)
    assert tidy(archive) == 1
    assert names(archive) == [1, 1]
    assert archived(archive) == expected(range(12))
    [merged] = data_files(hour_folders(archive.folder)[0])
    assert pq.read_metadata(merged.path).num_row_groups == 2
    entries = pq.ParquetFile(merged.path).read(["entry"])["entry"].to_pylist()
    assert entries == sorted(entries)
    found = TraceReader(archive.folder.parent, store_url, BROKER).read(["ID:sluice-1:5"])
    assert len(found.events) == 4
    assert list((archive.work / "merging").iterdir()) == [archive.work / "merging" / _merging(archive, 1)]


def _merging(archive: BrokerArchive, hour: int) -> str:
    folder = hour_folders(archive.folder)[hour]
    return f"{folder.parent.name}.{folder.name}.parquet"


def test_a_merged_file_has_failures_in_row_groups_that_readers_find_by_their_dictionary(tmp_path):
    events = a_few_events([*["enqueue", "dispatch", "ack"] * 20, "drop", *["ack"] * 10, "dead_letter"])
    merged = compaction.MergedFile(tmp_path / "merging")
    for start in range(0, events.num_rows, 7):
        merged.add("", events.slice(start, 7), np.empty(0, np.uint64))
    merged.finish(tmp_path / "part-1-0_11.parquet")
    file = pq.ParquetFile(tmp_path / "part-1-0_11.parquet", read_dictionary=["kind"])
    groups = [file.read_row_group(number)["kind"] for number in range(file.num_row_groups)]
    kinds = [set(group.chunk(0).dictionary.to_pylist()) for group in groups]
    assert kinds == [{"enqueue", "dispatch", "ack"}, {"drop", "dead_letter"}]
    assert sorted(file.read(["entry"])["entry"].to_pylist()) == events["entry"].to_pylist()


def a_few_events(kinds: list[str]) -> pa.Table:
    """Events of these kinds, and otherwise alike, each of an entry of its own."""
    alike = {
        "ts": START_US,
        "born": START_US,
        "msg_id": "ID:1",
        "destination": "",
        "original": "",
        "size": 1,
        "weight": 1,
    }
    return pa.Table.from_pylist([alike | {"kind": kind, "entry": entry} for entry, kind in enumerate(kinds)], ARCHIVED)


def test_a_file_that_was_damaged_after_it_was_appended_is_not_in_the_merged_one(running, archive):
    for first in range(0, 6, 2):
        running(first)
    damaged = data_files(hour_folders(archive.folder)[0])[1].path
    damaged.write_bytes(damaged.read_bytes()[:-9])
    tidy(archive)
    assert archived(archive) == expected([0, 1, 4, 5])


def test_late_files_are_merged_and_so_are_hours_beyond_those_that_are_kept_pending(running, archive):
    for hour in range(compaction.PENDING_HOURS + 1):
        running(4 * hour, START_US + hour * HOUR_US)
        running(4 * hour + 2, START_US + hour * HOUR_US)
    assert len(list((archive.work / "merging").iterdir())) == compaction.PENDING_HOURS
    tidy(archive)
    running(100)
    running(102)
    assert names(archive) == [3, 1, 1, 1]
    tidy(archive)
    assert names(archive) == [1, 1, 1, 1]
    assert archived(archive) == expected([*range(4 * (compaction.PENDING_HOURS + 1)), *range(100, 104)])


def test_what_a_killed_archiver_was_merging_is_removed_at_the_next_start(
    store, store_url, archive, environment_variables
):
    record(store, 0, 90, step_us=60_000_000)
    assert exit_of_archiver(environment_variables, "before-trim") == -signal.SIGKILL
    assert list((archive.work / "merging").iterdir())
    flush(store_url, archive)
    assert not (archive.work / "merging").exists()
    assert archived(archive) == expected(range(90))


def test_an_hour_that_may_still_get_events_is_left_alone(small_files):
    assert tidy(small_files, now_us=START_US + HOUR_US + 60_000_000) == 0
    assert names(small_files) == [5, 1]


def test_files_do_not_grow_beyond_what_is_enough_and_large_ones_stay_as_they_are(small_files, monkeypatch):
    monkeypatch.setattr(compaction, "FULL_FILE_EVENTS", 17)  # a file has 8 events
    before = {file.path.name for file in data_files(hour_folders(small_files.folder)[0])}
    assert tidy(small_files) == 2
    after = [file.path.name for file in data_files(hour_folders(small_files.folder)[0])]
    assert [name.endswith("_2.parquet") for name in after] == [True, True, False]
    assert after[2] in before
    assert archived(small_files) == expected(range(11))


def test_what_comes_late_is_merged_with_what_was_merged(small_files, store, store_url):
    tidy(small_files)
    record(store, 11, 3)
    flush(store_url, small_files)
    assert names(small_files) == [2, 1]
    tidy(small_files)
    assert names(small_files) == [1, 1]
    assert archived(small_files) == expected(range(14))


def test_single_messages_are_found_in_what_was_merged(small_files, store_url):
    tidy(small_files)
    found = TraceReader(small_files.folder.parent, store_url, BROKER).read(["ID:sluice-1:5"])
    assert len(found.events) == 4
    assert found.complete


def test_nothing_is_replaced_or_removed_while_somebody_reads(small_files):
    with read_lock(small_files.folder.parent), read_lock(small_files.folder.parent):
        assert tidy(small_files, ArchiveLimits(days=0.01)) == 0
    assert names(small_files) == [5, 1]
    assert tidy(small_files) == 1


def replaced_file(path: Path, work: Path) -> Path | None:
    """Return the current path of a file that compaction replaced, if it still exists."""
    folder = f"{path.parent.parent.name}.{path.parent.name}"
    return next(iter((work / "replaced").glob(f"{folder}.*/{path.name}")), None)


def test_who_listed_the_replaced_files_finds_them_for_a_while(small_files):
    before = data_files(hour_folders(small_files.folder)[0])
    tidy(small_files)
    assert not before[0].path.exists()
    kept = replaced_file(before[0].path, small_files.work)
    assert pq.read_metadata(kept).num_rows == 8
    delete_replaced(small_files.work, time.time() + compaction.REPLACED_KEPT_SECONDS - 60)
    assert kept.exists()
    delete_replaced(small_files.work, time.time() + compaction.REPLACED_KEPT_SECONDS + 60)
    assert replaced_file(before[0].path, small_files.work) is None


@pytest.mark.parametrize("fault", ["merged", "before-exchange", "exchanged", "settled", "put-away"])
def test_compaction_killed_at_any_step_loses_and_doubles_nothing(
    fault, small_files, store, store_url, environment_variables
):
    assert exit_of_housekeeping(environment_variables, fault, LATER_US) == -signal.SIGKILL
    assert archived(small_files) == expected(range(11))  # also before anybody cleans up
    assert set(pandas.read_parquet(small_files.folder)["msg_id"]) == {f"ID:sluice-1:{n}" for n in range(11)}
    record(store, 11, 1)
    flush(store_url, small_files)
    tidy(small_files)
    assert names(small_files) == [1, 1]
    assert archived(small_files) == expected(range(12))
    assert not (small_files.work / "new").exists()


def test_who_lists_an_hour_while_it_is_compacted_sees_everything_once(store, store_url, archive, environment_variables):
    """A process compacts one file after the other while this one reads, as an engine that knows nothing of it does."""
    for number in range(12):
        record(store, number, 1)
        flush(store_url, archive)
    churn = subprocess.Popen(
        [sys.executable, "-c", CHURN, str(archive.folder.parent), BROKER, str(LATER_US)], env=environment_variables
    )
    looks, missed = 0, 0
    try:
        while churn.poll() is None:
            try:
                found = archived(archive)
            except duckdb.IOException:  # listed before, opened after: an error, not a wrong number
                missed += 1
                continue
            assert found == expected(range(12))
            looks += 1
    finally:
        churn.kill()
        churn.wait()
    assert churn.returncode == 0
    assert looks > 3


CHURN = """
import sys
from pathlib import Path
from analytics.archive import compaction
from analytics.archive.archiver import Archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.housekeeping import ArchiveLimits, Housekeeping
archive = BrokerArchive(Path(sys.argv[1]), sys.argv[2])
for enough in range(9, 50, 4):
    compaction.ENOUGH = enough
    housekeeping = Housekeeping(archive, ArchiveLimits(), (), lambda _step: None)
    while housekeeping.step(int(sys.argv[3])):
        pass
"""


def hours(*sizes: int) -> list[ArchiveHour]:
    return [ArchiveHour(None, START_US + number * HOUR_US, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("days", "limit", "gone"),
    [(0, 0, 0), (1, 0, 0), (3 / 24, 0, 2), (0, 25, 4), (0, 30, 3), (0, 1, 5), (3 / 24, 25, 4), (0.001, 1, 5)],
)
def test_hours_go_that_are_too_old_or_too_much_the_oldest_first_but_never_the_current(days, limit, gone):
    now_us = START_US + 5 * HOUR_US + 1
    all_hours = hours(10, 10, 10, 10, 10, 10)
    assert expired_hours(all_hours, now_us, days, limit) == all_hours[:gone]


def test_an_hour_that_is_too_old_goes_with_its_day_when_that_is_empty(small_files):
    assert tidy(small_files, ArchiveLimits(days=8.5 / 24)) == 2  # one is compacted first
    assert archived(small_files) == expected([10])
    tidy(small_files, ArchiveLimits(days=1 / 24))
    assert archived(small_files) == Counter()
    assert list(small_files.folder.glob("day=*")) == []


def test_an_hour_that_was_half_removed_when_the_archiver_was_killed_is_gone(small_files, environment_variables):
    tidy(small_files)
    assert exit_of_housekeeping(environment_variables, "removed", LATER_US, days=8.5 / 24) == -signal.SIGKILL
    small_files.recover()
    assert archived(small_files) == expected([10])


def test_the_archiver_does_it_by_itself(store, archive, environment_variables):
    for number in range(3):
        record(store, number, 1)
        flush(environment_variables["REDIS_URL"], archive)
    process = subprocess.Popen([sys.executable, "-m", "analytics.archive.archiver"], env=environment_variables)
    try:
        wait_until(lambda: names(archive) == [1])
    finally:
        process.kill()
        process.wait()


def test_an_hour_knows_when_it_begins(small_files):
    assert [start_us(hour) for hour in hour_folders(small_files.folder)] == [START_US, START_US + HOUR_US]
