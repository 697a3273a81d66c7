"""Watch the Spark server during a run, and kill it if it is frozen or busy with garbage collection only.

A frozen JVM keeps its connections open, and one whose heap is almost full continues for minutes, responds occasionally
and makes no progress: its clients wait without end, and so do the queued runs. Java ends a process by itself only when
98 % of the time is spent on garbage collection. The supervisor restarts a server that was killed.
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
from analytics.spark.server import GC_LOG, running_server
from analytics.spark.session import url_of
from brokerapp.system.environment import Environment

#: Seconds between two requests, and until a request times out: a response takes milliseconds.
ASK_SECONDS, ANSWER_SECONDS = 2.0, 10.0
#: Upper bound of the factor by which a busy machine extends the allowed silence.
MAX_SILENCE_FACTOR = 4.0
#: Share of the time that may be spent on garbage collection: analyses that make progress need less than a fifth.
MAX_GC_SHARE = 0.8
#: A line of the JVM's log: the end of a pause, and its length in milliseconds.
_PAUSE = re.compile(r"\[([^]]+)\].* Pause .* ([\d.]+)ms$")

log = logging.getLogger(__name__)
#: The session of all requests of this process, as the server keeps each session for an hour.
_SESSION = str(uuid.uuid4())


def allowed_silence(seconds: float, load: float, processors: int) -> float:
    """Return for how many seconds a server may be silent on a machine with this load."""
    return seconds * min(max(1.0, load / processors), MAX_SILENCE_FACTOR)


class Watchdog:
    """Checks in a thread that the server responds, while the context is open."""

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
            allowed = allowed_silence(self._environment.spark_patience, os.getloadavg()[0], os.cpu_count() or 1)
            failure = self._failure_of(silence, allowed)
            if failure is not None and not self._over.is_set():
                self._kill(failure)
                return

    def _failure_of(self, silence: float, allowed: float) -> AnalysisFailed | None:
        if silence > allowed:
            return SparkStopped(f"The Spark server did not respond for {silence:.0f} s and was restarted.")
        with suppress(OSError):  # the log of a server on another machine is not here
            lines = (self._environment.spark / GC_LOG).read_text().splitlines()
            if (share := gc_share(lines, datetime.now(UTC), allowed)) > MAX_GC_SHARE:
                return SparkOutOfMemory(
                    f"The Spark server spent {share:.0%} of the last {allowed:.0f} s on garbage collection and was "
                    f"restarted: its heap ({HEAP}) is too small for this run. Choose a shorter time range."
                )
        return None

    def _kill(self, failure: AnalysisFailed) -> None:
        pid = running_server(self._environment)
        if pid is None:  # on another machine, or started by hand: only the time limit of the run applies
            log.error("the Spark server is not ours to restart: %s", failure)
            return
        self.failure = failure
        log.error("%s", failure)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def gc_share(lines: Sequence[str], now: datetime, seconds: float) -> float:
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
    """Return whether the server responds in time; also True if none is running, as requests then fail at once."""
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
