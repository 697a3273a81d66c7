"""Test backups of databases and of recorded traffic: SQLite, PostgreSQL, archives and their lists."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from analytics.archive import manifest
from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.stream_ids import position_of
from analytics.rollups.store import NAME as ROLLUPS
from brokerapp.backup.container import BackupReader, BackupWriter, PartWriter
from brokerapp.backup.data_folder import HARMLESS, RestoreOwner, check_data_folder, restoring, write_mark
from brokerapp.backup.encryption import PassphraseKey
from brokerapp.backup.manifest import BackupManifest
from brokerapp.errors import BackupRefused
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.system.environment import Environment
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import TraceRecorder
from console.backups import postgresql as postgresql_programs
from console.backups.database import POSTGRESQL, SQLITE, add_database, check_database, restored_database
from console.backups.recorded_traffic import (
    MISSING,
    add_recorded_traffic,
    archived_until,
    restore_recorded_traffic,
)
from tests.analytics.recorded_traffic import message
from tests.ports import free_port
from tests.waiting import wait_until

KEY = PassphraseKey("a passphrase", b"salt" * 4, {"n": 2, "r": 1, "p": 1})


MARK_OF_RESTORED = RestoredMark(RestoredRole.UNDECIDED, "orders", "mars", "2026-11-28T10:00:00.000+00:00")


def restore(reader: BackupReader, url: str, data: Path, end=lambda: None) -> None:
    """Restore a database with a data folder; `end` is called when the database is restored."""
    owner = RestoreOwner(secrets.token_hex(8), MARK_OF_RESTORED)
    with restoring(data, owner, HARMLESS) as folder, restored_database(reader, url, folder):
        end()
        write_mark(folder.prepared, MARK_OF_RESTORED)
        folder.move_up()


@pytest.fixture
def backup_of(tmp_path):
    """Write a backup of what a function adds, and open it."""
    opened = []

    def backup_of(add) -> BackupReader:
        with BackupWriter(tmp_path / f"file-{len(opened)}", KEY) as writer:
            add(writer)
            writer.finish(BackupManifest("orders", "here", "2026-11-28T10:00:00.000+00:00", "1.0.0"))
        opened.append(BackupReader(writer.path))
        opened[-1]._key = KEY
        return opened[-1]

    yield backup_of
    for each in opened:
        each._file.close()


def test_a_sqlite_database_that_is_written_to_is_copied_as_of_one_moment(tmp_path, backup_of):
    path, ending = tmp_path / "console.sqlite3", threading.Event()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE pair (one, other)")
        database.commit()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=30)) as writer:
            number = 0
            while not ending.is_set():
                number += 1
                writer.execute("INSERT INTO pair VALUES (?, ?)", (number, None))
                writer.execute("UPDATE pair SET other = one WHERE one = ?", (number,))
                writer.commit()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with closing(sqlite3.connect(path)) as database:
            count = "SELECT count(*) FROM pair"
            wait_until(lambda: database.execute(count).fetchone()[0] > 50, "rows are written")
        reader = backup_of(lambda writer: add_database(writer, f"sqlite:///{path}"))
    finally:
        ending.set()
        thread.join()
    data = tmp_path / "data"
    restore(reader, f"sqlite:///{data}/console.sqlite3", data)
    with closing(sqlite3.connect(data / "console.sqlite3")) as database:
        rows = database.execute("SELECT one, other FROM pair").fetchall()
    assert rows, "nothing was written meanwhile"
    assert [row for row in rows if row[0] != row[1]] == []


def test_a_backup_that_is_killed_leaves_no_plain_copy_of_a_database(archive, tmp_path, backup_of, monkeypatch):
    secret, found = b"the secret of a user", []
    path, rollups = tmp_path / "console.sqlite3", archive.archive / "broker=orders" / ROLLUPS
    for each in (path, rollups):
        with closing(sqlite3.connect(each)) as database:
            database.execute("CREATE TABLE one (secret)")
            database.executemany("INSERT INTO one VALUES (?)", [(secret.decode(),)] * 1000)  # more than tarfile holds
            database.commit()
    write = PartWriter.write

    def write_and_look(part, data):
        """See what would be left if the process were killed while the content of a copy is written."""
        if secret in data:
            files = {each for each in tmp_path.rglob("*") if each.is_file()} - {path, rollups}
            found.append([each for each in files if secret in each.read_bytes()])
        return write(part, data)

    def add(writer) -> None:
        add_database(writer, f"sqlite:///{path}")
        add_recorded_traffic(writer, archive, with_files=True)

    monkeypatch.setattr(PartWriter, "write", write_and_look)
    reader = backup_of(add)
    assert len(found) > 2
    assert not any(found)
    restored = tmp_path / "restored"
    reader.extract(SQLITE, restored)
    with closing(sqlite3.connect(restored)) as database:
        assert database.execute("SELECT count(*) FROM one").fetchone() == (1000,)


def test_a_database_of_another_kind_is_refused(tmp_path, backup_of):
    sqlite3.connect(tmp_path / "console.sqlite3").close()
    reader = backup_of(lambda writer: add_database(writer, f"sqlite:///{tmp_path}/console.sqlite3"))
    with pytest.raises(BackupRefused, match="the backup holds a SQLite database: restore it without DATABASE_URL"):
        check_database(reader, "postgres://sluice@127.0.0.1/sluice")
    with pytest.raises(BackupRefused, match=r"console.sqlite3 exists: restore into an empty folder"):
        check_database(reader, f"sqlite:///{tmp_path}/console.sqlite3")


def test_a_missing_program_of_postgresql_is_named(tmp_path, monkeypatch, backup_of):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupRefused, match="pg_dump not found: install the client programs of PostgreSQL"):
        backup_of(lambda writer: add_database(writer, "postgres://sluice@127.0.0.1/sluice"))


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a program in the place of one of PostgreSQL, which behaves as it does on a bad day."""

    def program(name: str, script: str) -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")

    return program


