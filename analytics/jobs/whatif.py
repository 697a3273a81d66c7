"""What-if analysis: routes recorded messages by the active and by proposed definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from analytics.jobs.common import recorded_depths
from analytics.jobs.common.recorded_depths import read_recorded_depths
from analytics.jobs.common.tables import Collect
from analytics.model.time_buckets import slot_seconds, slot_starts
from analytics.requests.errors import AnalysisFailed
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.results.storage import JobResult
from analytics.transforms.whatif import classes, flows, is_recorded, jms_forms, sent_at
from analytics.whatif import report
from analytics.whatif.answer_encoding import AnswerEncoding
from analytics.whatif.backlog_prediction import continuous_rate
from analytics.whatif.comparison import WhatIfComparison, backlog_by_name, series_by_name
from analytics.whatif.conditions import ScriptedRouting, SelectorOracle, TooManyConditions
from analytics.whatif.message_counts import MessageClasses, TimeBuckets, WhatIfTally
from brokerapp.engine.routing.routing_context import RoutingContext
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination, DestinationKind

STEPS = 4 + recorded_depths.STEPS
#: Points of a chart.
MAX_POINTS = 120
#: Rows of classes and buckets that one process takes in: some 100 bytes each.
MAX_ROWS = 2_000_000
#: Forms of JMS messages whose properties are read by type, applications send few; those of others are read as text.
MAX_FORMS = 1000

#: Messages looked at for each sample: of one moment there may be many.
PER_MOMENT = 100


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Route the messages of the time range by the active and by the proposed definitions."""
    trial = question.trial
    if trial is None:
        raise AnalysisFailed("A what-if analysis needs proposed definitions. Start it from a draft.")
    question = replace(question, window=question.covered)  # buckets of days would make one point of some minutes
    buckets = buckets_of(question.window)
    flow = collect("messages sent, stored and removed", flows(question.events, buckets.seconds))
    if not pc.sum(flow["sent"]).as_py():
        return JobResult("No messages recorded in this time range.", 0)
    try:
        return _judged(question, trial, flow, buckets, collect)
    except TooManyConditions as error:
        raise AnalysisFailed(f"These definitions cannot be compared: {error}.") from error


def buckets_of(window: TimeWindow) -> TimeBuckets:
    """Return the shortest buckets with at most MAX_POINTS points."""
    seconds = slot_seconds(window, MAX_POINTS)
    begins = slot_starts(window, seconds)
    return TimeBuckets(begins[0], seconds, len(begins))


def _judged(
    question: RunQuestion, trial: WhatIfRequest, flow: pa.Table, buckets: TimeBuckets, collect: Collect
) -> JobResult:
    existed, gone = _existed(flow, trial)
    trial = replace(trial, circumstances=existed)
    routings = [_routing(trial, each) for each in (trial.current, trial.proposed)]
    coding = _coding(routings, flow)
    counted = None
    if coding.groups:
        typed = collect("types of JMS properties", jms_forms(question.events, coding.destinations).limit(MAX_FORMS))
        frame = classes(question.events, coding, buckets.seconds, typed["form"].to_pylist())
        counted = collect("messages by selector results", _bounded(frame))
        if counted.num_rows > MAX_ROWS:
            raise AnalysisFailed(
                f"The selectors split the messages into more than {MAX_ROWS:,} groups. Choose a shorter time range."
            )
    known = read_recorded_depths(question, buckets.seconds, collect)
    found = MessageClasses.of(flow, counted, coding, buckets)
    comparison = WhatIfComparison(
        *(WhatIfTally.of(each, found, coding, buckets, _hearing(flow, existed)) for each in routings),
        buckets,
        _paces(flow, buckets),
        backlog_by_name(known.courses, known.begins, known.slot, buckets),
        _sharing(routings),
    )
    samples = _samples(question, comparison, coding, collect)
    unknown = [each for each in coding.conditions if not is_recorded(each)]
    return report.build_result(
        comparison, trial, samples, rows_read=pc.sum(flow["events"]).as_py(),
        notes=report.notes(comparison, trial, flow, unknown, gone), covered=question.covered,
    )  # fmt: skip


