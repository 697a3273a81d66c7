"""Traffic by destination and minute, with the latency of each consumer queue."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from analytics import charts
from analytics.question import Question
from analytics.request import Window
from analytics.results import Column, Findings, Table
from analytics.transforms.latency import ERROR, latency
from analytics.transforms.traffic import MINUTE, traffic
from analytics.transforms.which import of_destination

STEPS = 2
#: Points of a chart: wider windows are counted by a coarser bucket.
MAX_POINTS = 400
BUCKETS = tuple(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440))
MAX_BARS = 15

_DESTINATION = Column("destination", "Destination")
_COUNTS = (
    Column("arrived", "In", "messages"),
    Column("dispatched", "Out", "messages"),
    Column("acked", "Acknowledged", "messages"),
    Column("bytes", "In", "bytes"),
)
_LATENCIES = {"p50": "p50_us", "p95": "p95_us", "p99": "p99_us"}


def run(question: Question, collect: Callable[[str, DataFrame], pa.Table]) -> Findings:
    """What arrived, left and was acknowledged where, and how long acknowledging took."""
    window, events = question.window, of_destination(question.events, question.parameters.get("destination", ""))
    bucket = bucket_seconds(window)
    by_minute = collect("traffic by destination and minute", traffic(events, bucket))
    if not by_minute.num_rows:
        return Findings("Nothing was recorded in this window.", 0)
    delays = collect("latency by consumer queue", latency(events)).sort_by([("p95_us", "descending")])
    totals = _totals(by_minute)
    return Findings(
        sentence=_sentence(totals, delays),
        rows_read=pc.sum(by_minute["events"]).as_py(),
        charts=_charts(by_minute, delays, window, bucket),
        tables=(
            Table("traffic", "Traffic by destination", (_DESTINATION, *_COUNTS), totals),
            Table(
                "latency",
                f"Time from the broker to the ack (within {ERROR:.1%})",
                (
                    _DESTINATION,
                    Column("acked", "Acknowledged", "messages"),
                    *(Column(f"{name}_ms", name, "ms") for name in _LATENCIES),
                ),
                _in_milliseconds(delays),
            ),
            Table(
                "traffic-by-time",
                f"Traffic by destination and {_span(bucket)}",
                (Column("minute", "From"), _DESTINATION, *_COUNTS),
                by_minute.drop_columns("events").sort_by([("minute", "descending"), ("arrived", "descending")]),
            ),
        ),
    )


def bucket_seconds(window: Window) -> int:
    """The finest bucket that keeps charts readable."""
    return next((each for each in BUCKETS if window.seconds / each <= MAX_POINTS), BUCKETS[-1])


def _totals(by_minute: pa.Table) -> pa.Table:
    names = [column.name for column in _COUNTS]
    summed = by_minute.group_by("destination").aggregate([(name, "sum") for name in names])
    renamed = summed.rename_columns({f"{name}_sum": name for name in names})
    return renamed.sort_by([("arrived", "descending"), ("destination", "ascending")])


def _charts(by_minute: pa.Table, delays: pa.Table, window: Window, bucket: int) -> tuple:
    unit = f"messages per {_span(bucket)}"
    starts = _starts(window, bucket)
    found = [("Arrived", charts.over_time(*_series(by_minute, "arrived", starts), unit))]
    found.append(("Acknowledged", charts.over_time(*_series(by_minute, "acked", starts), unit)))
    if delays.num_rows:
        slowest = _in_milliseconds(delays.slice(0, MAX_BARS))
        series = {name: slowest[f"{name}_ms"].to_pylist() for name in _LATENCIES}
        names = slowest["destination"].to_pylist()
        found.append(("Time from the broker to the ack", charts.bars(names, series, "milliseconds")))
    return tuple(found)


def _starts(window: Window, bucket: int) -> list[int]:
    """The buckets of the window, also those in which nothing happened: a chart must fall to zero there."""
    first = window.since_us // 1_000_000 // bucket * bucket
    return list(range(first, -(-window.until_us // 1_000_000), bucket))


def _series(by_minute: pa.Table, column: str, starts: list[int]) -> tuple[list[str], dict[str, list[int]]]:
    """Times and, by destination that has any, the values at each."""
    place = {start: index for index, start in enumerate(starts)}
    seconds = pc.divide(by_minute["minute"].cast(pa.int64()), 1_000_000).to_pylist()
    series: dict[str, list[int]] = {}
    for second, destination, value in zip(
        seconds, by_minute["destination"].to_pylist(), by_minute[column].to_pylist(), strict=True
    ):
        if value:
            series.setdefault(destination, [0] * len(starts))[place[second]] = value
    times = pc.strftime(pa.array(starts, pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ").to_pylist()
    return times, series


def _in_milliseconds(delays: pa.Table) -> pa.Table:
    columns = {f"{name}_ms": pc.round(pc.divide(delays[us], 1000.0), 3) for name, us in _LATENCIES.items()}
    return pa.table({"destination": delays["destination"], "acked": delays["acked"], **columns})


def _sentence(totals: pa.Table, delays: pa.Table) -> str:
    arrived, places = pc.sum(totals["arrived"]).as_py(), totals.num_rows
    first = totals.slice(0, 1).to_pylist()[0]
    parts = [
        f"{arrived:,} messages arrived at {places:,} destination{'s' if places > 1 else ''}, copies included",
        f"most of them, {first['arrived']:,}, at {first['destination']}" if places > 1 else "",
    ]
    if delays.num_rows:
        slowest = delays.slice(0, 1).to_pylist()[0]
        parts.append(
            f"the slowest consumers are those of {slowest['destination']}, "
            f"where 95 % of messages are acknowledged within {_duration(slowest['p95_us'])}"
        )
    else:
        parts.append("none was acknowledged")
    return "; ".join(filter(None, parts)) + "."


def _duration(us: float) -> str:
    for size, unit in ((60_000_000, "min"), (1_000_000, "s"), (1000, "ms")):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} us"


def _span(seconds: int) -> str:
    if seconds == MINUTE:
        return "minute"
    return f"{seconds // MINUTE} minutes" if seconds < 3600 else f"{seconds / 3600:g} hours".replace("1 hours", "hour")
