"""The files of deploy/, and the programs that check them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from brokerapp.system.checkout import PROJECT

DEPLOY = PROJECT / "deploy"
#: Where `make clients` puts the packages in tests/deploy/requirements.txt.
CHECKS = Path(sys.prefix) / "deploy"
#: Seconds a check may take on a busy machine.
PATIENCE = 60


def read_yaml(path: Path) -> Any:
    """Return the content of a file with one document."""
    return yaml.safe_load(path.read_text())


def program(name: str, source: str) -> str:
    """Return the path of a program; skip the test where it is missing, but fail it in CI if `make clients` has it."""
    found = shutil.which(name, path=f"{CHECKS / 'bin'}:{os.environ.get('PATH', '')}:/usr/sbin:/usr/lib/systemd")
    if found is None:
        missing = pytest.fail if os.environ.get("CI") and source == "make clients" else pytest.skip
        missing(f"{name} is not there: {source}")
    return found


def run(*command: str | Path, status: int = 0, **more: Any) -> str:
    """Return what a program prints; it has to end with this status."""
    variables = {**os.environ, "PYTHONPATH": str(CHECKS), **more.pop("env", {})}
    done = subprocess.run(
        [str(each) for each in command],
        env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False, **more,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr
