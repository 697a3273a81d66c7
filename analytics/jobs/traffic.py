"""Traffic by destination and slot, with the latency of each consumer queue."""

from __future__ import annotations

import pyarrow as pa

from analytics import charts
from analytics.histogram import ERROR, percentiles
from analytics.jobs.parts import (
    ACKED,
    DESTINATION,
    LATENCIES,
    MAX_BARS,
    Collect,
    in_milliseconds,
    nothing,
    ordered,
    total,
)
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
    delays = ordered(percentiles(histogram, ["destination"]), "p95_us").rename_columns({"messages": "acked"})
    totals = _totals(by_time)
    return Findings(
        sentence=_sentence(totals, delays),
        headline=(
            Figure("Arrived", total(totals, "arrived"), "messages"),
            Figure("Acknowledged", total(totals, "acked"), "messages"),
            Figure("Bytes in", total(totals, "bytes"), "bytes"),
            *(
                Figure(f"p95 at {short(each['destination'])}", each["p95_us"] / 1000, "ms")
                for each in delays.slice(0, 1).to_pylist()
            ),
        ),
        rows_read=total(by_time, "events"),
        charts=_charts(by_time, delays, question.covered, slot),
        tables=(
            Table("traffic", "Traffic by destination", (DESTINATION, *_COUNTS), totals),
            Table(
                "latency",
                f"Time from the broker to the ack (within {ERROR:.1%})",
                (DESTINATION, ACKED, *LATENCIES),
                in_milliseconds(delays),
            ),
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


def _charts(by_time: pa.Table, delays: pa.Table, window: Window, slot: int) -> tuple:
    unit = f"messages per {span(slot)}"
    found = [
        (title, charts.over_time(*series(by_time, column, window, slot), unit))
        for title, column in (("Arrived", "arrived"), ("Acknowledged", "acked"))
    ]
    if delays.num_rows:
        slowest = in_milliseconds(delays.slice(0, MAX_BARS))
        bars = {column.label: slowest[column.name].to_pylist() for column in LATENCIES}
        names = [short(each) for each in slowest["destination"].to_pylist()]
        found.append(("Time from the broker to the ack", charts.bars(names, bars, "milliseconds")))
    return tuple(found)


def _sentence(totals: pa.Table, delays: pa.Table) -> str:
    places, first = totals.num_rows, totals.slice(0, 1).to_pylist()[0]
    messages, at = counted(total(totals, "arrived"), "message"), counted(places, "destination")
    slowest = delays.slice(0, 1).to_pylist()
    return sentence(
        f"{messages} arrived at {at}, copies included",
        f"most of them, {first['arrived']:,}, at {short(first['destination'])}" if places > 1 else "",
        f"the slowest consumers are those of {short(slowest[0]['destination'])}, where 95 % of messages are "
        f"acknowledged within {duration(slowest[0]['p95_us'])}"
        if slowest
        else "none was acknowledged",
    )
