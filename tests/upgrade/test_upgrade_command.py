"""Test `sluice upgrade` as operators run it: what it says, what it refuses, and that it can be killed at any step."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import tarfile
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.archive import bloom_index, format_file, manifest
from analytics.archive.archiver import FAULT_VARIABLE
from analytics.archive.bloom_index import IndexKey
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import ARCHIVED, data_files, hour_folders
from analytics.archive.format_file import read_format, write_format
from analytics.archive.upgrade import rewriting, steps
from analytics.archive.upgrade.rewriting import ArchiveInUse, outdated_hours, rewrite_archive
from analytics.archive.upgrade.steps import archive_states
from analytics.tables.day_manifest import HourRecord, SourceFile, needs_computing
from brokerapp.backup.data_folder import write_mark
from brokerapp.errors import ConfigurationRefused
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.system.environment import PROJECT, Environment
from brokerapp.system.process_lock import lock_directory
from brokerapp.upgrades.plan import PartState, UpgradeFailed
from brokerapp.upgrades.run import Upgrade, add_options, stopped_installation
from brokerapp.version import VERSION
from tests.upgrade.installed import FIXTURES, manage, variables_of

#: Messages in the archives of the fixture, by broker; each has four events.
MESSAGES = {"first": 360, "sluice": 900}
INDEXED = ("region",)


@pytest.fixture
def data(tmp_path, migrated) -> Path:
    """A data folder with a database of this version, and the archive of two early ones."""
    (tmp_path / "console.sqlite3").write_bytes(migrated.read_bytes())
    with tarfile.open(FIXTURES / "archive-of-format-1.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def run(data: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        manage("upgrade", *options), cwd=PROJECT, env=variables_of(data, **variables), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip


def events(data: Path, broker: str) -> Counter:
    """How often each event is in an archive, as an engine that is not ours reads it."""
    rows = duckdb.sql(
        f"SELECT kind, msg_id, destination, epoch_us(ts) FROM read_parquet("
        f"'{data}/archive/broker={broker}/day=*/hour=*/part-*.parquet', union_by_name=true)"
    ).fetchall()
    return Counter(rows)


def archives(data: Path) -> list[BrokerArchive]:
    return BrokerArchive.archives_in(data / "archive")


def check_upgraded(data: Path, before: dict[str, Counter]) -> None:
    """Compare archives with what they held, and look into each file, manifest and index."""
    for archive in archives(data):
        assert events(data, archive.broker) == before[archive.broker]
        assert read_format(archive.folder) == 2
        assert outdated_hours(archive.folder) == []
        for hour in hour_folders(archive.folder):
            files = {each.path.name for each in data_files(hour)}
            assert set(manifest.read(hour) or ()) == files == bloom_index.indexed_files(hour)
            assert not (hour / bloom_index.NAME_V1).exists()
            assert all(pq.read_schema(hour / each).equals(ARCHIVED) for each in files)
            assert all((hour / each).stat().st_nlink == 1 for each in files), "what was replaced is deleted"
    assert not any((data / "archive.work").rglob("part-*"))


def content_of(folder: Path) -> dict[Path, bytes]:
    """Each file of a folder, and each folder in it."""
    return {each: each.read_bytes() if each.is_file() else b"" for each in folder.rglob("*")}


def environment_of(data: Path) -> Environment:
    return Environment.read({"SLUICE_DATA": str(data)})


class InProcess:
    """An upgrade of the archives of a data folder in this process, with a backup that is noted and may fail."""

    def __init__(self, data: Path, *options: str, backup_fails: bool = False, position: str = "1:7") -> None:
        self.lines: list[str] = []
        self.backups: list[list[str]] = []
        self._data, self._fails = data, backup_fails
        self._store = PartState("store", "format 1", "1 to 2", position=position)
        parser = ArgumentParser()
        add_options(parser)
        self._options = parser.parse_args(options)

    def _backup(self, arguments: list[str]) -> int:
        self.backups.append(arguments)
        assert [read_format(each.folder) for each in archives(self._data)] == [1, 1], "it comes before anything else"
        Path(arguments[0]).touch()
        return int(self._fails)

    def _inspect(self) -> list[PartState]:
        return [self._store, *archive_states(environment_of(self._data))]

    def run(self) -> int:
        work = Upgrade(self._data, self._inspect, self._backup, self.lines.append)
        return work.check() if self._options.check else work.run(self._options)


def test_a_backup_is_made_first_in_a_folder_of_the_installation(data):
    upgrade = InProcess(data, "--yes")
    assert upgrade.run() == 0
    [[file]] = upgrade.backups
    assert Path(file).parent == data / "backups"
    assert Path(file).match(f"before-{VERSION}-*.backup")
    assert (data / "backups").stat().st_mode & 0o777 == 0o700
    assert json.loads((data / "upgrade.json").read_bytes())["backup"] == file
    again = InProcess(data, "--check")
    assert (again.run(), again.lines[-1]) == (0, "Nothing to upgrade.")
    assert upgrade.lines[-2:] == [
        f"Keep the backup {file}: with it you can return to the version before.", "Next: start Sluice.",
    ]  # fmt: skip


def test_the_folder_of_a_backup_that_is_named_keeps_its_permissions(data):
    shared = data / "shared"
    shared.mkdir(mode=0o755)
    shared.chmod(0o755)
    assert InProcess(data, "--yes", "--backup", str(shared / "b")).run() == 0
    assert shared.stat().st_mode & 0o777 == 0o755


def test_where_the_backup_fails_nothing_is_upgraded(data):
    upgrade = InProcess(data, "--yes", "--backup", str(data / "b"), "--passphrase-file", "p", backup_fails=True)
    with pytest.raises(UpgradeFailed, match="the backup failed, and nothing was changed"):
        upgrade.run()
    assert upgrade.backups == [[str(data / "b"), "--passphrase-file", "p"]]
    assert [read_format(each.folder) for each in archives(data)] == [1, 1]
    assert not (data / "upgrade.json").exists()


def _interrupt(step: str) -> None:
    raise KeyboardInterrupt


def interrupted(data: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> InProcess:
    """Run an upgrade that ends at its first step."""
    first = InProcess(data, "--yes", *options)
    with monkeypatch.context() as patched:
        patched.setattr(steps, "fault_injector", lambda _text: _interrupt)
        with pytest.raises(KeyboardInterrupt):
            first.run()
    return first


def test_an_upgrade_that_was_interrupted_makes_no_second_backup(data, monkeypatch):
    [[file]] = interrupted(data, monkeypatch).backups
    second = InProcess(data, "--yes")
    assert (second.run(), second.backups) == (0, [])
    assert f"Its backup is still valid, as no node has run since: {file}" in second.lines
    assert json.loads((data / "upgrade.json").read_bytes())["backup"] == file


def test_a_node_that_ran_since_an_upgrade_was_interrupted_makes_a_second_backup_necessary(data, monkeypatch):
    [[file]] = interrupted(data, monkeypatch, "--backup", str(data / "first")).backups
    second = InProcess(data, "--yes", "--backup", str(data / "second"), position="2:9")
    assert (second.run(), second.backups) == (0, [[str(data / "second")]])
    assert f"A new backup is made: the broker has run since {file} was made." in second.lines


def test_a_backup_that_is_gone_and_one_that_was_not_wanted_before_are_made(data, monkeypatch):
    interrupted(data, monkeypatch, "--no-backup")
    [[file]] = interrupted(data, monkeypatch).backups
    Path(file).unlink()
    again = InProcess(data, "--yes")
    assert again.run() == 0
    assert (len(again.backups), f"A new backup is made: {file} does not exist." in again.lines) == (1, True)


def test_an_installation_whose_restore_was_killed_is_not_upgraded_and_can_be_restored(data):
    write_mark(data, RestoredMark(RestoredRole.INCOMPLETE, "sluice", "mars", "2026-11-28T10:00:00.000+00:00"))
    found = content_of(data)
    refused = run(data, "--yes", "--no-backup")
    assert "was not completely restored from the backup of 2026-11-28 10:00:00 UTC" in refused.stderr
    assert refused.returncode == 1
    assert content_of(data) == found


def test_without_a_store_no_backup_can_be_made_and_nothing_is_written(data):
    before = sorted(data.rglob("*"))
    with pytest.raises(UpgradeFailed, match=r"has no store of the broker, .*nothing was changed: copy .*--no-backup"):
        InProcess(data, "--yes", position="").run()
    assert sorted(data.rglob("*")) == before


def test_without_a_terminal_and_without_yes_nothing_is_changed(data, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    upgrade = InProcess(data)
    with pytest.raises(UpgradeFailed, match="not confirmed, and nothing was changed"):
        upgrade.run()
    assert upgrade.backups == []
    assert [read_format(each.folder) for each in archives(data)] == [1, 1]


class Terminal(io.StringIO):
    """What somebody enters at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("entered", ["", "no\n"], ids=["Ctrl-D", "no"])
