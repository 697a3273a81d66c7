"""Builds of tables are incremental, atomic and resumable: late files, compaction, kills at any step, retention."""

import os
import signal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_traffic import BROKER, message

from analytics.archive import manifest
from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.compaction import compact, next_merge_group
from analytics.requests.request import TimeWindow
from analytics.tables.builder import TableBuilder, UnreadableSource, is_worthwhile
from analytics.tables.catalog import TableCatalog, recording_start
from analytics.tables.day_manifest import HourRecord, SourceFile, needs_computing
from analytics.tables.definitions import DAILY, DAY_US, HOUR_US, HOURLY, TABLES, TRAFFIC
from analytics.tables.merging import merge
from analytics.tables.reader import TableReader
from analytics.tables.selection import AvailableDay, select
from analytics.tables.storage import FolderStorage
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import TraceRecorder

DAY = 1_760_572_800_000_000  # a midnight in UTC
QUEUE = "queue://orders"
NOW_US = DAY + 2 * DAY_US + 6 * HOUR_US
HOURS = (DAY, DAY + 3 * HOUR_US, DAY + DAY_US + HOUR_US)


def counted(catalog, hours):
    """Count messages of some hours without Spark, as rows of the table `traffic`; the other tables stay empty."""
    rows = {each.name: each.schema.empty_table() for each in TABLES.values()}
    parts = [
        pq.ParquetFile(path).read(["ts", "kind", "destination", "size"]).append_column("slot", slot_of(path, each))
        for each in hours
        for path in each.paths
    ]
    if parts:
        events = pa.concat_tables(parts)
        columns = {
            "slot": events["slot"], "destination": events["destination"].cast(pa.string()),
            "kind": events["kind"].cast(pa.string()), "messages": pa.repeat(1, events.num_rows),
            "bytes": events["size"], "last": events["ts"], "events": pa.repeat(1, events.num_rows),
        }  # fmt: skip
        rows[TRAFFIC.name] = merge(TRAFFIC, pa.table(columns))
    return rows


def slot_of(path, hour):
    return pa.repeat(pa.scalar(hour.start_us, TRAFFIC.schema.field("slot").type), pq.read_metadata(path).num_rows)


def append(archive, hour_us, messages, number):
    """Archive messages that arrived in an hour, as the next append."""
    recorder = TraceRecorder(BROKER)
    for index in range(messages):
        born = hour_us + (number * 1000 + index) * 1000
        recorder.record_enqueue(born, [message(number * 1000 + index, born)], QUEUE)
    archive.append(decode(recorder.take_encoded()[0]), ArchiveCommit(f"{number}-0"))


@pytest.fixture
def archive(tmp_path):
    archive = BrokerArchive(tmp_path / "archive", BROKER)
    for number, hour_us in enumerate(HOURS, start=1):
        append(archive, hour_us, 10, number)
    return archive


@pytest.fixture
def catalog(archive, tmp_path):
    return TableCatalog(FolderStorage(tmp_path / "tables"), archive)


def build(catalog, now_us=NOW_US, at=lambda step: None):
    return TableBuilder(catalog, counted, at).build(now_us)


def messages(catalog, day_us, level=HOURLY):
    """The messages of a day's current table."""
    file = catalog.day(day_us).files[level][TRAFFIC.name]
    return pc.sum(pq.read_table(catalog.storage.location(catalog.name(day_us, file)))["messages"]).as_py()


def pending(catalog, now_us=NOW_US):
    return [each.start_us for each in catalog.pending(now_us)]


def test_a_build_computes_each_complete_hour_once(catalog):
    assert build(catalog).events == 30
    assert (messages(catalog, DAY), messages(catalog, DAY, DAILY)) == (20, 20)
    assert messages(catalog, DAY + DAY_US) == 10
    assert build(catalog).hours == 0


def test_the_hour_that_is_being_written_is_not_computed(catalog):
    hour = HOURS[-1]
    assert hour not in pending(catalog, hour + HOUR_US + 599_000_000)
    assert hour in pending(catalog, hour + HOUR_US + 601_000_000)


def test_a_day_is_merged_when_all_its_hours_are_computed(catalog):
    build(catalog, DAY + DAY_US)
    assert DAILY not in catalog.day(DAY).files
    build(catalog, DAY + DAY_US + HOUR_US)
    assert messages(catalog, DAY, DAILY) == 20


