"""Test how settings follow from the environment: secret, static files, Celery's address."""

import os
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.db.utils import ConnectionHandler
from django.templatetags.static import static
from django.test import Client

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import PROJECT
from console.accounts.secret_key import secret_key
from console.celery import transport_url
from console.ops import database_settings
from console.ops.database_settings import databases
from console.ops.supervisor import Supervisor
from console.ui.staticfiles import fingerprint

#: Seconds that what must come may take on a busy machine; and in which what must not would have come.
PATIENCE, SHORT = 20, 0.2


def test_the_secret_is_made_once_and_is_for_its_owner_only(tmp_path):
    path = tmp_path / "data" / "secret-key"
    made = secret_key(path)
    assert len(made) >= 50
    assert secret_key(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("arguments", [["--help"], ["migrate", "--help"], ["unknown-command"]])
def test_a_command_that_needs_no_data_creates_no_data_folder(tmp_path, arguments):
    data = tmp_path / "data"
    command = [sys.executable, PROJECT / "manage.py", *arguments]
    subprocess.run(command, env={**os.environ, "SLUICE_DATA": str(data)}, capture_output=True, timeout=60, check=False)
    assert not data.exists()


def test_a_data_folder_that_others_may_enter_is_closed_when_sluice_starts(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    Supervisor([], folder, say=print)._claim.release()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_processes_that_start_together_agree_on_the_secret(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: secret_key(tmp_path / "secret-key"), range(8)))
    assert len(made) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("unix:///data/store/valkey.sock", "redis+socket:///data/store/valkey.sock"),
        ("redis://:secret@host:6379/2", "redis://:secret@host:6379/2"),
        ("rediss://host", "rediss://host?ssl_cert_reqs=required"),
        ("rediss://host/0?ssl_ca_certs=ca.pem", "rediss://host/0?ssl_ca_certs=ca.pem&ssl_cert_reqs=required"),
        ("rediss://host?ssl_cert_reqs=none", "rediss://host?ssl_cert_reqs=none"),
    ],
)
def test_celery_is_told_the_store_in_its_own_words(given, expected):
    assert transport_url(given) == expected


@pytest.mark.parametrize("url", ["rubbish", "", "foo://user:secret@host/name", "mysql://user:secret@host/name"])
def test_a_database_url_that_names_no_supported_database_is_refused_without_its_password(url):
    with pytest.raises(
        ConfigurationRefused, match=r"^DATABASE_URL=.*expected sqlite:///PATH or postgres://"
    ) as refused:
        databases(url)
    assert "secret" not in str(refused.value)


def test_a_missing_driver_of_postgresql_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(database_settings, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationRefused, match=r'-m pip install "psycopg\[binary\]"$'):
        databases("postgres://user:secret@host/name")


def test_the_fingerprint_of_static_files_follows_their_contents(tmp_path):
    (tmp_path / "a.css").write_text("a")
    before = fingerprint(tmp_path)
    assert fingerprint(tmp_path) == before
    (tmp_path / "a.css").write_text("b")
    assert fingerprint(tmp_path) != before


def test_plotly_comes_from_its_wheel():
    assert finders.find("plotly/plotly.min.js").endswith("plotly/package_data/plotly.min.js")
    assert finders.find("plotly/other.js") is None


@pytest.mark.parametrize(
    "name", ["console/css/base/base.css", "console/js/core/live_socket.js", "console/icons.svg", "plotly/plotly.min.js"]
)
def test_static_files_may_be_kept_for_ever(name, settings):
    settings.WHITENOISE_AUTOREFRESH = False  # as in a web process
    response = Client().get(static(name))
    assert response.status_code == 200
    assert response.content
    assert "immutable" in response["Cache-Control"]


def test_every_icon_that_a_page_names_is_in_the_sprite(settings):
    sprite = (settings.BASE_DIR / "static/console/icons.svg").read_text()
    known = set(re.findall(r'<symbol id="([^"]+)"', sprite))
    templates = "".join(path.read_text() for path in (settings.BASE_DIR / "templates").rglob("*.html"))
    named = set(re.findall(r'{% icon "([^"]+)"', templates))
    assert named <= known


def test_no_template_has_a_script_or_style_that_the_policy_would_stop(settings):
    # Readers of mail know no style sheets; an exported file loads nothing. No policy stops either.
    mails = {"mail.html", "export.html"}
    for path in (settings.BASE_DIR / "templates").rglob("*.html"):
        if path.name in mails:
            continue
        text = re.sub(r"{%.*?%}", "", path.read_text(), flags=re.DOTALL)  # tags have options of that name
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text), path
        assert not re.search(r'<script(?![^>]*\ssrc=)(?! type="application/json")', text), path


def test_who_reads_waits_for_nobody_and_who_writes_waits_for_their_turn(tmp_path, django_db_blocker):
    tables = ConnectionHandler(databases(f"sqlite:///{tmp_path}/console.sqlite3"))
    with django_db_blocker.unblock(), ThreadPoolExecutor(1) as elsewhere:

        def say(sql: str) -> list:
            """What the database says to this, asked by the thread that asks it."""
            with tables["default"].cursor() as cursor:
                return cursor.execute(sql).fetchall()

        say("CREATE TABLE version (number)")
        say("INSERT INTO version VALUES (1)")
        elsewhere.submit(say, "SELECT 1").result()
        with transaction_of(tables["default"]):
            say("UPDATE version SET number = number + 1")
            assert elsewhere.submit(say, "SELECT number FROM version").result(PATIENCE) == [(1,)]
            waiting = elsewhere.submit(say, "UPDATE version SET number = number + 1")
            with pytest.raises(TimeoutError):
                waiting.result(SHORT)
        waiting.result(PATIENCE)
        assert say("SELECT number FROM version") == [(3,)]
        elsewhere.submit(tables.close_all).result()
        tables.close_all()


@contextmanager
def transaction_of(connection):
    """As `transaction.atomic` does, for a connection that no setting names."""
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    yield
    connection.commit()
    connection.set_autocommit(True)


def test_models_and_migrations_agree(db):
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
