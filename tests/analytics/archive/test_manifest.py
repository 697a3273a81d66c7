"""Test that damaged, missing and foreign files of an archive are set aside, reported and counted."""

import os
import shutil
import signal
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forks import exit_of_archiver, exit_of_housekeeping
from recorded_traffic import BROKER

from analytics.archive import manifest
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US, data_files, hour_folders
from analytics.archive.integrity import VERIFY_SECONDS, Integrity, set_aside
from analytics.archive.manifest import DAMAGED, FOREIGN, MISSING, hours_of, inspect
from analytics.archive.read_locks import read_lock
from analytics.readers.completeness import Completeness
from analytics.readers.snapshot import archived_files
from analytics.requests.request import TimeWindow
from tests.analytics.archive.test_archiver import archived, expected, flush, record
from tests.analytics.archive.test_compaction import LATER_US, START_US, tidy

EVENTS = 8  #: of a file: two messages
WINDOW = TimeWindow(START_US, START_US + 2 * HOUR_US)


@pytest.fixture
def archive(store, store_url, tmp_path) -> BrokerArchive:
    """Ten messages in five files of one hour, and two in a file of the next."""
    made = BrokerArchive(tmp_path / "archive", BROKER)
    for first in range(0, 10, 2):
        record(store, first, 2)
        flush(store_url, made)
    record(store, 10, 2, start_us=START_US + HOUR_US)
    flush(store_url, made)
    return made


def data(archive: BrokerArchive, number: int = 1):
    """The path of one of the files of the first hour."""
    return data_files(hour_folders(archive.folder)[0])[number].path


def read_by(archive: BrokerArchive) -> tuple[int, list[tuple[str, str]]]:
    """How many files a reader takes, and what it is told of the others."""
    view = archived_files(archive)
    return len(view.files), [(each.file, each.reason) for each in view.set_aside]


def told_by(archive: BrokerArchive) -> dict:
    """What a result over this archive says of itself."""
    completeness = Completeness()
    completeness.note(BROKER, archived_files(archive), [WINDOW])
    return completeness.to_json()


def age(path) -> None:
    """Give a file a time of modification that differs, as writing to it much later would."""
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10_000_000_000))


def empty(path) -> None:
    path.write_bytes(b"")


def cut(path) -> None:
    os.truncate(path, path.stat().st_size - 7)


