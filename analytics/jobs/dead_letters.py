"""Groups dead letters, expired and dropped messages by similar causes.

Each message counts once: as expired, wherever it went; else as a dead letter; else as dropped.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import Collect, empty_result, table_of
from analytics.model.failure_patterns import COUNTED_AGAIN, EXPIRED, NOTE
from analytics.model.time_buckets import series, slot_name, slot_seconds
from analytics.model.wording import format_percent, pluralize, sentence, short_name, verb_form
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import chart_slot, read_counts
from analytics.transforms.event_filters import of_destination

STEPS = 1
#: Newest messages shown for each cause.
EXAMPLES = 3
#: Causes with example messages.
EXPLAINED = 50
DEAD, LATE, DROPPED = "dead letter", "expired", "dropped"
_CAUSE, _OUTCOME = ResultColumn("cause", "Cause"), ResultColumn("outcome", "Outcome")
_FAILED_AT = ResultColumn("destination", "Destination", about="destination")
_COLUMNS = (
    _CAUSE, _OUTCOME, _FAILED_AT, ResultColumn("messages", "Count", "count"), ResultColumn("share", "Share", "part"),
    ResultColumn("consumers", "Consumers", "count"), ResultColumn("first", "First", "time"),
    ResultColumn("last", "Last", "time"),
)  # fmt: skip
_EXAMPLES = (
    ResultColumn("message", "Message", about="message"), _FAILED_AT, ResultColumn("client", "Consumer", about="client"),
    ResultColumn("at", "Time", "time"), ResultColumn("reason", "Error text"),
)  # fmt: skip


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Group failed messages by cause, destination and consumer."""
    slot = chart_slot(question, slot_seconds(question.covered))
    counts = read_counts(question, slot).where(
        lambda each: of_destination(each, question.parameters.get("destination", ""))
    )
    found = collect("causes", counts.causes(slot))
    if not found.num_rows:
        return empty_result("No dead letters in this time range.")
    clusters = group_by_cause(found)
    figures = _figures(clusters)
    examples = [example for each in clusters[:EXPLAINED] for example in each["examples"]]
    return JobResult(
        sentence=_sentence(clusters, _expired_to_dlq(found)),
        headline=tuple(
            HeadlineFigure(label, count, "count") for label, count in figures.items()
        ),  # times: see COUNTED_AGAIN
        rows_read=sum(found["events"].to_pylist()),
        charts=((f"Failed messages per {slot_name(slot)}", _chart(found, question.covered, slot)),),
        tables=(
            ResultTable("causes", f"Causes ({COUNTED_AGAIN})", _COLUMNS, table_of(clusters, _COLUMNS)),
            ResultTable("examples", "Newest messages of each cause", _EXAMPLES, table_of(examples, _EXAMPLES)),
        ),
        notes=(NOTE,),
    )


def _figures(clusters: list[dict[str, Any]]) -> dict[str, int]:
    """Count the messages of each outcome."""
    labels = {DEAD: "Dead letters", LATE: "Expired", DROPPED: "Dropped"}
    return {
        label: sum(each["messages"] for each in clusters if each["outcome"] == word) for word, label in labels.items()
    }


def _expired_to_dlq(found: pa.Table) -> int:
    """Count the expired messages that went to a dead-letter queue."""
    return sum(
        each["messages"]
        for each in found.select(["outcome", "cause", "messages"]).to_pylist()
        if each["outcome"] == "dead_letter" and each["cause"] == EXPIRED
    )


def _outcome(kind: str, cause: str) -> str:
    """Return the outcome of an event of this kind and cause."""
    return LATE if cause == EXPIRED else DEAD if kind == "dead_letter" else DROPPED


def group_by_cause(found: pa.Table) -> list[dict[str, Any]]:
    """Group rows of schemas.CAUSES by outcome, cause and destination, the largest group first."""
    clusters: dict[tuple, list[dict[str, Any]]] = {}
    for each in found.to_pylist():
        outcome = _outcome(each["outcome"], each["cause"])
        clusters.setdefault((outcome, each["cause"], each["destination"]), []).append(each)
    whole = sum(found["messages"].to_pylist())
    rows = [_cluster(key, members, whole) for key, members in clusters.items()]
    return sorted(rows, key=lambda each: (-each["messages"], each["cause"], each["destination"]))


def _cluster(key: tuple, members: list[dict[str, Any]], whole: int) -> dict[str, Any]:
    messages = sum(each["messages"] for each in members)
    newest = sorted(members, key=lambda each: each["last"], reverse=True)[:EXAMPLES]
    return {
        "outcome": key[0], "cause": key[1], "destination": key[2], "messages": messages,
        "share": messages / whole, "consumers": len({each["consumer"] for each in members if each["consumer"]}),
        "first": min(each["first"] for each in members), "last": max(each["last"] for each in members),
        "examples": [
            {"message": each["example"], "destination": key[2], "client": each["consumer"], "at": each["last"],
             "reason": each["example_reason"]}
            for each in newest
        ],
    }  # fmt: skip


def _chart(found: pa.Table, window: TimeWindow, slot: int) -> dict:
    labels = [
        f"{_outcome(outcome, cause)}: {cause[:60]}"
        for outcome, cause in zip(found["outcome"].to_pylist(), found["cause"].to_pylist(), strict=True)
    ]
    labelled = found.append_column("label", pa.array(labels))
    return charts.over_time(*series(labelled, "messages", window, slot, by="label"), f"messages per {slot_name(slot)}")


def _sentence(clusters: list[dict[str, Any]], kept: int) -> str:
    """Summarize the groups; `kept` is the number of expired messages that went to a dead-letter queue."""
    dead = [each for each in clusters if each["outcome"] == DEAD]
    failed, late, dropped = _figures(clusters).values()
    whole = failed + late + dropped
    causes_found = len({each["cause"] for each in dead})
    others = [
        f"{pluralize(late + dropped, 'message')} expired or {verb_form(late + dropped, 'was', 'were')} dropped"
        if whole > failed
        else "",
        f"{format_percent(late / whole)} of all {whole:,} expired"
        + (f", {kept:,} of them went to a dead-letter queue" if kept else "")
        if late
        else "",
    ]
    if not dead:
        return sentence("no dead letters", *others)
    first = dead[0]
    return sentence(
        f"{pluralize(failed, 'dead letter')} with {pluralize(causes_found, 'cause')}",
        f"most frequent ({format_percent(first['messages'] / failed)}): {first['cause']}, "
        f"in {short_name(first['destination'])}"
        if len(dead) > 1
        else f"cause: {first['cause']}, in {short_name(first['destination'])}",
        *others,
    )
