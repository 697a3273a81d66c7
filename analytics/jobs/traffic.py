"""Traffic by destination and slot, with the latency of each consumer queue."""

from __future__ import annotations

import pyarrow as pa

from analytics import charts
from analytics.jobs import delays
from analytics.jobs.parts import ACKED, DESTINATION, Collect, nothing, ordered, total
from analytics.question import Question
from analytics.request import Window
from analytics.results import Column, Figure, Findings, Table
from analytics.slots import series, slot_seconds, span
from analytics.transforms.latency import latency_of_destinations
from analytics.transforms.traffic import traffic
from analytics.transforms.which import of_destination
from analytics.words import counted, duration, sentence, short

STEPS = 2
_COUNTS = (
    Column("arrived", "In", "messages"),
    Column("dispatched", "Out", "messages"),
    ACKED,
    Column("bytes", "In", "bytes"),
)


def run(question: Question, collect: Collect) -> Findings:
    """What arrived, left and was acknowledged where, and how long acknowledging took."""
    slot = slot_seconds(question.window)
    events = of_destination(question.events, question.parameters.get("destination", ""))
    by_time = collect("traffic by destination and time", traffic(events, slot))
    if not by_time.num_rows:
        return nothing()
    histogram = collect("latency by consumer queue", latency_of_destinations(events))
    slow = delays.by_destination(histogram)
    totals = _totals(by_time)
    return Findings(
        sentence=_sentence(totals, slow),
        headline=(
            Figure("Arrived", total(totals, "arrived"), "messages"),
            Figure("Acknowledged", total(totals, "acked"), "messages"),
            Figure("Bytes in", total(totals, "bytes"), "bytes"),
            *delays.figures(slow, 1),
        ),
        rows_read=total(by_time, "events"),
        charts=_charts(by_time, slow, question.covered, slot),
        tables=(
            Table("traffic", "Traffic by destination", (DESTINATION, *_COUNTS), totals),
            delays.table("Time from the broker to the ack", slow),
            Table(
                "traffic-by-time",
                f"Traffic by destination and {span(slot)}",
                (Column("slot", "From", "time"), DESTINATION, *_COUNTS),
                ordered(by_time.drop_columns("events"), "slot", "arrived"),
            ),
        ),
    )


def _totals(by_time: pa.Table) -> pa.Table:
    names = [column.name for column in _COUNTS]
    summed = by_time.group_by("destination").aggregate([(name, "sum") for name in names])
    return ordered(summed.rename_columns({f"{name}_sum": name for name in names}), "arrived", "+destination")


def _charts(by_time: pa.Table, slow: pa.Table, window: Window, slot: int) -> tuple:
    unit = f"messages per {span(slot)}"
    found = [
        (title, charts.over_time(*series(by_time, column, window, slot), unit))
        for title, column in (("Arrived", "arrived"), ("Acknowledged", "acked"))
    ]
    if slow.num_rows:
        found.append(("Time from the broker to the ack", delays.bars(slow)))
    return tuple(found)


def _sentence(totals: pa.Table, slow: pa.Table) -> str:
    places, first = totals.num_rows, totals.slice(0, 1).to_pylist()[0]
    messages, at = counted(total(totals, "arrived"), "message"), counted(places, "destination")
    slowest = slow.slice(0, 1).to_pylist()
    return sentence(
        f"{messages} arrived at {at}, each copy counted where it came to",
        f"most of them, {first['arrived']:,}, at {short(first['destination'])}" if places > 1 else "",
        f"the slowest consumers are those of {short(slowest[0]['destination'])}, where 95 % of messages are "
        f"acknowledged within {duration(slowest[0]['p95_us'])}"
        if slowest
        else "none was acknowledged",
    )