def test_a_dump_with_more_warnings_than_a_pipe_holds_is_complete(program, backup_of):
    program("pg_dump", "head -c 200000 /dev/zero >&2; printf content")
    reader = backup_of(lambda writer: add_database(writer, "postgres://sluice@127.0.0.1/sluice"))
    assert reader.read(POSTGRESQL) == b"content"


def test_programs_of_postgresql_that_hang_are_stopped(program, backup_of, monkeypatch, tmp_path):
    program("pg_dump", "printf content")
    program("psql", "exit 0")
    reader = backup_of(lambda writer: add_database(writer, "postgres://sluice@127.0.0.1/sluice"))
    monkeypatch.setattr(postgresql_programs, "SILENT_SECONDS", 0.3)
    for name in ("pg_dump", "pg_restore"):
        program(name, "echo $$ > $0.pid; exec sleep 60")
    with pytest.raises(BackupRefused, match="pg_dump was stopped: it did nothing for 0 seconds"):
        backup_of(lambda writer: add_database(writer, "postgres://sluice@127.0.0.1/sluice"))
    with pytest.raises(BackupRefused, match="pg_restore was stopped"):
        restore(reader, "postgres://sluice@127.0.0.1/sluice", tmp_path / "data")
    for pid in (tmp_path / "bin").glob("*.pid"):
        assert not Path("/proc", pid.read_text().strip()).exists(), f"{pid.stem} runs still"


def _as_nobody() -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []


@pytest.fixture(scope="module")
def postgresql():
    """Run a server of PostgreSQL with a password, and yield the URL of a database in it."""
    if not (shutil.which("initdb") and shutil.which("postgres") and shutil.which("pg_dump")):
        pytest.skip("needs PostgreSQL")
    folder, port = Path(tempfile.mkdtemp(prefix="sluice-pg-")), free_port()
    try:
        (folder / "password").write_text("secret of the database")
        if os.geteuid() == 0:
            for each in (folder, folder / "password"):
                shutil.chown(each, "nobody", "nogroup")
        initdb = ["initdb", "--no-sync", "-U", "sluice", f"--pwfile={folder}/password", "-A", "scram-sha-256"]
        subprocess.run([*_as_nobody(), *initdb, str(folder / "data")], check=True, capture_output=True, cwd="/")
        options = ["-D", str(folder / "data"), "-p", str(port), "-k", str(folder), "-h", "127.0.0.1", "-c", "fsync=off"]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen([*_as_nobody(), "postgres", *options], stdout=log, stderr=log, cwd="/")
        try:
            url = f"postgres://sluice:secret of the database@127.0.0.1:{port}".replace(" ", "%20")
            wait_until(lambda: _sql(f"{url}/postgres", "SELECT 1") == "1", "PostgreSQL answers")
            for name in ("first", "second", "third", "fourth"):
                _sql(f"{url}/postgres", f"CREATE DATABASE {name}")
            yield url
        finally:
            server.terminate()
            server.wait(30)
    finally:
        shutil.rmtree(folder)