def test_what_is_not_yes_at_the_terminal_changes_nothing(data, monkeypatch, entered):
    monkeypatch.setattr("sys.stdin", Terminal(entered))
    upgrade = InProcess(data)
    with pytest.raises(UpgradeFailed, match="not confirmed, and nothing was changed"):
        upgrade.run()
    assert upgrade.backups == []


def test_an_installation_that_runs_is_not_upgraded(data):
    lock = lock_directory(data, purpose="sluice upgrade")
    try:
        holder = rf"{data} is in use by process {os.getpid()} \(sluice upgrade\): stop it.*`--check` works"
        with pytest.raises(UpgradeFailed, match=holder), stopped_installation(data):
            raise AssertionError
    finally:
        lock.release()
    with stopped_installation(data):
        pass


LONG = [pytest.param(step, marks=pytest.mark.long) for step in ("merged:2", "settled:2", "put-away:4")]


@pytest.mark.parametrize("step", ["exchanged:3", *LONG])
def test_the_command_shows_what_is_to_be_done_and_one_that_is_killed_continues_when_it_is_run_again(data, step):
    before = {each: events(data, each) for each in MESSAGES}
    assert {each: sum(found.values()) for each, found in before.items()} == {
        each: 4 * count for each, count in MESSAGES.items()
    }
    (data / "console.sqlite3").unlink()
    found = content_of(data)
    check = run(data, "--check")
    assert (check.returncode, check.stderr) == (1, "")
    assert re.search(r"database +none +made when Sluice starts", check.stdout)
    assert "  2. archive of broker sluice, format 1 to 2: rewrite files of earlier versions (4 hours)" in check.stdout
    assert content_of(data) == found, "a check writes nothing"

    killed = run(data, "--yes", "--no-backup", "--verbose", **{FAULT_VARIABLE: step})
    assert killed.returncode == -signal.SIGKILL
    assert "hour 2 of 2: day=2026-11-21/hour=06, 3 files to rewrite" in killed.stdout
    assert {each: events(data, each) for each in MESSAGES} == before, "readers see each event once"

    again = run(data, "--yes", "--no-backup")
    assert (again.returncode, again.stderr) == (0, "")
    assert re.search(r"An upgrade that began at .* was interrupted and is continued\.", again.stdout)
    assert f"Upgraded to Sluice {VERSION} in " in again.stdout
    assert "hour " not in again.stdout, "only --verbose shows each"
    check_upgraded(data, before)
    record = json.loads((data / "upgrade.json").read_bytes())
    assert (record["version"], record["backup"]) == (VERSION, "")
    assert record["began"] <= record["ended"]


