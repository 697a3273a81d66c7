"""Orphans: destinations that receive and nobody reads, consumer queues without acks, definitions that never matched."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import DESTINATION, MAX_BARS, Collect, empty_result, table_of, total
from analytics.model.routing_coverage import keeps_dead_letters, unmatched
from analytics.model.wording import join_names, pluralize, sentence, short_name, verb_form
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.transforms.route_counts import route_counts

STEPS = 1
UNREAD, UNACKED = "nobody reads it", "it is read, and nothing acknowledged"
_UNREAD = (
    DESTINATION,
    ResultColumn("finding", "Finding"),
    ResultColumn("arrived", "Arrived", "messages"),
    ResultColumn("bytes", "Arrived", "bytes"),
    ResultColumn("dispatched", "Given out", "messages"),
    ResultColumn("last_arrived", "Last arrival", "time"),
    ResultColumn("last_read", "Last read", "time"),
)
_IDLE = (ResultColumn("definition", "Definition"), ResultColumn("destination", "For", about="destination"))


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """What is kept up for nobody."""
    found = collect("ways of messages", route_counts(question.events))
    rows_read = total(found, "events")
    if not rows_read:
        return empty_result()
    rows = find_unread(found, question)
    sent_to = [each["original"] for each in found.to_pylist() if each["sent"]]
    idle = unmatched(question.routing, sent_to) if question.routing else []
    unused = [{"definition": id, "destination": place} for id, place in idle]
    series = {"arrived": [each["arrived"] for each in rows[:MAX_BARS]]}
    names = [short_name(each["destination"]) for each in rows[:MAX_BARS]]
    tables = [
        ResultTable("orphans", "Destinations that nobody is done with", _UNREAD, table_of(rows, _UNREAD)),
        ResultTable("unused", "Definitions that nothing was sent to", _IDLE, table_of(unused, _IDLE)),
    ]
    return JobResult(
        sentence=_sentence(rows, unused, question, _failures(found, question)),
        headline=(
            HeadlineFigure("Destinations nobody reads", sum(each["finding"] == UNREAD for each in rows)),
            HeadlineFigure("Never acknowledged", sum(each["finding"] == UNACKED for each in rows)),
            HeadlineFigure("Definitions unused", len(unused)),
            HeadlineFigure("Arrived for nobody", sum(each["arrived"] for each in rows), "messages"),
        ),
        rows_read=rows_read,
        charts=(("Arrived for nobody", charts.bars(names, series, "messages", log=False)),) if rows else (),
        tables=tuple(table for table in tables if table.rows.num_rows),
    )


def find_unread(found: pa.Table, question: RunQuestion) -> list[dict[str, Any]]:
    """Destinations where messages came and were not acknowledged; dead letters wait for people, so not theirs."""
    is_failure = keeps_dead_letters(question.routing)
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
    """Queues of dead letters to which any came, with the most first; they wait for people, and are not listed."""
    is_failure = keeps_dead_letters(question.routing)
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
        f"{join_names(nobody)} {verb_form(len(nobody), 'receives', 'receive')} messages that nobody reads"
        if nobody
        else "",
        f"{join_names(unacked)} {verb_form(len(unacked), 'is', 'are')} read and never acknowledged" if unacked else "",
        ("everything else that arrived" if failures else "everything that arrived") + " is read by somebody"
        if not rows
        else "",
        f"dead letters wait for people and are left out: {join_names([short_name(each) for each in failures])}"
        if failures
        else "",
        f"nothing was sent to {pluralize(len(unused), 'definition')}" if unused else "",
        "the definitions in force could not be read" if question.routing is None else "",
    )
