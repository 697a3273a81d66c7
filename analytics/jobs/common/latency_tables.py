"""Times to the ack by destination as findings show them: percentiles, the slowest first, as bars and as a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import ACKED, DESTINATION, LATENCIES, MAX_BARS, in_milliseconds, ordered
from analytics.model.wording import counted, duration, form, short
from analytics.results import charts
from analytics.results.storage import Figure, Table
from analytics.rollups.log_histogram import ERROR, early, percentiles


def by_destination(histogram: pa.Table, chosen: str = "p95") -> pa.Table:
    """The percentiles of each destination, by the chosen one downwards."""
    return ordered(percentiles(histogram, ["destination"]), f"{chosen}_us").rename_columns({"messages": "acked"})


def bars(delays: pa.Table) -> dict[str, Any]:
    """A chart of the slowest."""
    slowest = in_milliseconds(delays.slice(0, MAX_BARS))
    names = [short(each) for each in slowest["destination"].to_pylist()]
    return charts.bars(names, {each.label: slowest[each.name].to_pylist() for each in LATENCIES}, "milliseconds")


def table(title: str, delays: pa.Table) -> Table:
    """All of them."""
    columns = (DESTINATION, ACKED, *LATENCIES)
    return Table("latency", f"{title} (within {ERROR:.1%})", columns, in_milliseconds(delays))


def figures(delays: pa.Table, count: int, chosen: str = "p95") -> list[Figure]:
    """The chosen percentile of so many of the slowest."""
    return [
        Figure(f"{chosen} at {short(each['destination'])}", each[f"{chosen}_us"] / 1000, "ms")
        for each in delays.slice(0, count).to_pylist()
        if each[f"{chosen}_us"] is not None
    ]


def notes(histogram: pa.Table) -> list[str]:
    """What is to be said of acknowledgements that bear a time before their messages' arrival."""
    found = early(zip(histogram["bucket"].to_pylist(), histogram["messages"].to_pylist(), strict=True))
    if not found.count:
        return []
    return [
        f"{counted(found.count, 'acknowledgement')} {form(found.count, 'bears', 'bear')} a time before the message's "
        f"arrival, by up to {duration(found.most_us)}: the clocks of nodes differ. No percentile counts "
        f"{form(found.count, 'it', 'them')}."
    ]
