"""Types of the packages that decide, as `make lint` checks them."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def test_mypy_finds_nothing_in_the_packages_that_it_checks():
    done = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=PROJECT, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
