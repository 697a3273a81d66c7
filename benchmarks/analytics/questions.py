"""What is asked of both: each analysis of the catalogue as the console asks it, and as somebody asks DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from analytics.catalogue import ANALYSES
from analytics.events import read_events
from analytics.question import Question
from analytics.request import Window
from analytics.results import Findings
from analytics.slots import slot_seconds
from benchmarks.analytics import oracle, traffic


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the kind of its analysis, and the queries that give DuckDB's answer."""

    kind: str
    queries: Callable[[Window, int], list[str]]
    parameters: dict[str, str] = field(default_factory=dict)
    points: int = 400  #: of its chart over time


def _latency(slot: int) -> list[str]:
    return [oracle.latency("destination"), oracle.latency("destination", "consumer"), oracle.latency_over_time(slot)]


ASKED = (
    Asked("traffic", lambda _, slot: [oracle.traffic(slot), oracle.latency("destination")]),
    Asked("weeks", lambda window, slot: [oracle.weeks(window, slot)]),
    Asked("league", lambda window, _: [oracle.clients(window)]),
    Asked("fan-out", lambda *_: [oracle.ways()]),
    Asked("latency", lambda _, slot: _latency(slot), points=60),
    Asked("depth", lambda window, slot: [oracle.depths(window, min(slot, 3600))]),
    Asked("skew", lambda window, _: [oracle.clients(window)]),
    Asked("health", lambda window, _: [oracle.clients(window)]),
    Asked("dead-letters", lambda _, slot: [oracle.causes(slot)]),
    Asked("repeats", lambda *_: [oracle.repeats()]),
    Asked("filters", lambda *_: [oracle.ways()]),
    Asked("orphans", lambda *_: [oracle.ways()]),
)


def ask_spark(session: SparkSession, archive: Any, asked: Asked, window: Window) -> Findings:
    """What the analysis finds, from reading to its charts and tables."""
    analysis = ANALYSES[asked.kind]
    read = partial(read_events, session, archive)
    question = Question(window, read, analysis.values(asked.parameters), traffic.DEFINITIONS)
    return import_module(analysis.module).run(question, _collect)


def _collect(_: str, frame: DataFrame) -> pa.Table:
    return frame.toArrow()


def ask_duckdb(connection: duckdb.DuckDBPyConnection, asked: Asked, window: Window) -> int:
    """DuckDB's answer; how many rows it has."""
    slot = slot_seconds(window, asked.points)
    return sum(connection.sql(query).to_arrow_table().num_rows for query in asked.queries(window, slot))
