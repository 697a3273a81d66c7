"""Test that this version refuses what a newer one stored, with one sentence, and does not change it."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import redis
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from analytics.archive.format_file import write_format
from brokerapp.errors import CONFIGURATION_EXIT_CODE, ConfigurationRefused
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.checkout import command
from brokerapp.system.environment import PROJECT
from brokerapp.version import VERSION
from console.upgrades import database
from console.upgrades.models import UsedVersion
from tests.e2e.installation import Installation
from tests.upgrade.installed import BROKER


def change_database(data: Path) -> None:
    with closing(sqlite3.connect(data / "console.sqlite3")) as opened, opened:
        opened.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('console', '0999_later', '2030-01-01')"
        )
        opened.execute("INSERT INTO console_usedversion (version, since) VALUES ('9.1.0', '2030-01-01')")


def change_archive(data: Path) -> None:
    write_format(data / "archive" / f"broker={BROKER}", 3)


def change_store(data: Path) -> None:
    with EmbeddedStore(data / "store") as store, redis.Redis.from_url(store.url) as client:
        client.hset(StoreKeys(BROKER).state, "format", 3)


REFUSED = {
    "database": (
        change_database,
        f"the database was last used by Sluice 9.1.0 and has migrations that Sluice {VERSION} does not know "
        "(console.0999_later): use that version or a later one, or restore a backup that was made before the upgrade",
    ),
    "archive": (
        change_archive,
        "the archive has format 3, and this version of Sluice supports formats up to 2: use the newer version that "
        "wrote it, or restore a backup that was made before the upgrade",
    ),
    "store": (
        change_store,
        "the store has format 3, and this version of Sluice supports formats up to 2: use the newer version that "
        "wrote it, or restore a backup that was made before the upgrade",
    ),
}


LONG = [pytest.param(part, marks=pytest.mark.long) for part in ("archive", "store")]


@pytest.mark.parametrize("part", ["database", *LONG])
def test_sluice_does_not_start_on_what_a_newer_version_stored(part, tmp_path, migrated):
    change, sentence = REFUSED[part]
    here = Installation(tmp_path / "data")
    here.folder.mkdir()
    here.environment["SLUICE_BROKER"] = BROKER
    (here.folder / "console.sqlite3").write_bytes(migrated.read_bytes())
    change(here.folder)
    done = subprocess.run(here.manage("up"), env=here.environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == CONFIGURATION_EXIT_CODE
    assert done.stderr.strip() == f"CommandError: {sentence}"
    assert "Sluice is ready" not in done.stdout
    command = subprocess.run(
        here.manage("upgrade", "--check"),
        cwd=PROJECT,
        env=here.environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert command.returncode == 1
    assert re.fullmatch(r"error: (archive of broker \w+: )?" + re.escape(sentence), command.stderr.strip())


@pytest.mark.django_db
def test_a_web_process_does_not_start_on_a_database_that_lacks_migrations():
    last = MigrationRecorder(connection).migration_qs.filter(app="console").order_by("-name").first()
    last.delete()
    with pytest.raises(
        ConfigurationRefused, match=rf"lacks migrations .*console\.{last.name}.* run `{command('upgrade')}`"
    ):
        database.check_current()
    assert not UsedVersion.objects.exists()


@pytest.mark.django_db
def test_a_database_knows_which_versions_used_it_and_since_when():
    UsedVersion.objects.create(version="0.9.0")
    database.check_current()
    database.check_current()
    assert [each.version for each in UsedVersion.objects.order_by("pk")] == ["0.9.0", VERSION]
    assert database.database_state().found.endswith(f"last used by Sluice {VERSION}")


@pytest.mark.django_db
def test_migrations_of_many_are_named_up_to_three():
    recorder = MigrationRecorder(connection)
    for number in range(5):
        recorder.record_applied("console", f"{number + 5000}_later")
    refusal = database.read_migrations().refusal
    assert "last used by a newer version of Sluice" in refusal
    assert "(console.5000_later, console.5001_later, console.5002_later and 2 more)" in refusal
