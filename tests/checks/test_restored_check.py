"""Test that a restored broker is reported until an operator says whether it is a copy or replaces the original."""

from __future__ import annotations

import pytest
import redis

from brokerapp.backup.data_folder import write_mark
from brokerapp.backup.decision import decide
from brokerapp.checks.installation import of_environment
from brokerapp.checks.restored import judge_restored
from brokerapp.checks.results import Finding, Level
from brokerapp.checks.runner import run_checks
from brokerapp.checks.table import BROKER_CHECKS
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.system.checkout import command
from brokerapp.system.environment import Environment

BROKER = "restored-check"
KEY = StoreKeys(BROKER).restored


def mark(role: RestoredRole) -> RestoredMark:
    return RestoredMark(role, BROKER, "original.example", "2026-11-20T10:00:00Z")


def checked(data, url="") -> Finding:
    variables = {"SLUICE_DATA": str(data), "SLUICE_BROKER": BROKER, **({"REDIS_URL": url} if url else {})}
    here = of_environment(Environment.read(variables))
    [row] = [each for each in BROKER_CHECKS if each.judge is judge_restored]
    [result] = run_checks([row], here)
    [finding] = result.findings
    return finding


@pytest.fixture
def store(store_url):
    with redis.Redis.from_url(store_url) as client:
        yield client
        client.delete(KEY)


def test_an_undecided_restore_in_a_stopped_data_folder_fails_and_names_both_commands(tmp_path):
    assert checked(tmp_path).level is Level.OK
    write_mark(tmp_path, mark(RestoredRole.UNDECIDED))
    finding = checked(tmp_path)
    assert finding.level is Level.FAILURE
    assert "restored from the backup of 2026-11-20 10:00:00 UTC" in finding.text
    assert f"{command('restore')} --replace" in finding.action
    assert f"{command('restore')} --as-copy" in finding.action


def test_an_undecided_restore_in_a_store_elsewhere_fails_until_it_is_decided(tmp_path, store, store_url):
    store.set(KEY, mark(RestoredRole.UNDECIDED).to_json())
    assert checked(tmp_path, store_url).level is Level.FAILURE
    decide(BROKER, RestoredRole.COPY, url=store_url)
    copy = checked(tmp_path, store_url)
    assert (copy.level, "is a copy, restored from" in copy.text) == (Level.OK, True)
    decide(BROKER, None, url=store_url)
    assert (
        checked(tmp_path, store_url).text
        == "Nothing has to be decided: this broker was not restored, or acts as the original."
    )


def test_a_restore_that_did_not_end_and_a_mark_that_cannot_be_read_fail(tmp_path, store, store_url):
    write_mark(tmp_path, mark(RestoredRole.INCOMPLETE))
    assert checked(tmp_path).action == "Run the restore again."
    (tmp_path / "restored.json").write_text("{")
    assert "restored.json cannot be read" in checked(tmp_path).text
    (tmp_path / "restored.json").unlink()
    store.set(KEY, "[]")
    assert "in the store cannot be read" in checked(tmp_path, store_url).text
