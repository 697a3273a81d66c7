"""Test backups of databases and of recorded traffic: SQLite, PostgreSQL, archives and their lists."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from brokerapp.backup.container import BackupReader, BackupWriter
from brokerapp.backup.data_folder import check_data_folder
from brokerapp.backup.encryption import PassphraseKey
from brokerapp.backup.manifest import BackupManifest
from brokerapp.errors import BackupRefused
from brokerapp.system.environment import Environment
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import TraceRecorder
from console.backups.database import add_database, check_database, restore_database
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
    data, work = tmp_path / "data", tmp_path / "work"
    work.mkdir()
    restore_database(reader, f"sqlite:///{data}/console.sqlite3", data, work)
    with closing(sqlite3.connect(work / "console.sqlite3")) as database:
        rows = database.execute("SELECT one, other FROM pair").fetchall()
    assert rows, "nothing was written meanwhile"
    assert [row for row in rows if row[0] != row[1]] == []


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
            for name in ("first", "second"):
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
    check_database(reader, f"{postgresql}/second")
    restore_database(reader, f"{postgresql}/second", tmp_path, tmp_path)
    assert _sql(f"{postgresql}/second", "SELECT answer FROM one") == "42"
    _sql(f"{postgresql}/second", "UPDATE one SET answer = 43")
    with pytest.raises(BackupRefused, match=r"pg_restore failed without changes: .*already exists"):
        restore_database(reader, f"{postgresql}/second", tmp_path, tmp_path)
    assert _sql(f"{postgresql}/second", "SELECT answer FROM one") == "43"
    with pytest.raises(BackupRefused, match=r"pg_dump failed: .*password authentication failed"):
        backup_of(lambda writer: add_database(writer, f"{postgresql}/first".replace("secret", "wrong")))


# -- recorded traffic


@pytest.fixture
def archive(tmp_path):
    """Write an archive of two appends, and return the environment of its installation."""
    environment = replace(Environment.read({}), data=tmp_path / "original")
    made, recorder = BrokerArchive(environment.archive, "orders"), TraceRecorder("orders")
    for number in (1, 2):
        at = 1_760_000_000_000_000 + number * 3_600_000_000
        recorder.record_enqueue(at, [message(number, at)], "queue://q")
        made.append(decode(recorder.take_encoded()[0]), ArchiveCommit(f"{number}-0", ordinal=number))
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
