"""A web process of the console: the real server, as a child process with a database of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brokerapp.system.environment import PROJECT, Environment
from tests.migrated import run_script
from tests.waiting import wait_until

PASSWORD = "correct horse battery"
#: Seconds until it has its tables, and until it answers, on a machine that is busy with other things.
PATIENCE = 240

_USERS = f"""
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
password = make_password({PASSWORD!r})  # once for all: it is meant to take long
for role in ("admin", "analyst", "support", "viewer"):
    User.objects.create(username=role, password=password).groups.add(Group.objects.get(name=role))
"""


@dataclass(frozen=True)
class Served:
    """A web process that answers."""

    url: str
    pid: int
    log: str  #: what it said so far
    variables: Mapping[str, str]


def make_database(template: Path, variables: Mapping[str, str], users: str) -> None:
    """The tables of a console with these environment variables, and what this script makes in them."""
    shutil.copy(template, Environment.read(variables).data / template.name)
    run_script(users, variables)


@contextmanager
def served(data: Path, template: Path, **more: str) -> Iterator[Served]:
    """Run one on this data folder, with these environment variables besides; users are called as their roles."""
    variables = {
        **os.environ, "SLUICE_DATA": str(data), "DJANGO_SETTINGS_MODULE": "console.settings", "SLUICE_DEVELOP": "",
        "DATABASE_URL": f"sqlite:///{data}/console.sqlite3", **more,
    }  # fmt: skip
    make_database(template, variables, _USERS)
    with serving(variables, data / "web.log") as web:
        yield web


@contextmanager
def serving(variables: Mapping[str, str], said: Path, port: int = 0) -> Iterator[Served]:
    """Run a web process on a database that there is, on this port or a free one; what it says goes to the file."""
    with said.open("w+") as log:
        web = subprocess.Popen(
            [sys.executable, "-m", "console.ops.serving.web_server", "console"],
            cwd=PROJECT, env={**variables, "SLUICE_PORT": str(port)}, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            url = wait_until(lambda: _address(Path(log.name), web), "the console's address", PATIENCE)
            yield Served(url, web.pid, Path(log.name).read_text(), variables)
        finally:
            web.send_signal(signal.SIGCONT)  # a test may have stopped it
            web.terminate()
            web.wait(timeout=20)


def _address(log: Path, web: subprocess.Popen) -> str:
    """Where its pages are, once it serves them."""
    text = log.read_text()
    if web.poll() is not None:
        raise AssertionError(f"the web process ended:\n{text}")
    found = re.search(r"running on (https?://127\.0\.0\.1:\d+)", text)
    if not found:
        return ""
    anybody = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{found[1]}/healthz", timeout=60, context=anybody) as answer:
        assert answer.read() == b"ok"
    return found[1]
