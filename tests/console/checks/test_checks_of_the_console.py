"""Test the checks of the console: database, Spark, workers, mail, files and addresses; their page, API and command."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from brokerapp.checks import runner
from brokerapp.checks.installation import Installation, of_environment
from brokerapp.checks.results import Level
from brokerapp.system.environment import PROJECT, Environment
from brokerapp.version import VERSION
from console.checks import configuration, services
from console.checks.configuration import Addresses
from console.checks.services import DatabaseReading, MailReading, SparkReading, WorkerReading
from tests.console.conftest import make_user


def levels(findings) -> list[Level]:
    return [each.level for each in findings]


def installation(data: Path, **variables: str) -> Installation:
    return of_environment(Environment.read({"SLUICE_DATA": str(data), **variables}))


# -- the command


@pytest.fixture(scope="module")
def checked(tmp_path_factory, migrated):
    """What the command says of a stopped installation with a database, as JSON, and the files before and after."""
    data = tmp_path_factory.mktemp("installation") / "data"
    data.mkdir(mode=0o700)
    shutil.copy(migrated, data / "console.sqlite3")
    (data / "secret-key").write_text("s" * 60)
    (data / "secret-key").chmod(0o644)
    with sqlite3.connect(data / "console.sqlite3") as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("DELETE FROM django_migrations WHERE id = (SELECT max(id) FROM django_migrations)")
    database.close()
    before = sorted(data.rglob("*"))
    done = run_check(data)
    return json.loads(done.stdout), before, sorted(data.rglob("*")), done.returncode


def run_check(data: Path) -> subprocess.CompletedProcess:
    variables = {**os.environ, "SLUICE_DATA": str(data), "SLUICE_URL": "https://elsewhere.example"}
    for name in ("DATABASE_URL", "REDIS_URL"):
        variables.pop(name, None)
    command = [sys.executable, "manage.py", "checkinstallation", "--json"]
    return subprocess.run(command, cwd=PROJECT, env=variables, capture_output=True, text=True, timeout=60, check=False)


def finding_of(checked, id: str) -> tuple[str, str]:
    [result] = [each for each in checked[0]["checks"] if each["id"] == id]
    return result["level"], result["findings"][0]["text"]


def test_a_database_that_lacks_migrations_is_warned_of(checked):
    level, text = finding_of(checked, "console.database")
    assert level == "warning"
    assert "lacks 1 migrations, the first is" in text


def test_a_secret_that_others_may_read_is_warned_of(checked):
    level, text = finding_of(checked, "files.secrets")
    assert (level, text.endswith("secret-key can be read by others (mode 644).")) == ("warning", True)


def test_an_address_that_the_console_would_refuse_is_a_failure_and_the_exit_code(checked):
    level, text = finding_of(checked, "addresses")
    assert (level, "leads to elsewhere.example, which SLUICE_HOSTS does not name" in text) == ("failure", True)
    assert (checked[0]["level"], checked[3]) == ("failure", 1)


def test_a_check_of_a_stopped_installation_changes_no_file(checked):
    assert checked[2] == checked[1]


def test_an_installation_that_was_never_started_is_not_made_by_a_check(tmp_path):
    done = run_check(tmp_path / "data")
    found = {each["id"]: each["level"] for each in json.loads(done.stdout)["checks"]}
    assert (found["console.database"], found["files.secrets"], found["ports"]) == ("skipped", "skipped", "ok")
    assert list(tmp_path.iterdir()) == []


# -- what is judged


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (DatabaseReading("SQLite", "3.40"), Level.OK),
        (DatabaseReading("SQLite", "3.40", unapplied=("console.0001",)), Level.WARNING),
        (DatabaseReading("SQLite", "3.40", unknown=("console.9999",)), Level.FAILURE),
        (DatabaseReading("PostgreSQL", problem="connection refused\nIs it running?"), Level.FAILURE),
        (DatabaseReading(skipped="Not started."), Level.SKIPPED),
    ],
)
def test_the_database_is_judged_by_its_migrations(found, level):
    assert levels(services.judge_database(found)) == [level]


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (WorkerReading(("default", "spark")), Level.OK),
        (WorkerReading(("default",)), Level.FAILURE),
        (WorkerReading(("default",), expected=("default",)), Level.OK),
        (WorkerReading(("default",), is_starting=True), Level.WARNING),
        (WorkerReading(problem="connection refused"), Level.FAILURE),
        (WorkerReading(skipped="Stopped."), Level.SKIPPED),
    ],
)
def test_workers_that_do_not_answer_are_named(found, level):
    assert levels(services.judge_workers(found)) == [level]


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (SparkReading("/usr/lib/jvm/java-17", "4.3.0"), Level.OK),
        (SparkReading(skipped="Analyses need the extra 'analytics'."), Level.SKIPPED),
        (SparkReading(problem="Spark needs Java 17"), Level.FAILURE),
        (SparkReading(remote="spark:15002"), Level.OK),
        (SparkReading(remote="spark:15002", problem="refused"), Level.FAILURE),
    ],
)
def test_java_and_spark_are_judged(found, level):
    assert levels(services.judge_spark(found)) == [level]


def test_a_spark_server_elsewhere_is_called(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        there = installation(tmp_path, SPARK_REMOTE=f"sc://127.0.0.1:{port}/;token=secret")
        assert services.measure_spark(there) == SparkReading(remote=f"127.0.0.1:{port}")
    assert services.measure_spark(there).problem == "Connection refused"


@pytest.fixture
def mail_server():
    """A server that greets, says what it offers, and takes no mail: its port, and what it was told."""
    told = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb", buffering=0) as stream:
                stream.write(b"220 mail.example ESMTP\r\n")
                for line in stream:
                    told.append(line.split()[0])
                    stream.write(b"250-mail.example\r\n250 8BITMIME\r\n" if told[-1] == b"ehlo" else b"221 bye\r\n")

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield server.getsockname()[1], told
        serving.join(5)


def test_a_mail_server_is_greeted_and_sent_nothing(mail_server, monkeypatch, tmp_path):
    port, told = mail_server
    monkeypatch.setenv("SLUICE_MAIL", f"smtp://user:secret@127.0.0.1:{port}?tls=1")
    found = services.measure_mail(installation(tmp_path))
    assert found == MailReading(f"127.0.0.1:{port}", offers_tls=False, wants_tls=True)
    assert [each.lower() for each in told] in ([b"ehlo"], [b"ehlo", b"quit"])
    assert levels(services.judge_mail(found)) == [Level.FAILURE]
    assert levels(services.judge_mail(replace(found, offers_tls=True))) == [Level.OK]


def test_a_mail_server_that_is_away_or_not_configured_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv("SLUICE_MAIL", raising=False)
    assert levels(services.judge_mail(services.measure_mail(installation(tmp_path)))) == [Level.SKIPPED]
    monkeypatch.setenv("SLUICE_MAIL", "smtp://127.0.0.1:1")
    [finding] = services.judge_mail(services.measure_mail(installation(tmp_path)))
    assert (finding.level, "127.0.0.1:1 does not answer" in finding.text) == (Level.FAILURE, True)


def test_files_are_judged_by_who_may_read_them(tmp_path):
    data = tmp_path / "data"
    assert levels(configuration.judge_secrets(configuration.measure_files(installation(data)))) == [Level.SKIPPED]
    data.mkdir(mode=0o700)
    secret = data / "secret-key"
    secret.touch(mode=0o600)
    found = configuration.measure_files(installation(data))
    assert levels(configuration.judge_secrets(found)) == [Level.OK]
    assert levels(configuration.judge_archive(found)) == levels(configuration.judge_backups(found)) == [Level.OK]
    data.chmod(0o755)
    secret.chmod(0o640)
    found = configuration.measure_files(installation(data))
    assert levels(configuration.judge_secrets(found)) == [Level.FAILURE, Level.WARNING]
    unwritable = replace(found, archive=replace(found.archive, is_writable=False))
    assert levels(configuration.judge_archive(unwritable)) == [Level.FAILURE]
    unwritable = replace(found, backups=replace(found.backups, is_writable=False))
    [finding] = configuration.judge_backups(unwritable)
    assert finding.text == f"{data / 'backups'} cannot be written by this user: backups of the console fail."
    assert stat.S_IMODE(data.stat().st_mode) == 0o755, "it is looked at only"


LOCAL = Addresses("127.0.0.1", "http://localhost:8000", (), "", has_tls=False)
PUBLIC = Addresses("0.0.0.0", "https://console.example", ("console.example",), "10.0.0.1", has_tls=False)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (LOCAL, [Level.OK]),
        (PUBLIC, [Level.OK]),
        (replace(PUBLIC, proxies="", has_tls=True), [Level.OK]),
        (replace(PUBLIC, proxies=""), [Level.WARNING]),  # https without anybody who speaks it
        (replace(PUBLIC, proxies="", has_tls=True, url="http://console.example:8000"), [Level.WARNING]),
        (replace(PUBLIC, proxies="", url="http://console.example:8000"), [Level.WARNING]),
        (replace(PUBLIC, url="https://other.example"), [Level.FAILURE]),
        (replace(PUBLIC, url="console.example"), [Level.FAILURE]),
        (replace(PUBLIC, hosts=("*",)), [Level.WARNING]),
        (replace(LOCAL, bind="0.0.0.0"), [Level.WARNING, Level.WARNING]),
    ],
)
def test_addresses_are_judged_by_who_reaches_the_console(found, expected):
    assert levels(configuration.judge_addresses(found)) == expected


def test_time_zones_are_known():
    assert levels(configuration.judge_time_zones(configuration.measure_time_zones(None))) == [Level.OK]
    assert levels(configuration.judge_time_zones(0)) == [Level.FAILURE]


# -- page and API


def client_of(role: str) -> Client:
    client = Client()
    client.force_login(make_user(role))
    return client


@pytest.mark.django_db
def test_the_page_and_the_api_show_the_same_results_and_when_they_were_taken(console):
    cache.delete("checks")
    admin = client_of("admin")
    assert "No results" in admin.get(reverse("checks")).content.decode()
    assert admin.get("/api/v1/checks").status_code == 404
    page = admin.post(reverse("run-checks"), follow=True).content.decode().replace("<wbr>", "")
    found = admin.get("/api/v1/checks").json()
    for each in found["checks"]:
        assert each["title"] in page
    python = next(each for each in found["checks"] if each["id"] == "versions.python")
    version = sys.version.split()[0]
    text = f"Sluice {VERSION} with Python {version}."
    assert python["findings"] == [{"level": "ok", "text": text, "action": ""}]
    assert found["taken"].endswith("Z") or "+00:00" in found["taken"]
    assert "Run <time" in page
    store = {each["id"]: each["level"] for each in found["checks"] if each["section"] == "Store"}
    assert set(store.values()) == {"ok"}


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_only_admins_see_the_checks(console, role):
    client = client_of(role)
    assert client.get(reverse("checks")).status_code == 403
    assert 'href="/checks/"' not in client.get("/topology/").content.decode()


def test_the_page_reports_a_data_folder_that_does_not_answer_and_asks_it_once_however_often_it_is_opened(
    browser_of, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(runner, "LIMIT_SECONDS", 0.3)
    note = tmp_path / "store" / "store.url"
    note.parent.mkdir()
    os.mkfifo(note)  # whoever opens it waits, as for a file on a network file system without its server
    settings.SLUICE = replace(settings.SLUICE, data=tmp_path)
    browser = browser_of("admin")
    for _ in range(3):
        answer = browser.post(reverse("run-checks"), follow=True).content.decode().replace("<wbr>", "")
        assert f"{tmp_path} did not answer within 0.3 s: nothing else was checked." in answer
        assert "Other checks" not in answer
    assert len([each for each in threading.enumerate() if each.name == "check of_environment"]) == 1
    os.close(os.open(note, os.O_WRONLY))