def upgrade_in_process(archive: BrokerArchive, fault: str) -> None:
    """Rewrite an archive up to a step, at which an exception ends it."""
    counts = Counter[str]()

    def at(step: str) -> None:
        counts[step] += 1
        if fault == f"{step}:{counts[step]}":
            raise KeyboardInterrupt

    rewrite_archive(archive, INDEXED, lambda _line: None, at)


@pytest.mark.parametrize("step", ["merged", "before-exchange", "exchanged", "settled", "put-away"])
@pytest.mark.parametrize("number", [1, 3])
def test_rewriting_that_ends_at_any_step_of_any_hour_is_finished_by_the_next_run(data, step, number):
    before = {each: events(data, each) for each in MESSAGES}
    archive = BrokerArchive(data / "archive", "sluice")
    with pytest.raises(KeyboardInterrupt):
        upgrade_in_process(archive, f"{step}:{number}")
    assert events(data, "sluice") == before["sluice"]
    for each in archives(data):
        upgrade_in_process(BrokerArchive(data / "archive", each.broker), "")
    check_upgraded(data, before)


def test_messages_are_found_by_id_and_by_property_in_rewritten_files(data):
    archive = BrokerArchive(data / "archive", "first")
    upgrade_in_process(archive, "")
    hour, later = hour_folders(archive.folder)
    for key in (IndexKey("ID:shop-1:7"), IndexKey("eu", "region")):
        may, known = bloom_index.candidates(hour, [key])
        assert may == known == {each.path.name for each in data_files(hour)}
    assert bloom_index.candidates(later, [IndexKey("ID:shop-1:7")])[0] == set()