def _paces(flow: pa.Table, buckets: TimeBuckets) -> dict[str, np.ndarray]:
    """Return the removal rate of each destination, by bucket."""
    left, busy = (series_by_name(flow, column, buckets) for column in ("left", "busy"))
    none = np.zeros(buckets.count)
    return {name: continuous_rate(each, busy.get(name, none), buckets.seconds) for name, each in left.items()}


def _routing(trial: WhatIfRequest, definitions: Definitions) -> ScriptedRouting:
    oracle = SelectorOracle()
    return ScriptedRouting(trial.circumstances.topology(definitions, oracle.compile_scripted), oracle)


def _existed(flow: pa.Table, trial: WhatIfRequest) -> tuple[RoutingContext, list[str]]:
    """Add queues that existed in the time range and no longer do to the routing context; return both."""
    recorded = map(Destination.parse, _destinations(flow, "stored"))
    known = set(trial.circumstances.queues)
    gone = [each.name for each in recorded if each.kind is DestinationKind.QUEUE and each.name not in known]
    return trial.circumstances.with_queues(gone), gone


def _hearing(flow: pa.Table, existed: RoutingContext) -> Callable[[Destination], bool]:
    """Return a predicate: whether a topic had an active subscriber in the time range, or has one now."""
    given = set(_destinations(flow, "dispatched"))

    def is_heard(topic: Destination) -> bool:
        return str(topic) in given or existed.has_subscribers(topic)

    return is_heard


def _destinations(flow: pa.Table, column: str) -> list[str]:
    """Return the destinations with a value above 0 in a column."""
    return pc.unique(flow.filter(pc.greater(flow[column], 0))["destination"]).to_pylist()


def _coding(routings: Sequence[ScriptedRouting], flow: pa.Table) -> AnswerEncoding:
    asked = {}
    for name in _destinations(flow, "sent"):
        destination = Destination.parse(name)
        every = [each for routing in routings for each in routing.conditions(destination)]
        asked[name] = tuple(dict.fromkeys(every))
    return AnswerEncoding.of(asked)


def _bounded(frame: DataFrame) -> DataFrame:
    return frame.limit(MAX_ROWS + 1)


def _sharing(routings: Sequence[ScriptedRouting]) -> dict[str, list[str]]:
    """Return the queues bound to each shared address, all in native form."""
    bindings = routings[0].topology.bindings
    addresses = {each.address for each in bindings}
    found = {address: bindings.sharing(address) for address in addresses}
    return {
        str(Destination.queue(address)): [str(Destination.queue(each)) for each in queues]
        for address, queues in found.items()
        if queues
    }


def _samples(
    question: RunQuestion, comparison: WhatIfComparison, coding: AnswerEncoding, collect: Collect
) -> list[report.MessageSample]:
    """Find one recorded message for each class to show, among those sent when its newest was."""
    wanted = comparison.sampled
    if not wanted:
        return []
    found = comparison.draft.classes
    keys = {number: found.keys[number] for _, number in wanted}
    moments = sorted({int(found.newest[number]) for number in keys})
    frame = sent_at(question.events, sorted({destination for destination, _ in keys.values()}), moments)
    by_class = {
        (row["destination"], coding.encode_answers(row["destination"], _headers(row))): report.MessageSample(
            "", row["msg_id"], row["us"], row["destination"]
        )
        for row in collect("samples", frame.limit(PER_MOMENT * len(moments))).to_pylist()
    }
    return [replace(by_class[keys[number]], what=what) for what, number in wanted if keys[number] in by_class]


def _headers(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a recorded message as selectors read them."""
    return {**dict(row["ps"] or ()), "message-id": row["msg_id"], "timestamp": str(row["born_ms"])}