def flip(path) -> None:
    """Change a byte in the middle, where the values are."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x40
    path.write_bytes(content)
    age(path)


def flip_unseen(path) -> None:
    """The same as a disk does it: nobody wrote, so the time stays."""
    before = path.stat().st_mtime_ns
    flip(path)
    os.utime(path, ns=(0, before))


def test_each_file_of_an_archive_is_in_the_manifest_of_its_hour_with_rows_range_and_checksum(archive):
    for hour in hour_folders(archive.folder):
        for file in data_files(hour):
            entry = manifest.read(hour)[file.path.name]
            assert entry.crc32 == manifest.crc32_of(file.path)
            assert (entry.rows, entry.bytes) == (EVENTS, file.path.stat().st_size)
            times = pq.read_table(file.path, columns=["ts"], partitioning=None)["ts"].cast(pa.int64()).to_pylist()
            assert (entry.first_us, entry.last_us) == (min(times), max(times))
    assert read_by(archive) == (6, [])
    assert told_by(archive) == {
        "complete": True, "files": 6, "files_set_aside": 0, "rows_missing": 0, "lost_batches": 0, "set_aside": [],
        "sentence": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("harm", "reason"),
    [(lambda path: path.unlink(), MISSING), (empty, DAMAGED), (cut, DAMAGED), (flip, DAMAGED)],
    ids=["missing", "empty", "cut", "flipped"],
)
def test_a_file_that_is_not_what_was_written_is_not_read_and_the_result_names_it(archive, harm, reason):
    path = data(archive)
    harm(path)
    assert read_by(archive) == (5, [(path.name, reason)])
    told = told_by(archive)
    assert (told["complete"], told["rows_missing"]) == (False, EVENTS)
    assert told["sentence"] == (
        f"1 file of the archive was not read, 17% of the recorded events ({EVENTS}): "
        f"{BROKER}/{path.parent.parent.name}/{path.parent.name}/{path.name} ({reason})."
    )


def test_a_folder_of_an_hour_that_is_missing_is_noticed_with_all_its_events(archive):
    shutil.rmtree(hour_folders(archive.folder)[0])
    assert [reason for _, reason in read_by(archive)[1]] == [MISSING] * 5
    assert told_by(archive)["rows_missing"] == 5 * EVENTS


def test_damage_outside_the_time_range_of_a_result_is_none_of_its_business(archive):
    data(archive).unlink()
    completeness, later = Completeness(), TimeWindow(START_US + HOUR_US, START_US + 2 * HOUR_US)
    completeness.note(BROKER, archived_files(archive, [(later.since_us, later.until_us)]), [later])
    assert completeness.to_json()["complete"]


def test_a_file_that_somebody_put_there_is_not_counted(archive):
    path = data(archive)
    copied = path.with_name("part-1-7.parquet")
    shutil.copyfile(path, copied)
    pq.write_table(pa.table({"x": [1]}), path.with_name("mine.parquet"))
    assert sorted(read_by(archive)[1]) == [("mine.parquet", FOREIGN), ("part-1-7.parquet", FOREIGN)]
    assert read_by(archive)[0] == 6
    Integrity(archive).check()
    assert archived(archive) == expected(range(12))  # other engines do not see them any more, either
    assert {(each.file, each.reason) for each in set_aside(archive.folder)} == {
        ("mine.parquet", FOREIGN), ("part-1-7.parquet", FOREIGN),
    }  # fmt: skip


def test_a_copied_archive_is_read_once_for_its_checksums_and_is_complete(archive, tmp_path, monkeypatch):
    shutil.copytree(archive.folder.parent, tmp_path / "copy", copy_function=shutil.copyfile)
    copied, read = BrokerArchive(tmp_path / "copy", BROKER), []
    computed = manifest.crc32_of
    monkeypatch.setattr(manifest, "crc32_of", lambda path: read.append(path) or computed(path))
    assert read_by(copied) == (6, [])
    assert read_by(copied) == (6, [])
    assert len(read) == 6
    Integrity(copied).check()  # notes the new times: no other process has to
    manifest._matches.cache_clear()
    assert read_by(copied) == (6, [])
    assert len(read) == 6


def test_what_looks_unchanged_is_not_read_for_its_checksum(archive, monkeypatch):
    monkeypatch.setattr(manifest, "crc32_of", lambda _path: pytest.fail("a file was read"))
    assert read_by(archive) == (6, [])


def test_damage_that_nobody_wrote_is_found_once_a_day(archive):
    path, now = data(archive), time.time()
    integrity = Integrity(archive)
    for _ in range(3):
        integrity.step(now)
    flip_unseen(path)
    for _ in range(3):
        integrity.step(now + 60)
    assert set_aside(archive.folder) == []
    for _ in range(3):
        integrity.step(now + 60 + VERIFY_SECONDS)
    assert [(each.file, each.reason, each.rows) for each in set_aside(archive.folder)] == [(path.name, DAMAGED, EVENTS)]
    assert not path.exists()


def test_a_damaged_file_is_moved_out_of_the_way_named_once_and_read_again_when_it_is_restored(archive, caplog):
    path = data(archive)
    sound = path.read_bytes()
    empty(path)
    integrity = Integrity(archive)
    integrity.check()
    integrity.check()
    assert not path.exists()
    assert archived(archive) == expected([0, 1, *range(4, 12)])  # what DuckDB reads: it would fail of an empty file
    assert [record.message.partition(" is not read")[0] for record in caplog.records] == [
        f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
    ]
    assert read_by(archive) == (5, [(path.name, DAMAGED)])
    path.write_bytes(sound)
    assert read_by(archive) == (6, [])
    integrity.check()
    assert set_aside(archive.folder) == []


def test_nothing_is_moved_while_somebody_reads(archive):
    cut(data(archive))
    with read_lock(archive.folder.parent):
        Integrity(archive).check()
        assert data(archive).exists()
    Integrity(archive).check()
    assert read_by(archive)[0] == 5
    assert len(data_files(hour_folders(archive.folder)[0])) == 4


def test_compaction_goes_on_beside_damage_and_counts_it_still(archive):
    path = data(archive)
    empty(path)
    tidy(archive)
    assert read_by(archive) == (2, [(path.name, DAMAGED)])
    assert archived(archive) == expected([0, 1, *range(4, 12)])
    assert told_by(archive)["rows_missing"] == EVENTS


@pytest.mark.parametrize("fault", ["merged", "before-exchange", "exchanged", "settled", "put-away"])
def test_after_a_compaction_that_was_killed_nothing_seems_missing_or_foreign(fault, archive, environment_variables):
    assert exit_of_housekeeping(environment_variables, fault, LATER_US) == -signal.SIGKILL
    assert read_by(archive)[1] == []
    archive.recover()
    tidy(archive)
    assert read_by(archive) == (2, [])
    assert all(not each.replaces for hour in hours_of(archive.folder) for each in manifest.read(hour).values())


@pytest.mark.parametrize("fault", ["staged", "before-commit", "committed", "published", "listed", "before-trim"])
def test_after_an_archiver_that_was_killed_nothing_seems_missing_or_foreign(
    fault, archive, store, store_url, environment_variables
):
    record(store, 12, 90, start_us=START_US + HOUR_US, step_us=60_000_000)
    assert exit_of_archiver(environment_variables, fault) == -signal.SIGKILL
    assert read_by(archive)[1] == []
    flush(store_url, archive)
    assert read_by(archive)[1] == []
    names = {file.path.name for hour in hour_folders(archive.folder) for file in data_files(hour)}
    assert names == {name for hour in hours_of(archive.folder) for name in manifest.read(hour)}


def test_retention_takes_the_manifest_with_its_hour_and_nothing_seems_missing(archive):
    from analytics.archive.housekeeping import ArchiveLimits

    tidy(archive, ArchiveLimits(days=8.5 / 24))
    assert len(hours_of(archive.folder)) == 1
    assert read_by(archive) == (1, [])


def test_retention_forgets_an_hour_whose_folder_is_missing(archive):
    from analytics.archive.housekeeping import ArchiveLimits

    shutil.rmtree(hour_folders(archive.folder)[0])
    tidy(archive, ArchiveLimits(days=8.5 / 24))
    assert read_by(archive) == (1, [])


def test_an_archive_of_an_earlier_version_opens_and_gets_its_manifests(archive):
    shutil.rmtree(archive.folder / manifest.FOLDER)
    assert read_by(archive) == (6, [])
    empty(data(archive))
    assert read_by(archive) == (5, [(data(archive).name, DAMAGED)])
    tidy(archive)
    assert read_by(archive)[0] == 2
    assert archived(archive) == expected([0, 1, *range(4, 12)])
    assert {hour.parts[-2:] for hour in hours_of(archive.folder)} == {
        hour.parts[-2:] for hour in hour_folders(archive.folder)
    }


def test_an_archiver_that_appends_to_an_hour_of_an_earlier_version_lists_what_was_there(archive, store, store_url):
    shutil.rmtree(archive.folder / manifest.FOLDER)
    record(store, 12, 1)
    flush(store_url, archive)
    assert len(manifest.read(hour_folders(archive.folder)[0])) == 6
    assert read_by(archive) == (7, [])


def test_a_line_that_was_not_written_whole_costs_only_itself(archive, store, store_url):
    hour = hour_folders(archive.folder)[0]
    written = manifest.path_of(hour).read_bytes()
    manifest.path_of(hour).write_bytes(written[:-20])
    flush(store_url, archive)
    record(store, 12, 1)
    flush(store_url, archive)
    assert len(inspect(hour).files) == 5 + 1 - 1
    assert [each.reason for each in inspect(hour).set_aside] == [FOREIGN]
