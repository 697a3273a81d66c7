"""Orphaned destinations: without consumers, without acknowledgements; definitions that never matched."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import DESTINATION, MAX_BARS, Collect, empty_result, table_of, total
from analytics.model.routing_coverage import dlq_predicate, unmatched_definitions
from analytics.model.wording import join_names, pluralize, sentence, short_name
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import WHOLE_DAYS, read_counts
from analytics.tables.definitions import ROUTES
from analytics.transforms.route_counts import routes_of

STEPS = 1
UNREAD, UNACKED = "no consumers", "never acknowledged"
_UNREAD = (
    DESTINATION,
    ResultColumn("finding", "Finding"),
    ResultColumn("arrived", "Enqueued", "messages"),
    ResultColumn("bytes", "Enqueued", "bytes"),
    ResultColumn("dispatched", "Dispatched", "messages"),
    ResultColumn("last_arrived", "Last enqueue", "time"),
    ResultColumn("last_read", "Last dispatch", "time"),
)
_IDLE = (ResultColumn("definition", "Definition"), ResultColumn("destination", "Destination", about="destination"))


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Find destinations and definitions without use."""
    counts = read_counts(question, WHOLE_DAYS)
    found = collect("routes of messages", routes_of(counts.messages(ROUTES, "original", "destination")))
    rows_read = total(found, "events")
    if not rows_read:
        return empty_result()
    rows = find_unread(found, question)
    sent_to = [each["original"] for each in found.to_pylist() if each["sent"]]
    idle = unmatched_definitions(question.routing, sent_to) if question.routing else []
    unused = [{"definition": id, "destination": place} for id, place in idle]
    series = {"enqueued": [each["arrived"] for each in rows[:MAX_BARS]]}
    names = [short_name(each["destination"]) for each in rows[:MAX_BARS]]
    tables = [
        ResultTable("orphans", "Orphaned destinations", _UNREAD, table_of(rows, _UNREAD)),
        ResultTable("unused", "Unused definitions", _IDLE, table_of(unused, _IDLE)),
    ]
    return JobResult(
        sentence=_sentence(rows, unused, question, _failures(found, question)),
        headline=(
            HeadlineFigure("Without consumers", sum(each["finding"] == UNREAD for each in rows)),
            HeadlineFigure("Never acknowledged", sum(each["finding"] == UNACKED for each in rows)),
            HeadlineFigure("Unused definitions", len(unused)),
            HeadlineFigure("Unconsumed messages", sum(each["arrived"] for each in rows), "messages"),
        ),
        rows_read=rows_read,
        charts=(("Unconsumed messages", charts.bars(names, series, "messages", log=False)),) if rows else (),
        tables=tuple(table for table in tables if table.rows.num_rows),
    )


def find_unread(found: pa.Table, question: RunQuestion) -> list[dict[str, Any]]:
    """Return destinations with messages and without acknowledgements, except dead-letter queues."""
    is_failure = dlq_predicate(question.routing)
    of: dict[str, dict[str, Any]] = {}
    left = {
        each["original"] for each in found.to_pylist() if each["copies"] and each["original"] != each["destination"]
    }
    for each in found.to_pylist():
        row = of.setdefault(each["destination"], {
            "destination": each["destination"], "arrived": 0, "bytes": 0, "dispatched": 0, "acked": 0,
            "last_arrived": None, "last_read": None,
        })  # fmt: skip
        row["arrived"] += max(each["sent"], each["copies"])
        row["bytes"] += max(each["bytes_sent"], each["bytes_copied"])
        for name in ("dispatched", "acked"):
            row[name] += each[name]
        for name in ("last_arrived", "last_read"):
            row[name] = max(filter(None, (row[name], each[name])), default=None)
    rows = [
        {**row, "finding": UNACKED if row["dispatched"] else UNREAD}
        for name, row in of.items()
        if row["arrived"] and not row["acked"] and name not in left and not is_failure(name)
    ]
    return sorted(rows, key=lambda each: (-each["arrived"], each["destination"]))


def _failures(found: pa.Table, question: RunQuestion) -> list[str]:
    """Return dead-letter queues with new messages, the most first; they are not listed as orphaned."""
    is_failure = dlq_predicate(question.routing)
    came: Counter[str] = Counter()
    for each in found.to_pylist():
        if each["copies"] and is_failure(each["destination"]):
            came[each["destination"]] += each["copies"]
    return [name for name, _ in came.most_common()]


def _sentence(
    rows: list[dict[str, Any]], unused: list[dict[str, Any]], question: RunQuestion, failures: list[str]
) -> str:
    nobody = [short_name(each["destination"]) for each in rows if each["finding"] == UNREAD]
    unacked = [short_name(each["destination"]) for each in rows if each["finding"] == UNACKED]
    return sentence(
        f"no consumers on {join_names(nobody)}" if nobody else "",
        f"no acknowledgements on {join_names(unacked)}" if unacked else "",
        "all destinations with messages have consumers" if not rows else "",
        f"excluded dead-letter queues: {join_names([short_name(each) for each in failures])}" if failures else "",
        f"{pluralize(len(unused), 'definition')} received no messages" if unused else "",
        "the active definitions could not be read" if question.routing is None else "",
    )