def test_a_damaged_file_is_left_out_and_the_rest_of_the_hour_is_rewritten(data):
    archive = BrokerArchive(data / "archive", "first")
    hour, _ = hour_folders(archive.folder)
    manifest.create(hour)
    first, *others = data_files(hour)
    found, content = first.path.stat(), bytearray(first.path.read_bytes())
    content[200:600] = bytes(400)  # in the rows, not in the footer
    first.path.write_bytes(content)
    os.utime(first.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    upgrade_in_process(archive, "")
    assert read_format(archive.folder) == 2
    [merged, damaged] = sorted(data_files(hour), key=lambda each: each.path != first.path, reverse=True)
    assert (damaged.path, merged.appends) == (first.path, len(others))


def test_an_archive_that_is_read_or_written_is_not_rewritten(data):
    archive = BrokerArchive(data / "archive", "first")
    with rewriting._alone(archive), pytest.raises(ArchiveInUse, match="an archiver writes to"):
        upgrade_in_process(archive, "")
    with rewriting.exclusive_lock(archive.folder), pytest.raises(ArchiveInUse, match="stop Sluice first"):
        upgrade_in_process(archive, "")


def test_a_file_that_is_rewritten_alone_gets_another_name_and_stays_counted_for_tables(data):
    archive = BrokerArchive(data / "archive", "sluice")
    hour = hour_folders(archive.folder)[0]
    [before] = data_files(hour)
    upgrade_in_process(archive, "")
    [after] = data_files(hour)
    assert (after.last, after.appends) == (before.last, before.appends)
    assert after.path.name == before.path.name.replace("_3", "_03")
    counted = HourRecord((SourceFile(before.path.name, 720, 1),))
    assert not needs_computing(counted, [SourceFile(after.path.name, 720, manifest.crc32_of(after.path))])


def test_rewritten_events_keep_the_version_by_which_they_were_recorded(data):
    archive = BrokerArchive(data / "archive", "first")
    upgrade_in_process(archive, "")
    schemas = [pq.read_schema(each.path) for hour in hour_folders(archive.folder) for each in data_files(hour)]
    assert {each.metadata[b"sluice.events"] for each in schemas} == {b"1"}
    assert schemas[0].field("weight").type == pa.int32()


def test_an_archive_of_a_newer_format_is_refused_with_one_sentence(tmp_path):
    write_format(tmp_path / "broker=b", 3)
    with pytest.raises(
        ConfigurationRefused, match=r"archive has format 3, .*up to 2: use the newer version that wrote it"
    ):
        format_file.check_archives(tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("", "has no format"), ("[]", "has no format"), ('{"format": "2"}', "whole number")],
)
def test_a_record_that_cannot_be_read_is_refused_and_named(tmp_path, content, sentence):
    (tmp_path / "_format.json").write_text(content)
    with pytest.raises(ConfigurationRefused, match=sentence):
        read_format(tmp_path)


def test_a_new_archive_has_the_present_format_from_its_first_moment(tmp_path):
    archive = BrokerArchive(tmp_path, "b")
    archive.recover()
    assert read_format(archive.folder) == format_file.FORMATS.newest
