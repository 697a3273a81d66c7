"""Acknowledgement latency by destination: percentiles as bars, table and headline figures."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import ACKED, DESTINATION, LATENCIES, MAX_BARS, in_milliseconds, sort_descending
from analytics.model.wording import format_duration, pluralize, short_name, verb_form
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, ResultTable
from analytics.rollups.log_histogram import ERROR, negative_durations, percentiles


def by_destination(histogram: pa.Table, chosen: str = "p95") -> pa.Table:
    """Compute the percentiles of each destination, the slowest by the chosen percentile first."""
    return sort_descending(percentiles(histogram, ["destination"]), f"{chosen}_us").rename_columns(
        {"messages": "acked"}
    )


def bars(delays: pa.Table) -> dict[str, Any]:
    """Draw the slowest destinations as bars."""
    slowest = in_milliseconds(delays.slice(0, MAX_BARS))
    names = [short_name(each) for each in slowest["destination"].to_pylist()]
    return charts.bars(names, {each.label: slowest[each.name].to_pylist() for each in LATENCIES}, "milliseconds")


def table(title: str, delays: pa.Table) -> ResultTable:
    """Make the table of all destinations."""
    columns = (DESTINATION, ACKED, *LATENCIES)
    return ResultTable("latency", f"{title} (±{ERROR:.1%})", columns, in_milliseconds(delays))


def figures(delays: pa.Table, count: int, chosen: str = "p95") -> list[HeadlineFigure]:
    """Return the chosen percentile of the slowest destinations as headline figures."""
    return [
        HeadlineFigure(f"{chosen} at {short_name(each['destination'])}", each[f"{chosen}_us"] / 1000, "ms")
        for each in delays.slice(0, count).to_pylist()
        if each[f"{chosen}_us"] is not None
    ]


def notes(histogram: pa.Table) -> list[str]:
    """Return the note on acknowledgements with a time before their message's arrival."""
    found = negative_durations(zip(histogram["bucket"].to_pylist(), histogram["messages"].to_pylist(), strict=True))
    if not found.count:
        return []
    return [
        f"{pluralize(found.count, 'acknowledgement')} {verb_form(found.count, 'has', 'have')} a time before "
        f"the message's arrival, by up to {format_duration(found.most_us)}, because the clocks of nodes differ. "
        f"{verb_form(found.count, 'It is', 'They are')} not included in percentiles."
    ]
