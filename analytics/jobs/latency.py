"""Acknowledgement latency: percentiles by queue and by consumer, and over time."""

from __future__ import annotations

import pyarrow as pa

from analytics.jobs.common import latency_tables
from analytics.jobs.common.tables import (
    ACKED,
    CLIENT,
    DESTINATION,
    LATENCIES,
    Collect,
    empty_result,
    in_milliseconds,
    sort_descending,
    total,
)
from analytics.model.time_buckets import iso_times, slot_name, slot_seconds, whole_slots
from analytics.model.wording import client_name, format_duration, sentence, short_name
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultTable
from analytics.rollups.log_histogram import percentiles
from analytics.tables.counts import chart_slot, read_counts
from analytics.transforms import aggregates
from analytics.transforms.event_filters import of_consumer, of_destination
from analytics.transforms.latency import latency_of

STEPS = 1
#: Points of the chart over time: each has a histogram of its own.
POINTS = 60
MAX_LINES = 6
#: Share of messages in words, by percentile.
WORDS = {"p50": "half", "p95": "95%", "p99": "99%"}


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Compute acknowledgement latency by queue, by consumer and over time."""
    window, parameters = question.covered, question.parameters
    slot = chart_slot(question, slot_seconds(window, POINTS))
    chosen = parameters.get("percentile") or "p95"
    counts = (
        read_counts(question, slot)
        .where(lambda each: of_consumer(each, parameters.get("consumer", "")))
        .where(lambda each: of_destination(each, parameters.get("destination", "")))
    )
    acks = counts.acks("destination", "consumer", aggregates.slot(slot).alias("slot"))
    histogram = collect("acknowledgement latency", latency_of(acks))
    if not histogram.num_rows:
        return empty_result("No messages acknowledged in this time range.")
    by_queue, by_consumer = (histogram.filter(histogram[each].is_null()) for each in ("consumer", "slot"))
    by_consumer = by_consumer.filter(by_consumer["consumer"].is_valid())
    queues = latency_tables.by_destination(by_queue, chosen)
    consumers = sort_descending(percentiles(by_consumer, ["destination", "consumer"]), f"{chosen}_us")
    consumers = consumers.rename_columns({"messages": "acked", "consumer": "client"})
    columns = (CLIENT, DESTINATION, ACKED, *LATENCIES)
    lines = _over_time(by_queue, queues["destination"].to_pylist()[:MAX_LINES], chosen, window, slot)
    drawn = any(sum(each is not None for each in values) > 1 for values in lines[1].values())  # a point is no line
    return JobResult(
        sentence=_sentence(queues, consumers, chosen),
        headline=(
            HeadlineFigure("Acknowledged", total(queues, "acked"), "messages"),
            *latency_tables.figures(queues, 3, chosen),
        ),
        rows_read=total(queues, "acked"),
        notes=tuple(latency_tables.notes(by_queue)),
        charts=(
            ("By destination", latency_tables.bars(queues)),
            *(
                ((f"{chosen} per {slot_name(slot)}", charts.lines(*lines, "milliseconds")),)
                if drawn
                else ()
            ),
        ),
        tables=(
            latency_tables.table("By destination", queues),
            ResultTable("latency-by-consumer", "By consumer", columns, in_milliseconds(consumers)),
        ),
    )  # fmt: skip


def _over_time(
    rows: pa.Table, names: list[str], chosen: str, window: TimeWindow, slot: int
) -> tuple[list[str], dict[str, list[float | None]]]:
    begins = whole_slots(window, slot)
    place = {start: index for index, start in enumerate(begins)}
    found: dict[str, list[float | None]] = {short_name(name): [None] * len(begins) for name in names}
    by_slot = percentiles(rows, ["destination", "slot"])
    for each in by_slot.select(["destination", "slot", f"{chosen}_us"]).to_pylist():
        if each["destination"] in names and each[f"{chosen}_us"] is not None:
            at = place.get(int(each["slot"].timestamp()))
            if at is not None:
                found[short_name(each["destination"])][at] = round(each[f"{chosen}_us"] / 1000, 3)
    return iso_times(begins), found


def _sentence(queues: pa.Table, consumers: pa.Table, chosen: str) -> str:
    queues, consumers = (each.filter(each[f"{chosen}_us"].is_valid()) for each in (queues, consumers))
    if not queues.num_rows:
        return sentence(
            "every acknowledgement has a time before its message's arrival, because the clocks of nodes differ"
        )
    slowest, *_, fastest = queues.to_pylist() * 2
    named = consumers.to_pylist()
    worst = [each for each in named if each["destination"] == slowest["destination"]]
    part = WORDS[chosen]
    return sentence(
        f"{part} of the messages of {short_name(slowest['destination'])} are acknowledged within "
        f"{format_duration(slowest[f'{chosen}_us'])}, the slowest of {queues.num_rows:,}"
        if queues.num_rows > 1
        else f"{part} of the messages of {short_name(slowest['destination'])} are acknowledged within "
        f"{format_duration(slowest[f'{chosen}_us'])}",
        f"fastest: {short_name(fastest['destination'])} with {format_duration(fastest[f'{chosen}_us'])}"
        if queues.num_rows > 1
        else "",
        f"slowest consumer of {short_name(slowest['destination'])}: {client_name(worst[0]['client'])} with "
        f"{format_duration(worst[0][f'{chosen}_us'])}"
        if len(worst) > 1
        else "",
    )
