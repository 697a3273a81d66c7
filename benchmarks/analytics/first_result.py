"""The first results of an installation, as somebody gets them who starts it and asks at once, by the console's API.

`manage.py up` runs in a folder of its own that holds a small archive. As soon as it says that it is ready, and so while
Spark still warms up, the traffic is asked for; then again and again.
"""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.stream_ids import position_of
from analytics.rollups.counters import count_events
from analytics.rollups.store import RollupStore
from benchmarks.analytics import traffic
from benchmarks.analytics.server import PATIENCE
from benchmarks.brokers.process import free_port
from brokerapp.system.environment import PROJECT

LOOK_AGAIN_SECONDS = 0.1
#: What part of the time that passed goes by until the next look: each takes CPU that the result waits for.
LOOK_AGAIN_PART = 0.05
#: How often is asked once the first result is there.
TIMES = 5
#: What a small archive holds.
EVENTS, HOURS = 100_000, 3
_READY = "Sluice is ready"
_PORTS = ("SLUICE_PORT", "SLUICE_STOMP_PORT", "SLUICE_OPENWIRE_PORT", "SLUICE_SPARK_PORT", "SLUICE_MONITOR_PORT")


@dataclass(frozen=True, slots=True)
class Firsts:
    """Seconds."""

    ready: float  #: from the command until it says that it is ready
    first: float  #: from being asked, then, until the first result is there
    warm: float  #: the same later, the median
    #: CPU of all its processes in each of these: what is left to say on a machine that does much else.
    cpu: tuple[float, float, float]


def measure(folder: Path) -> Firsts:
    """Start an installation in the folder and ask it."""
    traffic.generate(folder / "archive", EVENTS, HOURS)
    _count(folder / "archive")
    days = int(time.time() - traffic.window_of(HOURS).since_us / 1e6) // 86400 + 1
    begun = time.monotonic()
    with _installation(folder) as (root, running):
        ready, used = time.monotonic() - begun, [_cpu_seconds(running)]
        api = _Api(root, (folder / "admin-password").read_text().strip())
        took = []
        for _ in range(TIMES + 1):
            took.append(_seconds(api, f"{days}d"))
            used.append(_cpu_seconds(running))
    first, *later = took
    cpu = [after - before for before, after in pairwise([0.0, *used])]
    return Firsts(ready, first, median(later), (cpu[0], cpu[1], median(cpu[2:])))


def _count(archive: Path) -> None:
    """Make the rollups as the archiver does when events come: else it would, beside the first analysis."""
    for each in BrokerArchive.archives_in(archive):
        with closing(RollupStore(each.folder)) as rollups:
            rollups.add(map(count_events, each.events_after(0)), position_of(each.commit.offset))


def _cpu_seconds(running: psutil.Process) -> float:
    """Of a process and all that it started, also of those that ended since."""
    found = 0.0
    for each in (running, *running.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            found += sum(each.cpu_times()[:4])
    return found


@contextmanager
def _installation(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The address of the console of an installation that is ready, and its supervisor."""
    ports = {name: str(free_port()) for name in _PORTS}
    # What is asked about is older than traffic is kept.
    variables = {**os.environ, **ports, "SLUICE_DATA": str(folder), "SLUICE_ARCHIVE_DAYS": "0"}
    said = folder / "up.txt"
    with said.open("wb") as output:
        command = [sys.executable, "manage.py", "up"]
        running = subprocess.Popen(command, cwd=PROJECT, env=variables, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE
        while _READY not in said.read_text():
            if running.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the installation did not start:\n{said.read_text()}")
            time.sleep(LOOK_AGAIN_SECONDS)
        yield f"http://127.0.0.1:{ports['SLUICE_PORT']}", psutil.Process(running.pid)
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(60)


def _seconds(api: _Api, window: str) -> float:
    """From the request until its result is there."""
    begun = time.monotonic()
    run = api.call("analyses/runs", {"kind": "traffic", "parameters": {"window": window}})
    while run["state"] != "done":
        if run["state"] in ("failed", "cancelled") or time.monotonic() - begun > PATIENCE:
            raise SystemExit(f"the analysis ended as {run['state']}: {run['reason']}")
        time.sleep(max(LOOK_AGAIN_SECONDS, LOOK_AGAIN_PART * (time.monotonic() - begun)))
        run = api.call(f"analyses/runs/{run['id']}")
    if not api.call(f"analyses/runs/{run['id']}/result")["rows_read"]:
        raise SystemExit("the analysis found nothing")
    return time.monotonic() - begun


class _Api:
    """The console's API, for the admin, logged in as browsers are."""

    def __init__(self, root: str, password: str) -> None:
        self._root = root
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)
        page = self._open(f"{root}/login/")
        fields = {"username": "admin", "password": password, "csrfmiddlewaretoken": _token(page)}
        self._token = _token(self._open(f"{root}/login/", urllib.parse.urlencode(fields).encode()))

    def call(self, operation: str, body: Any = None) -> Any:
        """What an operation answers; one with a body is a POST."""
        return json.loads(self._open(f"{self._root}/api/v1/{operation}", body and json.dumps(body).encode()))

    def _open(self, address: str, body: bytes | None = None) -> str:
        request = urllib.request.Request(address, body, {"Referer": address})
        if body and body.startswith(b"{"):
            request.headers |= {"Content-Type": "application/json", "X-CSRFToken": self._token}
        with self._opener.open(request, timeout=PATIENCE) as answer:
            return answer.read().decode()


def _token(page: str) -> str:
    return re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