def _sql(url: str, statement: str) -> str:
    done = subprocess.run(["psql", "-At", url, "-c", statement], capture_output=True, text=True, check=False)
    return done.stdout.strip()


@pytest.mark.slow
def test_a_postgresql_database_is_restored_into_an_empty_one_only(postgresql, tmp_path, backup_of):
    _sql(f"{postgresql}/first", "CREATE TABLE one AS SELECT 42 AS answer")
    reader = backup_of(lambda writer: add_database(writer, f"{postgresql}/first"))
    second = f"{postgresql}/second"
    check_database(reader, second)
    restore(reader, second, tmp_path / "data")
    assert _sql(second, "SELECT answer FROM one") == "42"
    assert _tables(second) == "one"
    _sql(second, "UPDATE one SET answer = 43")
    for refused in (lambda: check_database(reader, second), lambda: restore(reader, second, tmp_path / "other")):
        with pytest.raises(BackupRefused, match="the database second is not empty, it holds one: name an empty one"):
            refused()
    assert _sql(second, "SELECT answer FROM one") == "43"
    with pytest.raises(BackupRefused, match=r"pg_dump failed: .*password authentication failed"):
        backup_of(lambda writer: add_database(writer, f"{postgresql}/first".replace("secret", "wrong")))


@pytest.mark.slow
def test_a_postgresql_database_is_empty_again_after_a_restore_that_failed(postgresql, tmp_path, backup_of):
    third = f"{postgresql}/third"
    _sql(third, "CREATE TABLE one (id serial PRIMARY KEY); CREATE TABLE other (one int REFERENCES one); "
         "CREATE VIEW both_of_them AS SELECT * FROM one, other")  # fmt: skip
    reader = backup_of(lambda writer: add_database(writer, third))
    _sql(third, "DROP VIEW both_of_them; DROP TABLE one CASCADE; DROP TABLE other")

    def fail() -> None:
        assert _tables(third) == "both_of_them\none\nother\nsluice_restore"
        raise InterruptedError

    with pytest.raises(InterruptedError):
        restore(reader, third, tmp_path / "data", fail)
    assert _tables(third) == ""
    restore(reader, third, tmp_path / "data")
    assert _tables(third) == "both_of_them\none\nother"


