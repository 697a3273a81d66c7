"""Fixtures: the load, run once, and the figures of the broker and its analyses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from analytics.archive.archiver import Archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.footer_stats import recording_start_us
from analytics.archive.trace_stream import TraceStream
from analytics.requests.catalogue import ANALYSES
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.results.storage import JobResult
from brokerapp.config.reader import parse_config
from tests.ledger.clients import now, number_of
from tests.ledger.ledger import Ledger
from tests.ledger.load import Load
from tests.ledger.rules import BROKER, CONFIG
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until


@dataclass(frozen=True)
class Done:
    """A load that was done: by whom, when, and where it is recorded."""

    load: Load
    node: RunningNode
    window: TimeWindow
    data: Path

    @property
    def ledger(self) -> Ledger:
        """What clients saw."""
        return self.load.ledger

    @property
    def archive(self) -> Path:
        """The recorded traffic."""
        return self.data / "archive"


@pytest.fixture(scope="session")
def done(store_url, tmp_path_factory) -> Iterator[Done]:
    """The load, recorded and archived; its node still runs."""
    node, since_us = RunningNode(parse_config(CONFIG, {}), store_url), now()
    load, data = Load(node), tmp_path_factory.mktemp("ledger")
    load.run()
    until_us = now() + 1
    _name(load)
    node.look(lambda: node.node._parts.reports.trace.record_depths())  # as at the next minute
    _archive(node, data / "archive")
    yield Done(load, node, TimeWindow(since_us, until_us), data)
    node.stop()


def _name(load: Load) -> None:
    """Have the ledger know the message-ids of what no client saw, and an operator does."""
    places = {each.place for each in load.ledger.copies if each.gone is None and each.place.startswith("queue://")}
    for place in places:
        for each in load.node.browse(place.removeprefix("queue://")):
            load.ledger.messages[number_of(each.headers, each.body)].id = each.id


def _archive(node: RunningNode, folder: Path) -> None:
    """Have all that was recorded in the archive."""
    stream, archive = TraceStream(node.redis_url, BROKER), BrokerArchive(folder, BROKER)
    archiver, recorder = Archiver(stream, archive, lambda _: None), node.node.broker.tracer
    wait_until(lambda: node.look(lambda: recorder.pending) == 0, "all is recorded")
    recorded = node.look(lambda: recorder.recorded)
    wait_until(lambda: archiver.flush() and archive.commit.events >= recorded, "all is archived")
    archiver.close()
    stream.close()


@dataclass(frozen=True)
class Answer:
    """What an analysis found."""

    findings: JobResult
    tables: dict[str, list[dict[str, Any]]]  #: by name

    @property
    def headline(self) -> dict[str, float | None]:
        """The figures, by their labels."""
        return {each.label: each.value for each in self.findings.headline}


def _tables(findings: JobResult) -> dict[str, list[dict[str, Any]]]:
    """The columns that a page shows."""
    return {
        each.name: each.rows.select([column.name for column in each.columns]).to_pylist() for each in findings.tables
    }


@pytest.fixture(scope="session")
def ask(done, spark):
    """A function that carries out an analysis of the load, or of another archive, once for each request."""
    from analytics.spark.event_frames import EventReader

    answers: dict[Any, Answer] = {}
    routing = done.node.ask(lambda admin: admin.definitions())

    def carry_out(
        kind: str, archive: Path = done.archive, trial: WhatIfRequest | None = None, **parameters: str
    ) -> Answer:
        key = kind, archive, id(trial), *sorted(parameters.items())
        if key not in answers:
            reader = EventReader(spark, archive)
            question = RunQuestion(
                done.window, reader.events, ANALYSES[kind].values(parameters), routing,
                trial=trial, began_us=recording_start_us(archive), count=reader.counts,
            )  # fmt: skip
            findings = import_module(ANALYSES[kind].module).run(question, lambda _, frame: frame.toArrow())
            answers[key] = Answer(findings, _tables(findings))
        return answers[key]

    return carry_out
