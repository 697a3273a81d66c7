"""A Spark Connect server as the console runs it, in a folder of its own, for as long as a measurement takes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from analytics.spark import server as spark_server
from brokerapp.system.environment import Environment

#: Seconds for something to start, or to answer, on a machine that does much else.
PATIENCE = 240.0


@contextmanager
def running(folder: Path) -> Iterator[tuple[Environment, int]]:
    """The environment of an installation in the folder, and the id of its server's process, which was just started."""
    variables = {**os.environ, "SLUICE_DATA": str(folder), "SLUICE_SPARK_PORT": str(_free_port())}
    environment = Environment.read(variables)
    command, own = spark_server.prepare(environment)
    server = subprocess.Popen(command, env={**variables, **own}, cwd=environment.spark, start_new_session=True)
    try:
        yield environment, server.pid
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


#: CPU time of processes by the server that started them, and by id and start: those that ended keep what they used.
_used: dict[int, dict[tuple[int, float], float]] = {}


def cpu_seconds(pid: int) -> float:
    """CPU time that a server has used, with its children such as Spark's Python workers."""
    process, used = psutil.Process(pid), _used.setdefault(pid, {})
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            used[each.pid, each.create_time()] = times.user + times.system
    return sum(used.values())


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