@pytest.mark.slow
def test_a_postgresql_database_that_a_killed_restore_filled_is_emptied_by_the_next_one_only(
    postgresql, tmp_path, backup_of
):
    _sql(f"{postgresql}/first", "CREATE TABLE one AS SELECT 42 AS answer")
    reader = backup_of(lambda writer: add_database(writer, f"{postgresql}/first"))
    fourth = f"{postgresql}/fourth"
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        restore(reader, fourth, tmp_path / "data", lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert _tables(fourth) == "one\nsluice_restore"
    check_database(reader, fourth)
    with pytest.raises(BackupRefused, match="another restore fills the database fourth, or was killed as it did"):
        restore(reader, fourth, tmp_path / "other")
    assert _tables(fourth) == "one\nsluice_restore"

    copied = backup_of(lambda writer: add_database(writer, fourth))
    restore(reader, fourth, tmp_path / "data")
    assert _sql(fourth, "SELECT answer FROM one") == "42"
    _sql(fourth, "DROP TABLE one")
    restore(copied, fourth, tmp_path / "other")
    assert _tables(fourth) == "one", "no backup has the table that marks a restore"


def _tables(url: str) -> str:
    return _sql(url, "SELECT relname FROM pg_stat_user_tables UNION SELECT viewname FROM pg_views WHERE schemaname = "
                "'public' ORDER BY 1")  # fmt: skip


# -- recorded traffic


@pytest.fixture
def archive(tmp_path):
    """Write an archive of two appends, and return the environment of its installation."""
    environment = replace(Environment.read({}), data=tmp_path / "original")
    for number in (1, 2):
        _append(environment, number)
    return environment


def test_the_data_folder_of_a_restore_may_hold_an_archive_that_was_copied_before(tmp_path):
    (tmp_path / "archive").mkdir()
    check_data_folder(tmp_path, frozenset({"archive"}))
    with pytest.raises(BackupRefused, match="is not empty, it holds archive"):
        check_data_folder(tmp_path, frozenset())


def test_recorded_traffic_is_restored_and_goes_on_where_it_ended(archive, tmp_path, backup_of):
    (archive.results / "one").mkdir(parents=True)
    (archive.results / "one" / "table.csv").write_text("result")
    reader = backup_of(lambda writer: add_recorded_traffic(writer, archive, with_files=True))
    target, work = replace(archive, data=tmp_path / "target"), tmp_path / "work"
    work.mkdir()
    assert archived_until(reader, target, "orders") == ("2-0", 2)
    assert restore_recorded_traffic(reader, target, work, "orders", "copy") == []
    files = {str(each.relative_to(work)) for each in work.rglob("*.parquet")}
    original = {str(each.relative_to(archive.data)) for each in archive.archive.rglob("*.parquet")}
    assert {each.replace("broker=copy", "broker=orders") for each in files} == original != set()
    assert (work / "results" / "one" / "table.csv").read_text() == "result"


def test_an_append_that_is_committed_but_not_published_is_in_the_backup(archive, tmp_path, backup_of):
    _append(archive, 3, end_at="committed")
    restored = _restored(archive, tmp_path, backup_of)
    assert restored.recover().offset == "3-0"
    assert _entries(restored) == [1, 2, 3]


def test_an_append_during_the_backup_is_left_out_as_a_whole(archive, tmp_path, backup_of):
    record = archive.archive / "broker=orders" / "_commit.json"
    before = record.read_bytes()
    _append(archive, 3)
    record.write_bytes(before)  # as if the record had been read before the append, and all else after it
    restored = _restored(archive, tmp_path, backup_of)
    assert restored.recover().offset == "2-0"
    assert _entries(restored) == [1, 2]
    hours = manifest.hours_of(restored.folder)
    assert [each for hour in hours for each in manifest.inspect(hour).set_aside] == []


def test_hours_of_an_earlier_version_without_manifests_are_in_the_backup(archive, tmp_path, backup_of):
    shutil.rmtree(archive.archive / "broker=orders" / manifest.FOLDER)
    assert _entries(_restored(archive, tmp_path, backup_of)) == [1, 2]


def test_files_with_two_names_are_restored_under_both(archive, tmp_path, backup_of):
    folder = archive.results / "one"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("result")
    (folder / "b.csv").hardlink_to(folder / "a.csv")
    _restored(archive, tmp_path, backup_of)
    restored = tmp_path / "work" / "results" / "one"
    assert [(restored / name).stat().st_nlink for name in ("a.csv", "b.csv")] == [1, 1]


def test_files_that_the_archive_lost_are_named_in_the_backup(archive, backup_of):
    next(archive.archive.rglob("*.parquet")).unlink()
    left_out = []
    backup_of(lambda writer: left_out.extend(add_recorded_traffic(writer, archive, with_files=True)))
    assert left_out == ["files that the archive has lost: 1"]


def _append(environment, number: int, end_at: str = "") -> None:
    """Append an event to the archive; the process ends at a step."""

    def at(step: str) -> None:
        if step == end_at:
            raise InterruptedError

    recorder, us = TraceRecorder("orders"), 1_760_000_000_000_000 + number * 3_600_000_000
    recorder.record_enqueue(us, [message(number, us)], "queue://q")
    with suppress(InterruptedError):
        BrokerArchive(environment.archive, "orders", at).append(
            decode(recorder.take_encoded()[0]), ArchiveCommit(f"{number}-0", ordinal=number)
        )


def _restored(environment, tmp_path, backup_of) -> BrokerArchive:
    reader = backup_of(lambda writer: add_recorded_traffic(writer, environment, with_files=True))
    work = tmp_path / "work"
    work.mkdir()
    restore_recorded_traffic(reader, replace(environment, data=tmp_path / "target"), work, "orders", "orders")
    return BrokerArchive(work / "archive", "orders")


def _entries(archive: BrokerArchive) -> list[int]:
    """Return the ordinals of the entries whose events can be read."""
    return [each["entry"][0].as_py() // position_of("1-0") for each in archive.events_after(0)]


def test_a_restore_says_which_files_of_the_archive_are_missing(archive, tmp_path, backup_of):
    reader = backup_of(lambda writer: add_recorded_traffic(writer, archive, with_files=False))
    target, work = replace(archive, data=tmp_path / "target"), tmp_path / "work"
    work.mkdir()
    assert archived_until(reader, target, "orders") is None
    shutil.copytree(archive.archive, target.archive)
    assert archived_until(reader, target, "orders") == ("2-0", 2)
    assert restore_recorded_traffic(reader, target, work, "orders", "orders") == []
    lost = sorted(target.archive.rglob("*.parquet"))[0]
    lost.unlink()
    [sentence] = restore_recorded_traffic(reader, target, work, "orders", "orders")
    assert "1 files with" in sentence
    assert (work / MISSING).read_text().split("\t")[1].strip() == str(lost.relative_to(target.archive))
