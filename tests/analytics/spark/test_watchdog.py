"""Test that a server that is busy with garbage collection only is detected and killed."""

import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from recorded_traffic import wait_until
from spark_installation import PATIENCE, PROJECT

from analytics.requests.errors import SparkOutOfMemory
from analytics.spark.server import GC_LOG, prepare
from analytics.spark.session import _wait_for_server
from analytics.spark.watchdog import Watchdog, allowed_silence, gc_share
from brokerapp.system.environment import Environment
from tests.ports import free_port

NOW = datetime(2026, 11, 22, 18, 20, tzinfo=UTC)


def line(seconds_ago: float, milliseconds: float) -> str:
    at = (NOW - timedelta(seconds=seconds_ago)).isoformat(timespec="milliseconds").replace("+00:00", "+0000")
    return f"[{at}] GC(7) Pause Full (Ergonomics) 571M->569M(580M) {milliseconds}ms"


def test_what_part_of_the_time_went_into_garbage_is_read_off_the_pauses():
    lines = ["[2026-11-22T18:19:00.000+0000] Using Parallel", line(90, 9000), line(5, 4000), line(1, 4500)]
    assert gc_share(lines, NOW, 10) == pytest.approx(0.85)
    assert gc_share(lines, NOW, 60) == pytest.approx(8.5 / 60)
    assert gc_share([line(58, 5000)], NOW, 60) == pytest.approx(2 / 60), "what was before does not count"
    assert gc_share([], NOW, 60) == 0


def test_the_file_of_pauses_does_not_grow_without_end(tmp_path):
    command, _ = prepare(Environment.read({"SLUICE_DATA": str(tmp_path)}), flags=[])
    [pauses] = (each for each in command if each.startswith("-Xlog:gc:"))
    assert [int(each) <= 2**20 for each in re.findall(r"filecount=1,filesize=(\d+)$", pauses)] == [True]


@pytest.mark.parametrize(("load", "seconds"), [(0.1, 60), (2, 60), (4, 120), (40, 240)])
def test_a_busy_machine_is_given_longer(load, seconds):
    assert allowed_silence(60, load, 2) == seconds


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_a_server_that_notes_that_it_does_little_but_collect_garbage_is_killed_and_the_reason_is_told(tmp_path):
    """The server is real, its notes are added: a heap that is really that full as often ends the JVM by itself."""
    variables = {
        "SLUICE_DATA": str(tmp_path), "SLUICE_SPARK_PORT": str(free_port()), "SLUICE_SPARK_PATIENCE": "4",
        "SPARK_MASTER": "local[2]",
    }  # fmt: skip
    environment = Environment.read(variables)
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "analytics.spark.server"],
            env={**os.environ, **variables, "PYTHONPATH": str(PROJECT)}, stdout=log, stderr=log,
        )  # fmt: skip

    def is_killed() -> bool:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "+0000")
        with (environment.spark / GC_LOG).open("a") as pauses:
            pauses.write(f"[{now}] GC(7) Pause Full (Ergonomics) 571M->569M(580M) 16000.000ms\n")
        return server.poll() is not None

    try:
        _wait_for_server(environment, PATIENCE)
        with Watchdog(environment) as watchdog:
            wait_until(is_killed, PATIENCE)
        assert server.returncode == -signal.SIGKILL, (tmp_path / "log").read_text()
        assert isinstance(watchdog.failure, SparkOutOfMemory)
        assert "garbage collection and was restarted" in str(watchdog.failure)
    finally:
        server.kill()
        server.wait()
