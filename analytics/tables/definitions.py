"""Define the tables of measures: names, columns, and how rows of an hour merge into rows of a day. Pure.

A row has a `slot`, the start of its hour or day in UTC, its keys, and values. Rows with the same keys merge by the rule
of each value, so that hours merge into days, and days into a time range. What an event counts for is defined in
analytics/model/measures.py and analytics/transforms, as for rollups and analyses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

#: Version of the tables: raised when the same events give other rows, or when columns change. Hours of an earlier
#: version are computed again while their events are in the archive.
VERSION = 1
HOURLY, DAILY = "hourly", "daily"
#: Start of the hour or day of a row.
SLOT = "slot"
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US

#: How a value merges: the sum, the highest, the lowest, or that of the row with the latest `last`.
SUM, HIGHEST, LOWEST, NEWEST = "sum", "max", "min", "newest"
_TEXT, _NUMBER, _MOMENT = pa.string(), pa.int64(), pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class MeasureTable:
    """A table: its keys and values with their types, and how values merge."""

    name: str
    meaning: str
    keys: Mapping[str, pa.DataType]
    values: Mapping[str, tuple[pa.DataType, str]]
    is_daily: bool = True  #: whether its hours are merged into days, too

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels that are stored."""
        return (HOURLY, DAILY) if self.is_daily else (HOURLY,)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the stored rows."""
        values = {name: type for name, (type, _) in self.values.items()}
        return pa.schema([(SLOT, _MOMENT), *self.keys.items(), *values.items()])


#: As `by_kind` of analytics/transforms/aggregates.py counts.
_COUNTS = {
    "messages": (_NUMBER, SUM),
    "bytes": (_NUMBER, SUM),
    "last": (_MOMENT, HIGHEST),
    "events": (_NUMBER, SUM),
}

TRAFFIC = MeasureTable(
    "traffic",
    "messages, bytes and events of each kind at each destination",
    {"destination": _TEXT, "kind": _TEXT},
    _COUNTS,
)
LATENCY = MeasureTable(
    "latency",
    "log histogram of the time to the acknowledgement",
    {"destination": _TEXT, "consumer": _TEXT, "bucket": _NUMBER},
    {"messages": (_NUMBER, SUM)},
)
CLIENTS = MeasureTable(
    "clients",
    "messages, bytes and events of each kind of each client at each destination",
    {"destination": _TEXT, "consumer": _TEXT, "kind": _TEXT},
    _COUNTS,
)
ROUTES = MeasureTable(
    "routes",
    "from the destination sent to, such as a virtual topic, to the destination of each copy",
    {"original": _TEXT, "destination": _TEXT, "kind": _TEXT},
    _COUNTS,
)
DEAD_LETTERS = MeasureTable(
    "dead_letters",
    "failed copies by cause, with the newest message of each",
    {"outcome": _TEXT, "cause": _TEXT, "destination": _TEXT, "consumer": _TEXT},
    {
        "messages": (_NUMBER, SUM),
        "first": (_MOMENT, LOWEST),
        "last": (_MOMENT, HIGHEST),
        "example": (_TEXT, NEWEST),
        "example_reason": (_TEXT, NEWEST),
        "events": (_NUMBER, SUM),
    },
)
#: The depth at an hour's end follows from its last note and the flows after it; a day has no depth of its own.
DEPTH_NOTES = MeasureTable(
    "depth_notes",
    "the last recorded depth of each queue and subscription, and the number of consumers",
    {"broker": _TEXT, "destination": _TEXT},
    {
        "ts": (_MOMENT, HIGHEST),
        "depth": (_NUMBER, NEWEST),
        "consumers": (_NUMBER, NEWEST),
        "whole": (_MOMENT, HIGHEST),
        "started": (_MOMENT, HIGHEST),
        "part": (_NUMBER, NEWEST),  # the part of DEPTH_FLOWS that begins with this note; 0: none does
    },
    is_daily=False,
)
DEPTH_FLOWS = MeasureTable(
    "depth_flows",
    "copies that arrived in each queue and left it, before and after each recorded depth",
    {"broker": _TEXT, "destination": _TEXT, "part": _NUMBER},
    {"came": (_NUMBER, SUM), "went": (_NUMBER, SUM), "bytes_came": (_NUMBER, SUM), "events": (_NUMBER, SUM)},
    is_daily=False,
)

TABLES = {each.name: each for each in (TRAFFIC, LATENCY, CLIENTS, ROUTES, DEAD_LETTERS, DEPTH_NOTES, DEPTH_FLOWS)}
