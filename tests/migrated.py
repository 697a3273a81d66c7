"""Migrate a database once a run, and copy it for each test."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from brokerapp.system.environment import PROJECT

#: Seconds that it may take on a machine that is busy with other things.
PATIENCE = 240
#: The database that Django makes for tests, in the memory of their process.
IN_MEMORY = "file:memorydb_default?mode=memory&cache=shared"
_MIGRATE = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
"""


def make_template(folder: Path) -> Path:
    """The file, made by whichever process of the run comes first; the others wait for it."""
    template = folder / "console.sqlite3"
    with (folder / "migrating").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            made = folder / "made.sqlite3"
            run_script(_MIGRATE, {**os.environ, "DATABASE_URL": f"sqlite:///{made}", "SLUICE_DATA": str(folder)})
            made.rename(template)
    return template


def run_script(script: str, variables: dict[str, str]) -> None:
    """Run Python where Django is set up by these environment variables."""
    variables = {**variables, "DJANGO_SETTINGS_MODULE": "console.settings"}
    subprocess.run(
        [sys.executable, "-c", f"import django; django.setup()\n{script}"],
        cwd=PROJECT,
        env=variables,
        check=True,
        timeout=PATIENCE,
    )


@contextmanager
def in_memory(template: Path) -> Iterator[None]:
    """The database of this process's tests has all tables before Django asks for them."""
    with closing(sqlite3.connect(IN_MEMORY, uri=True)) as ours:
        with closing(sqlite3.connect(template)) as tables:
            tables.backup(ours)
        yield
