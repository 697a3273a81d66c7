"""Test that data of another user is named in a sentence, as after a restore by root for the user of a service."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from brokerapp.system.checkout import PROJECT

READ = """
import os, sys
from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import Environment
os.seteuid(65534)
try:
    Environment.read({"SLUICE_DATA": sys.argv[1]})
except ConfigurationRefused as refused:
    print(refused)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_file_of_another_user_is_named_with_its_owner_and_what_to_do(tmp_path):
    store = tmp_path / "data" / "store"
    store.mkdir(parents=True)
    (store / "store.url").write_text("unix:///run/store.sock")
    for each in (store.parent, tmp_path, *tmp_path.parents[:2]):
        each.chmod(each.stat().st_mode | 0o055)
    store.chmod(0o700)
    said = subprocess.run(
        [sys.executable, "-c", READ, str(store.parent)], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert said.stdout == (
        f"{store}/store.url: permission denied: {store} belongs to root, and this is nobody: "
        "run this as its owner, or change the owner\n"
    )
