"""Test that installations of released versions open after `upgrade`, with all that their ledgers list."""

from __future__ import annotations

import json
import subprocess

import pytest

from brokerapp.system.environment import PROJECT
from tests.upgrade.installed import FIXTURES, LEDGER, manage, opened, read_all, unpack, variables_of

VERSIONS = sorted(each.parent.name for each in FIXTURES.glob(f"*/{LEDGER}"))


# The oldest one takes all steps.
@pytest.mark.parametrize(
    "version", [min(VERSIONS), *(pytest.param(each, marks=pytest.mark.long) for each in sorted(VERSIONS)[1:])]
)
def test_an_installation_of_a_released_version_is_upgraded_and_holds_what_its_ledger_lists(version, tmp_path):
    ledger = unpack(version, tmp_path)
    upgraded = subprocess.run(
        manage("upgrade", "--yes", "--no-backup"), cwd=PROJECT, env=variables_of(tmp_path), capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert upgraded.returncode == 0, upgraded.stderr
    with opened(tmp_path) as here:
        found = json.loads(json.dumps(read_all(here, ledger)))
    assert sorted(found) == sorted(ledger)
    for part, expected in ledger.items():
        assert found[part] == expected, part
