"""Watches the Spark server while a run waits for it: one that is stopped, or collects nothing but garbage, is killed.

A JVM that is stopped keeps its connections open, and one whose heap is all but full goes on for minutes, answers now
and then and gets nowhere: its clients wait without end, and so do the runs behind them. Java ends a process by itself
only when 98 % of the time go into collecting garbage. Whoever started the server starts it again once it is gone.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Self

import grpc
from pyspark.sql.connect.client.core import DefaultChannelBuilder
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from analytics.requests.errors import AnalysisFailed, SparkOutOfMemory, SparkStopped
from analytics.spark.jvm import HEAP
from analytics.spark.server import PAUSES, running_server
from analytics.spark.session import url_of
from brokerapp.system.environment import Environment

#: Seconds between two questions, and that an answer may take: it needs some milliseconds.
ASK_SECONDS, ANSWER_SECONDS = 2.0, 10.0
#: Times the patience, however busy the machine is.
MOST_PATIENCE = 4.0
#: The part of the time that may go into collecting garbage: analyses that get on need less than a fifth.
MOST_GARBAGE = 0.8
#: A line of the JVM: when a pause ended, and how many milliseconds it took.
_PAUSE = re.compile(r"\[([^]]+)\].* Pause .* ([\d.]+)ms$")

log = logging.getLogger(__name__)
#: Of all questions of this process: the server keeps each session for an hour.
_SESSION = str(uuid.uuid4())


def patience(seconds: float, load: float, processors: int) -> float:
    """Return for how many seconds a server may be silent on a machine with this load."""
    return seconds * min(max(1.0, load / processors), MOST_PATIENCE)


class Watchdog:
    """Asks the server for a sign of life, in a thread, as long as this lasts."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spark-watchdog", daemon=True)
        self.failure: AnalysisFailed | None = None  #: why the server was killed; None while it was not

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        answered = time.monotonic()
        while not self._over.wait(ASK_SECONDS):
            if server_responds(self._environment):
                answered = time.monotonic()
            silence = time.monotonic() - answered
            allowed = patience(self._environment.spark_patience, os.getloadavg()[0], os.cpu_count() or 1)
            failure = self._judged(silence, allowed)
            if failure is not None and not self._over.is_set():
                self._kill(failure)
                return

    def _judged(self, silence: float, allowed: float) -> AnalysisFailed | None:
        if silence > allowed:
            return SparkStopped(f"The Spark server did not respond for {silence:.0f} s and was restarted.")
        with suppress(OSError):  # a server elsewhere keeps its notes to itself
            lines = (self._environment.spark / PAUSES).read_text().splitlines()
            if (share := garbage_share(lines, datetime.now(UTC), allowed)) > MOST_GARBAGE:
                return SparkOutOfMemory(
                    f"The Spark server spent {share:.0%} of the last {allowed:.0f} s on garbage collection and was "
                    f"restarted: its heap ({HEAP}) is too small for this run. Choose a shorter time range."
                )
        return None

    def _kill(self, failure: AnalysisFailed) -> None:
        pid = running_server(self._environment)
        if pid is None:  # on another machine, or started by hand: the time limit of the run remains
            log.error("the Spark server is not ours to restart: %s", failure)
            return
        self.failure = failure
        log.error("%s", failure)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def garbage_share(lines: Sequence[str], now: datetime, seconds: float) -> float:
    """Return the share of the last seconds that a server spent on garbage collection, by its log. Pure."""
    paused = 0.0
    for line in reversed(lines):
        found = _PAUSE.match(line)
        if found is None:
            continue
        ago = (now - datetime.fromisoformat(found[1])).total_seconds()
        if ago > seconds:
            break
        paused += min(float(found[2]) / 1000, seconds - ago)
    return paused / seconds


def server_responds(environment: Environment) -> bool:
    """Return whether the server answers in time. One that is not there does not keep anybody waiting."""
    builder = DefaultChannelBuilder(url_of(environment))
    request = base_pb2.AnalyzePlanRequest(session_id=_SESSION, client_type="sluice-watchdog")
    request.user_context.user_id = "sluice"
    request.spark_version.SetInParent()
    with builder.toChannel() as channel:
        try:
            stub = base_pb2_grpc.SparkConnectServiceStub(channel)
            stub.AnalyzePlan(request, metadata=builder.metadata(), timeout=ANSWER_SECONDS)
        except grpc.RpcError as error:
            return error.code() != grpc.StatusCode.DEADLINE_EXCEEDED
    return True