def test_a_late_file_has_its_hour_computed_again(archive, catalog):
    build(catalog)
    append(archive, HOURS[1], 5, 9)
    assert pending(catalog) == [HOURS[1]]
    assert build(catalog).hours == 1
    assert (messages(catalog, DAY), messages(catalog, DAY, DAILY)) == (25, 25)
    append(archive, DAY + 5 * HOUR_US, 1, 10)  # an hour in which nothing was recorded before
    assert pending(catalog) == [DAY + 5 * HOUR_US]


def test_compaction_has_nothing_computed_again(archive, catalog):
    append(archive, HOURS[1], 5, 9)
    build(catalog)
    hour = catalog.folder_of(HOURS[1])
    compact(hour, next_merge_group(hour), archive.work, (), lambda step: None, archive.pending)
    assert len(list(hour.glob("*.parquet"))) == 1
    assert pending(catalog) == []
    assert build(catalog).hours == 0
    append(archive, HOURS[1], 2, 11)  # and it is known what the merged file was made from
    assert pending(catalog) == [HOURS[1]]


def test_a_file_that_is_lost_later_stays_counted_and_one_that_is_put_back_is_counted(archive, catalog):
    (path,) = catalog.folder_of(HOURS[0]).glob("*.parquet")
    data = path.read_bytes()
    path.unlink()
    build(catalog)
    assert messages(catalog, DAY) == 10
    assert catalog.day(DAY).hours[0].set_aside[0]["rows"] == 10
    path.write_bytes(data)
    catalog.day(DAY)
    manifest.update_times(path.parent, manifest.inspect(path.parent))  # as the archiver does
    assert pending(catalog) == [HOURS[0]]
    build(catalog)
    assert messages(catalog, DAY) == 20
    path.unlink()
    assert pending(catalog) == []


def test_a_manifest_with_other_content_has_its_hour_computed_again(catalog):
    build(catalog)
    folder = catalog.folder_of(HOURS[0])
    (path,) = folder.glob("*.parquet")
    pq.write_table(pq.ParquetFile(path).read().slice(0, 4), path)
    manifest.write(folder, [manifest.entry_of(path)])
    assert pending(catalog) == [HOURS[0]]
    build(catalog)
    assert messages(catalog, DAY) == 14


def test_an_unreadable_file_is_left_out_if_its_checksum_is_wrong(catalog):
    (path,) = catalog.folder_of(HOURS[0]).glob("*.parquet")
    times = path.stat()
    path.write_bytes(path.read_bytes()[:-8] + b"damaged!")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def rows_of(of, hours):
        try:
            return counted(of, hours)
        except pa.ArrowInvalid as error:
            raise UnreadableSource from error

    assert TableBuilder(catalog, rows_of).build(NOW_US).events == 20
    assert messages(catalog, DAY) == 10


@pytest.mark.parametrize("step", ["computed", "written", "before-publish", "published"])
def test_a_build_that_is_killed_leaves_whole_tables_and_continues(archive, catalog, step):
    build(catalog)
    append(archive, HOURS[0], 7, 9)
    before = catalog.day(DAY)
    child = os.fork()
    if not child:
        try:
            build(catalog, at=lambda reached: reached == step and os.kill(os.getpid(), signal.SIGKILL))
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    if step == "published":
        assert messages(catalog, DAY) == messages(catalog, DAY, DAILY) == 27
    else:
        assert catalog.day(DAY) == before
        assert messages(catalog, DAY) == messages(catalog, DAY, DAILY) == 20
        assert build(catalog).hours == 1
    assert messages(catalog, DAY) == messages(catalog, DAY, DAILY) == 27
    assert build(catalog).hours == 0


def test_replaced_files_stay_for_readers_and_are_deleted_later(archive, catalog):
    build(catalog)
    old = catalog.storage.location(catalog.name(DAY, catalog.day(DAY).files[HOURLY]["traffic"]))
    append(archive, HOURS[0], 7, 9)
    build(catalog)
    assert Path(old).exists()
    TableBuilder(catalog, counted).delete_replaced(DAY, 10**18)
    assert not Path(old).exists()
    assert messages(catalog, DAY) == 27


