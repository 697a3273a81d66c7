"""Test that data of another user is named in a sentence, as after a restore by root for the user of a service."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

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
def test_a_file_of_another_user_is_named_with_its_owner_and_what_to_do():
    with tempfile.TemporaryDirectory() as folder:  # other users may not enter those of the tests
        data = Path(folder)
        data.chmod(0o755)
        store = data / "store"
        store.mkdir(mode=0o700)
        (store / "store.url").write_text("unix:///run/store.sock")
        command = [sys.executable, "-c", READ, folder]
        said = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert said.stdout == (
        f"{store}/store.url: permission denied: {store} belongs to root, and this is nobody: "
        "run this as its owner, or change the owner\n"
    )
