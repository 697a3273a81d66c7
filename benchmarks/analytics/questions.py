"""What is asked of both: each analysis of the catalogue as the console asks it, and as somebody asks DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from analytics.model.time_buckets import slot_seconds
from analytics.requests.catalogue import ANALYSES
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.results.storage import JobResult
from analytics.spark.event_frames import EventReader
from benchmarks.analytics import duckdb_queries, traffic, whatif_rules


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the kind of its analysis, and the queries that give DuckDB's answer."""

    kind: str
    queries: Callable[[TimeWindow, int], list[str]]
    parameters: dict[str, str] = field(default_factory=dict)
    points: int = 400  #: of its chart over time
    trial: WhatIfRequest | None = None  #: what is to be judged


def _latency(slot: int) -> list[str]:
    return [
        duckdb_queries.latency("destination"),
        duckdb_queries.latency("destination", "consumer"),
        duckdb_queries.latency_over_time(slot),
    ]


def _lag(window: TimeWindow, slot: int) -> list[str]:
    return [duckdb_queries.depths(window, slot), duckdb_queries.oldest(window, slot), duckdb_queries.service(slot)]


ASKED = (
    Asked("traffic", lambda _, slot: [duckdb_queries.traffic(slot), duckdb_queries.latency("destination")]),
    Asked("weeks", lambda window, slot: [duckdb_queries.weeks(window, slot)]),
    Asked("league", lambda window, _: [duckdb_queries.clients(window)]),
    Asked("fan-out", lambda *_: [duckdb_queries.ways()]),
    Asked("latency", lambda _, slot: _latency(slot), points=60),
    Asked("depth", lambda window, slot: [duckdb_queries.depths(window, min(slot, 3600))]),
    Asked("lag", lambda window, slot: _lag(window, min(slot, 3600))),
    Asked("skew", lambda window, _: [duckdb_queries.clients(window)]),
    Asked("health", lambda window, _: [duckdb_queries.clients(window)]),
    Asked("dead-letters", lambda _, slot: [duckdb_queries.causes(slot)]),
    Asked("repeats", lambda *_: [duckdb_queries.repeats()]),
    Asked("filters", lambda *_: [duckdb_queries.copies()]),
    Asked("orphans", lambda *_: [duckdb_queries.ways()]),
    Asked("whatif", whatif_rules.queries, points=120, trial=whatif_rules.TRIAL),
)


def ask_spark(session: SparkSession, archive: Any, asked: Asked, window: TimeWindow) -> JobResult:
    """What the analysis finds, from reading to its charts and tables."""
    analysis = ANALYSES[asked.kind]
    reader = EventReader(session, archive)
    question = RunQuestion(
        window, reader.events, analysis.values(asked.parameters), traffic.DEFINITIONS, asked.trial, count=reader.counts
    )
    return import_module(analysis.module).run(question, _collect)


def _collect(_: str, frame: DataFrame) -> pa.Table:
    return frame.toArrow()


def ask_duckdb(connection: duckdb.DuckDBPyConnection, asked: Asked, window: TimeWindow) -> int:
    """DuckDB's answer; how many rows it has."""
    slot = slot_seconds(window, asked.points)
    return sum(connection.sql(query).to_arrow_table().num_rows for query in asked.queries(window, slot))
