"""Test that a command ends without a traceback when whoever reads its output stops, as `head` does."""

from __future__ import annotations

import os
import subprocess
import sys

from brokerapp.system.checkout import PROJECT


def test_a_command_whose_output_is_read_no_further_ends_without_a_traceback(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "SLUICE_DATA": str(tmp_path)}
    command = [sys.executable, "manage.py", "checkinstallation", "--json"]
    try:
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
