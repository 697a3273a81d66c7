"""Orphans: destinations that receive and nobody reads, consumer queues without acks, definitions that never matched."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import DESTINATION, MAX_BARS, Collect, nothing, table_of, total
from analytics.model.routing_coverage import keeps_dead_letters, unmatched
from analytics.model.wording import counted, form, listed, sentence, short
from analytics.requests.question import Question
from analytics.results import charts
from analytics.results.storage import Column, Figure, Findings, Table
from analytics.transforms.route_counts import ways

STEPS = 1
UNREAD, UNACKED = "nobody reads it", "it is read, and nothing acknowledged"
_UNREAD = (
    DESTINATION,
    Column("finding", "Finding"),
    Column("arrived", "Arrived", "messages"),
    Column("bytes", "Arrived", "bytes"),
    Column("dispatched", "Given out", "messages"),
    Column("last_arrived", "Last arrival", "time"),
    Column("last_read", "Last read", "time"),
)
_IDLE = (Column("definition", "Definition"), Column("destination", "For", about="destination"))


def run(question: Question, collect: Collect) -> Findings:
    """What is kept up for nobody."""
    found = collect("ways of messages", ways(question.events))
    rows_read = total(found, "events")
    if not rows_read:
        return nothing()
    rows = unread(found, question)
    sent_to = [each["original"] for each in found.to_pylist() if each["sent"]]
    idle = unmatched(question.routing, sent_to) if question.routing else []
    unused = [{"definition": id, "destination": place} for id, place in idle]
    series = {"arrived": [each["arrived"] for each in rows[:MAX_BARS]]}
    names = [short(each["destination"]) for each in rows[:MAX_BARS]]
    tables = [
        Table("orphans", "Destinations that nobody is done with", _UNREAD, table_of(rows, _UNREAD)),
        Table("unused", "Definitions that nothing was sent to", _IDLE, table_of(unused, _IDLE)),
    ]
    return Findings(
        sentence=_sentence(rows, unused, question, _failures(found, question)),
        headline=(
            Figure("Destinations nobody reads", sum(each["finding"] == UNREAD for each in rows)),
            Figure("Never acknowledged", sum(each["finding"] == UNACKED for each in rows)),
            Figure("Definitions unused", len(unused)),
            Figure("Arrived for nobody", sum(each["arrived"] for each in rows), "messages"),
        ),
        rows_read=rows_read,
        charts=(("Arrived for nobody", charts.bars(names, series, "messages", log=False)),) if rows else (),
        tables=tuple(table for table in tables if table.rows.num_rows),
    )


def unread(found: pa.Table, question: Question) -> list[dict[str, Any]]:
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


def _failures(found: pa.Table, question: Question) -> list[str]:
    """Queues of dead letters to which any came, with the most first; they wait for people, and are not listed."""
    is_failure = keeps_dead_letters(question.routing)
    came: Counter[str] = Counter()
    for each in found.to_pylist():
        if each["copies"] and is_failure(each["destination"]):
            came[each["destination"]] += each["copies"]
    return [name for name, _ in came.most_common()]


def _sentence(rows: list[dict[str, Any]], unused: list[dict[str, Any]], question: Question, failures: list[str]) -> str:
    nobody = [short(each["destination"]) for each in rows if each["finding"] == UNREAD]
    unacked = [short(each["destination"]) for each in rows if each["finding"] == UNACKED]
    return sentence(
        f"{listed(nobody)} {form(len(nobody), 'receives', 'receive')} messages that nobody reads" if nobody else "",
        f"{listed(unacked)} {form(len(unacked), 'is', 'are')} read and never acknowledged" if unacked else "",
        ("everything else that arrived" if failures else "everything that arrived") + " is read by somebody"
        if not rows
        else "",
        f"dead letters wait for people and are left out: {listed([short(each) for each in failures])}"
        if failures
        else "",
        f"nothing was sent to {counted(len(unused), 'definition')}" if unused else "",
        "the definitions in force could not be read" if question.routing is None else "",
    )
