"""Traffic by destination and over time, with acknowledgement latency."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from analytics.jobs.common import latency_tables
from analytics.jobs.common.tables import (
    ACKED,
    DESTINATION,
    Collect,
    empty_result,
    rollback_notes,
    sort_descending,
    total,
)
from analytics.model.time_buckets import series, slot_name, slot_seconds
from analytics.model.wording import format_duration, pluralize, sentence, short_name, verb_form
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import chart_slot, read_counts
from analytics.tables.definitions import TRAFFIC
from analytics.transforms import aggregates
from analytics.transforms.event_filters import of_destination
from analytics.transforms.latency import of_destinations
from analytics.transforms.traffic import traffic_of

STEPS = 2
#: The part of messages that may be sent in a window and stored after it without being worth a word.
EDGE = 0.01
_COUNTS = (
    ResultColumn("sent", "Sent", "messages"),
    ResultColumn("stored", "Stored", "messages"),
    ResultColumn("dispatched", "Dispatched", "messages"),
    ACKED,
    ResultColumn("bytes", "Enqueued", "bytes"),
)
_SUMMED = (*(column.name for column in _COUNTS), "arrived", "bytes_sent", "rolled_back")


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Sum messages sent, stored, dispatched and acknowledged by destination, with latency."""
    slot = chart_slot(question, slot_seconds(question.covered))
    counts = read_counts(question, slot).where(
        lambda each: of_destination(each, question.parameters.get("destination", ""))
    )
    by_slot = counts.messages(TRAFFIC, "destination", aggregates.slot(slot).alias("slot"))
    by_time = collect("traffic by destination and time", traffic_of(by_slot))
    if not by_time.num_rows:
        return empty_result()
    histogram = collect("acknowledgement latency", of_destinations(counts.acks("destination")))
    slow = latency_tables.by_destination(histogram)
    totals = _totals(by_time)
    return JobResult(
        sentence=_sentence(totals, slow),
        headline=(
            HeadlineFigure("Sent", total(totals, "sent"), "messages"),
            HeadlineFigure("Copies stored", total(totals, "stored"), "messages"),
            HeadlineFigure("Acknowledged", total(totals, "acked"), "messages"),
            HeadlineFigure("Bytes sent", total(totals, "bytes_sent"), "bytes"),
            *latency_tables.figures(slow, 1),
        ),
        rows_read=total(by_time, "events"),
        notes=(*rollback_notes(total(totals, "rolled_back")), *latency_tables.notes(histogram)),
        charts=_charts(by_time, slow, question.covered, slot, _copied(totals)),
        tables=(
            ResultTable("traffic", "Traffic by destination", (DESTINATION, *_COUNTS), totals),
            latency_tables.table("Acknowledgement latency", slow),
            ResultTable(
                "traffic-by-time",
                f"Traffic by destination and {slot_name(slot)}",
                (ResultColumn("slot", "Start", "time"), DESTINATION, *_COUNTS),
                sort_descending(by_time.drop_columns(["events", "rolled_back"]), "slot", "arrived"),
            ),
        ),
    )


def _totals(by_time: pa.Table) -> pa.Table:
    summed = by_time.group_by("destination").aggregate([(name, "sum") for name in _SUMMED])
    return sort_descending(summed.rename_columns({f"{name}_sum": name for name in _SUMMED}), "arrived", "+destination")


def _charts(by_time: pa.Table, slow: pa.Table, window: TimeWindow, slot: int, copied: bool) -> tuple:
    """Draw sent messages and stored copies apart: stacked they would count messages twice."""
    unit = f"messages per {slot_name(slot)}"
    columns = (("Sent", "sent"), ("Copies stored", "stored"), ("Acknowledged", "acked"))
    drawn = {title: series(by_time, column, window, slot) for title, column in columns}
    if not copied:
        del drawn["Copies stored"]
    found = [(title, charts.over_time(*each, unit)) for title, each in drawn.items() if each[1]]
    if slow.num_rows:
        found.append(("Acknowledgement latency", latency_tables.bars(slow)))
    return tuple(found)


def _sentence(totals: pa.Table, slow: pa.Table) -> str:
    first = totals.slice(0, 1).to_pylist()[0]
    slowest = [each for each in slow.slice(0, 1).to_pylist() if each["p95_us"] is not None]
    return sentence(
        *_came(totals),
        f"busiest: {short_name(first['destination'])} with {first['arrived']:,}" if totals.num_rows > 1 else "",
        f"slowest: {short_name(slowest[0]['destination'])}, where 95% of messages are "
        f"acknowledged within {format_duration(slowest[0]['p95_us'])}"
        if slowest
        else "no messages acknowledged"
        if not slow.num_rows
        else "",
    )


def _came(totals: pa.Table) -> Iterator[str]:
    """Yield the counts of messages sent and of copies stored, where these differ."""
    sent, stored = total(totals, "sent"), total(totals, "stored")
    if sent:
        yield f"{pluralize(sent, 'message')} {verb_form(sent, 'was', 'were')} sent to {_places(totals, 'sent')}"
    if stored and _copied(totals):
        copies = f"{pluralize(stored, 'copy', 'copies')} {verb_form(stored, 'was', 'were')} stored in"
        yield f"{copies} {_places(totals, 'stored')}" + ("" if sent else ", from messages sent to other destinations")


def _copied(totals: pa.Table) -> bool:
    """Return whether the copies stored differ from the messages sent at any destination."""
    pairs = zip(totals["sent"].to_pylist(), totals["stored"].to_pylist(), strict=True)
    return any(abs(sent - stored) > 1 + EDGE * max(sent, stored) for sent, stored in pairs)


def _places(totals: pa.Table, column: str) -> str:
    return pluralize(sum(each > 0 for each in totals[column].to_pylist()), "destination")
