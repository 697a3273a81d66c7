"""The programs of `make sbom` and `make audit` in their environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brokerapp.system.environment import PROJECT

PROGRAMS = PROJECT / "deploy/supply_chain"
#: Seconds that one may take on a busy machine.
PATIENCE = 120


def run_program(name: str, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program as make does; skip the test where its packages are missing, but fail it in CI."""
    python = Path(sys.prefix) / "supply-chain/bin/python"
    if not python.exists():
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing(f"{python} is not there: make clients")
    command = [str(each) for each in (python, PROGRAMS / name, *arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **more)