def test_levels_are_deleted_after_their_retention(catalog):
    build(catalog)
    builder = TableBuilder(catalog, counted)
    assert builder.delete_expired(NOW_US, 0, 0) == 0
    assert builder.delete_expired(NOW_US, 1, 0) == 1
    assert list(catalog.day(DAY).files) == [DAILY]
    assert messages(catalog, DAY, DAILY) == 20
    assert builder.delete_expired(NOW_US + 9 * DAY_US, 1, 5) >= 1
    assert DAY not in catalog.days()
    assert DAY in {each.start_us // DAY_US * DAY_US for each in catalog.pending(NOW_US)}
    assert DAY not in {each.start_us // DAY_US * DAY_US for each in catalog.pending(NOW_US, since_us=DAY + DAY_US)}


def test_a_broker_that_records_no_longer_does_not_keep_others_from_reading_tables(archive, catalog, tmp_path):
    retired = BrokerArchive(tmp_path / "archive", "retired")
    append(retired, DAY, 10, 1)
    retired.write_freshness(DAY + 2 * HOUR_US)
    for each in TableCatalog.all_of(catalog.storage, tmp_path / "archive"):
        build(each)
    window = TimeWindow(DAY, DAY + 2 * DAY_US)

    def chosen(unarchived, slot=86_400):
        return TableReader(None, catalog.storage, tmp_path / "archive", unarchived=unarchived).choose([window], slot)

    assert chosen(BROKER).days == (DAY + DAY_US,), "days on which only the others recorded"
    assert not chosen(BROKER).raw
    assert len(chosen(BROKER, 3600).hours) == 48
    assert chosen("retired").raw, "events of a broker that records may be in its stream only"


@pytest.mark.parametrize(("archived", "tabled", "expected"), [
    (None, None, None), (DAY + 5, None, DAY + 5), (None, DAY, DAY),
    (DAY + 5, DAY, DAY + 5), (DAY + HOUR_US, DAY, DAY), (DAY + 5, DAY - HOUR_US, DAY - HOUR_US),
])  # fmt: skip
def test_recording_began_with_the_first_event_or_an_hour_of_which_events_are_no_longer_archived(
    archived, tabled, expected
):
    assert recording_start(archived, tabled) == expected


def test_little_waits_for_more_but_not_for_long(catalog):
    hour = HOURS[-1]
    assert not is_worthwhile((each for each in catalog.pending(NOW_US) if each.start_us == hour), hour + 3 * HOUR_US)
    assert is_worthwhile((each for each in catalog.pending(NOW_US) if each.start_us == hour), hour + 8 * HOUR_US)


FILES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=8)


@given(FILES, st.data())
def test_merging_adjacent_files_changes_nothing_and_one_more_event_does(parts, data):
    files, position = [], 0
    for appends, rows in parts:
        position += appends
        files.append(SourceFile(f"part-{position}-0{f'_{appends}' if appends > 1 else ''}.parquet", rows, position))
    record = HourRecord(tuple(files))
    first = data.draw(st.integers(0, len(files) - 1))
    last = data.draw(st.integers(first, len(files) - 1))
    group = files[first : last + 1]
    appends, rows = sum(each.appends for each in group), sum(each.rows for each in group)
    merged = SourceFile(f"part-{group[-1].last >> 20}-0_{appends}.parquet", rows, 99)
    now = [*files[:first], merged, *files[last + 1 :]] if len(group) > 1 else files
    assert not needs_computing(record, now)
    assert not needs_computing(record, now[1:])
    late = SourceFile(f"part-{position + 1}-0.parquet", 1, 7)
    assert needs_computing(record, [*now, late])


HOURS_OF_DAY = st.frozensets(st.integers(0, 23))


@given(
    st.integers(0, 5 * DAY_US),
    st.integers(1, 5 * DAY_US),
    st.lists(HOURS_OF_DAY, max_size=5),
    st.sampled_from([3600, 86400, 600]),
)
def test_each_moment_of_a_time_range_is_read_once(begin, length, hours, slot):
    window = TimeWindow(DAY + begin, DAY + begin + length)
    days = {DAY + index * DAY_US: AvailableDay(each, len(each) == 24) for index, each in enumerate(hours)}
    chosen = select([window], slot, days)
    spans = sorted(
        [
            *((each, each + DAY_US) for each in chosen.days),
            *((each, each + HOUR_US) for each in chosen.hours),
            *((each.since_us, each.until_us) for each in chosen.raw),
        ]
    )
    assert spans[0][0] == window.since_us
    assert spans[-1][1] == window.until_us
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    if slot % 3600 or window.seconds <= 86400:
        assert chosen.raw == (window,)
