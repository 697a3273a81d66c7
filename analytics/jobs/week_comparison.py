"""The window beside the same hours of the same weekday in weeks before."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import DESTINATION, Collect, empty_result, table_of, total
from analytics.model.failure_patterns import NOTE
from analytics.model.time_buckets import series, slot_name, slot_seconds
from analytics.model.wording import format_percent, pluralize, sentence, short_name
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.transforms.event_filters import of_destination
from analytics.transforms.week_comparison import WEEK_US, weeks, windows_of

STEPS = 1
#: Changes from which on a destination is worth a word, and the messages it must have had.
NOTABLE, NOTABLE_MESSAGES = 0.25, 100
_COLUMNS = (
    DESTINATION,
    ResultColumn("arrived", "Now", "messages"),
    ResultColumn("before", "Before", "messages"),
    ResultColumn("change", "Change", "change"),
    ResultColumn("acked", "Acknowledged now", "messages"),
    ResultColumn("acked_before", "Before", "messages"),
    ResultColumn("failed", "Became dead letters now, times", "count"),
    ResultColumn("failed_before", "Before, times", "count"),
)


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """What is more or less than it used to be at this time of the week."""
    window, slot = question.window, slot_seconds(question.window)
    back = int(question.parameters.get("weeks") or 1)
    events = of_destination(question.read(*windows_of(window, back)), question.parameters.get("destination", ""))
    found = collect("traffic of the weeks", weeks(events, window, slot))
    rows_read = total(found, "events")
    if not rows_read:
        return empty_result("Nothing was recorded in this window, nor in the same hours of weeks before.")
    known = sorted({week for week in found["week"].to_pylist() if week})
    if not known:
        return empty_result(
            f"Nothing was recorded in the same hours {_ago(back)}: there is nothing to compare with.", rows_read
        )
    rows = compare_weeks(found, known)
    return JobResult(
        sentence=_sentence(rows, known),
        headline=(
            *(
                HeadlineFigure(label, sum(each[name] for each in rows), unit)
                for label, name, unit in (
                    ("Arrived now", "arrived", "messages"),
                    ("Before", "before", "messages"),
                    ("Became dead letters now, times", "failed", "count"),
                )
            ),
        ),
        rows_read=rows_read,
        charts=((f"Arrived, by {slot_name(slot)}", _chart(found, question, slot, known)),),
        tables=(ResultTable("weeks", f"By destination, beside {_basis(known)}", _COLUMNS, table_of(rows, _COLUMNS)),),
        notes=(NOTE,),
    )


def compare_weeks(found: pa.Table, known: list[int]) -> list[dict[str, Any]]:
    """Each destination now and before (the mean of the weeks that have records), the greatest change first."""
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
    """The values of slots that were recorded, at least their ends (seconds since the epoch); before, nobody knows."""
    return [value if end * 1_000_000 > began_us else None for value, end in zip(values, ends, strict=True)]


def _name(week: int) -> str:
    return ("now", "a week before")[week] if week < 2 else f"{week} weeks before"


def _ago(weeks_back: int) -> str:
    return "a week before" if weeks_back == 1 else f"in the {weeks_back} weeks before"


def _basis(known: list[int]) -> str:
    return _name(known[0]) if len(known) == 1 else f"the mean of {len(known)} weeks"


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
        f"{pluralize(now, 'message')} arrived, {format_percent(abs(change))} "
        f"{'more' if change > 0 else 'less'} than {basis}"
        if change
        else f"{pluralize(now, 'message')} arrived, as many as {basis}",
        f"{short_name(notable[0]['destination'])} changed most, by {format_percent(abs(notable[0]['change']))} "
        f"{'up' if notable[0]['change'] > 0 else 'down'}"
        if notable
        else "no destination changed much",
    )
