"""Warm Spark up: have it load, plan and compile for its first analysis before a user requests one.

An hour of synthetic traffic, in a temporary folder, is analyzed as in a run, several times.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.requests.errors import RunCancelled
from analytics.requests.request import AnalysisRequest
from analytics.spark.run_execution import RunExecution
from analytics.spark.run_registry import RunRegistry
from analytics.spark.server import scratch_folder
from analytics.spark.session import connect, url_of
from brokerapp.system import atomic_files
from brokerapp.system.environment import Environment
from brokerapp.tracing.columns import table_of
from brokerapp.tracing.schema import ACK, DISPATCH, ENQUEUE, FORWARD

#: The broker of the synthetic traffic; no real broker can have that name.
WARMUP_BROKER = "(warm-up)"
QUEUE = "queue://warm-up"
MINUTES, MESSAGES = 60, 100
#: The second round takes a fifth of the time of the first; more gain little.
ROUNDS = 2
_MINUTE_US = 60_000_000


def warm_up(environment: Environment) -> None:
    """Analyze synthetic traffic, so that this process and its Spark server are warm for the first analysis.

    Raises SparkUnavailable when no server listens yet, and AnalysisFailed.
    """
    connect(environment, wait_seconds=0)
    folder = scratch_folder(environment)
    atomic_files.make_folder(folder)
    with tempfile.TemporaryDirectory(prefix="warm-up-", dir=folder) as name:
        own = replace(environment, data=Path(name), broker_name=WARMUP_BROKER, spark_remote=url_of(environment))
        began = time.time()
        until_us = int(began) * 1_000_000 - _MINUTE_US  # long enough ago that the run need not wait for late events
        since_us = until_us - MINUTES * _MINUTE_US
        BrokerArchive(own.archive, WARMUP_BROKER).append(_traffic(since_us), ArchiveCommit(offset="1-0"))
        request = AnalysisRequest("traffic", since_us=since_us, until_us=until_us)
        runs = RunRegistry(environment)

        def give_way(**_: object) -> None:
            """Stop the warm-up when a real run has begun, which warms Spark up as well."""
            if runs.has_run_since(began):
                raise RunCancelled

        with suppress(RunCancelled):
            for number in range(ROUNDS):
                give_way()
                RunExecution(f"warm-up-{number}", request, own, give_way).run()


def _traffic(since_us: int) -> pa.Table:
    """Build events of messages that are sent to a queue, delivered and acknowledged."""
    runs, facts = [], []
    for minute in range(MINUTES):
        born = since_us + minute * _MINUTE_US
        messages = [(f"ID:warm-up:{minute}-{number}", 100, born) for number in range(MESSAGES)]
        for step, kind in enumerate((ENQUEUE, FORWARD, DISPATCH, ACK)):
            runs += (born + step * 1000, kind, (QUEUE,), QUEUE, "warm-up", None, MESSAGES)
            facts += messages
    return table_of(WARMUP_BROKER, runs, facts, heads=[])
