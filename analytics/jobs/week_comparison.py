"""Compares the time range with the same hours in previous weeks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import DESTINATION, Collect, empty_result, table_of, total
from analytics.model.failure_patterns import NOTE
from analytics.model.time_buckets import series, slot_name, slot_seconds
from analytics.model.wording import MINUS, format_percent, pluralize, sentence, short_name
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import read_counts
from analytics.tables.definitions import TRAFFIC
from analytics.tables.selection import table_slot_seconds
from analytics.transforms.event_filters import of_destination
from analytics.transforms.week_comparison import WEEK_US, week_keys, weeks_of, windows_of

STEPS = 1
#: Seconds of a window from which on its slots are hours, which tables have.
LONGEST_FINE_SECONDS = 86_400 - 1
#: Changes from which on a destination is worth a word, and the messages it must have had.
NOTABLE, NOTABLE_MESSAGES = 0.25, 100
_COLUMNS = (
    DESTINATION,
    ResultColumn("arrived", "Current", "messages"),
    ResultColumn("before", "Previous", "messages"),
    ResultColumn("change", "Change", "change"),
    ResultColumn("acked", "Acknowledged", "messages"),
    ResultColumn("acked_before", "Previously acknowledged", "messages"),
    ResultColumn("failed", "Dead-lettered (expired included)", "count"),
    ResultColumn("failed_before", "Previously dead-lettered", "count"),
)


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Compare the messages of each destination with previous weeks."""
    window = question.window
    slot = table_slot_seconds(window, slot_seconds(window), LONGEST_FINE_SECONDS)
    back = int(question.parameters.get("weeks") or 1)
    counts = read_counts(question, slot, *windows_of(window, back)).where(
        lambda each: of_destination(each, question.parameters.get("destination", ""))
    )
    found = collect("traffic of the weeks", weeks_of(counts.messages(TRAFFIC, *week_keys(window, slot))))
    rows_read = total(found, "events")
    if not rows_read:
        return empty_result("No data in this time range, nor in the same hours of previous weeks.")
    known = sorted({week for week in found["week"].to_pylist() if week})
    if not known:
        return empty_result(f"No data in the same hours {_ago(back)} to compare with.", rows_read)
    rows = compare_weeks(found, known)
    return JobResult(
        sentence=_sentence(rows, known),
        headline=(
            *(
                HeadlineFigure(label, sum(each[name] for each in rows), unit)
                for label, name, unit in (
                    ("Enqueued", "arrived", "messages"),
                    ("Previous", "before", "messages"),
                    ("Dead-lettered (expired included)", "failed", "count"),
                )
            ),
        ),
        rows_read=rows_read,
        charts=((f"Enqueued per {slot_name(slot)}", _chart(found, question, slot, known)),),
        tables=(
            ResultTable("weeks", f"By destination, compared with {_basis(known)}", _COLUMNS, table_of(rows, _COLUMNS)),
        ),
        notes=(NOTE,),
    )


def compare_weeks(found: pa.Table, known: list[int]) -> list[dict[str, Any]]:
    """Compare each destination with the mean of the weeks that have data, the greatest change first."""
    of: dict[str, dict[str, float]] = {}
    for each in found.to_pylist():
        row = of.setdefault(each["destination"], dict.fromkeys(_NUMBERS, 0))
        for name in ("arrived", "acked", "failed"):
            if each["week"] == 0:
                row[name] += each[name]
            else:
                row[_BEFORE[name]] += each[name] / len(known)
    rows = [
        {"destination": name, **{column: round(value) for column, value in row.items()},
         "change": (row["arrived"] - row["before"]) / row["before"] if row["before"] else None}
        for name, row in of.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda each: (-abs(each["arrived"] - each["before"]), each["destination"]))


_BEFORE = {"arrived": "before", "acked": "acked_before", "failed": "failed_before"}
_NUMBERS = (*_BEFORE, *_BEFORE.values())


def _chart(found: pa.Table, question: RunQuestion, slot: int, known: list[int]) -> dict:
    named = found.append_column("name", pa.array([_name(week) for week in found["week"].to_pylist()]))
    times, by_week = series(named, "arrived", question.window, slot, by="name")
    ends = [datetime.fromisoformat(each).timestamp() + slot for each in times]
    drawn = {
        _name(week): _since(by_week[_name(week)], ends, (question.began_us or 0) + week * WEEK_US)
        for week in (0, *known)
        if _name(week) in by_week
    }
    return charts.lines(times, drawn, f"messages per {slot_name(slot)}", dashed=[_name(week) for week in known])


def _since(values: list[float], ends: list[float], began_us: int) -> list[float | None]:
    """Replace the values of slots before recording began by None. `ends` are in seconds since the epoch."""
    return [value if end * 1_000_000 > began_us else None for value, end in zip(values, ends, strict=True)]


def _name(week: int) -> str:
    return ("current", "previous week")[week] if week < 2 else f"{week} weeks earlier"


def _ago(weeks_back: int) -> str:
    return "of the previous week" if weeks_back == 1 else f"of the previous {weeks_back} weeks"


def _basis(known: list[int]) -> str:
    if len(known) > 1:
        return f"the mean of {len(known)} weeks"
    return "the previous week" if known[0] == 1 else _name(known[0])


def _sentence(rows: list[dict[str, Any]], known: list[int]) -> str:
    now, before = (sum(each[name] for each in rows) for name in ("arrived", "before"))
    change = (now - before) / before if before else None
    notable = [
        each
        for each in rows
        if each["change"] is not None
        and abs(each["change"]) >= NOTABLE
        and max(each["arrived"], each["before"]) >= NOTABLE_MESSAGES
    ]
    basis = _basis(known)
    return sentence(
        f"{pluralize(now, 'message')} enqueued, {format_percent(abs(change))} "
        f"{'more' if change > 0 else 'less'} than {basis}"
        if change
        else f"{pluralize(now, 'message')} enqueued, unchanged from {basis}",
        f"largest change: {short_name(notable[0]['destination'])}, "
        f"{'+' if notable[0]['change'] > 0 else MINUS}{format_percent(abs(notable[0]['change']))}"
        if notable
        else "no large changes by destination",
    )
