"""Forecast traffic or depth from its weekly or daily pattern, and find the hours that did not fit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from analytics.jobs.common.tables import DESTINATION, Collect, empty_result, table_of
from analytics.jobs.forecasts import recorded_history
from analytics.jobs.forecasts.recorded_history import HourlyHistory
from analytics.model.anomalies import Anomaly, expected_ranges, find_anomalies
from analytics.model.seasonal_forecast import (
    DAY_HOURS,
    HIGH,
    HOUR,
    LEAST_DAILY,
    LEAST_WEEKLY,
    LOW,
    LOWER,
    MIDDLE,
    UPPER,
    WEEK_HOURS,
    SeasonalModel,
    fit,
    recorded_hours,
)
from analytics.model.time_buckets import iso_times
from analytics.model.wording import pluralize, sentence, verb_form
from analytics.requests.question import RunQuestion
from analytics.requests.request import seconds_of
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable

STEPS = recorded_history.STEPS
ALL = "all"
TRAFFIC, DEPTH = "traffic", "depth"
_READ = {TRAFFIC: recorded_history.read_traffic, DEPTH: recorded_history.read_depths}
_HOURS = (
    ResultColumn("hour", "Hour", "time"),
    ResultColumn("forecast", "Forecast", "messages"),
    ResultColumn("lower", "50% from", "messages"),
    ResultColumn("upper", "50% to", "messages"),
    ResultColumn("low", "90% from", "messages"),
    ResultColumn("high", "90% to", "messages"),
)
_START = ResultColumn("start", "Start", "time")
_ANOMALY = (
    ResultColumn("hours", "Hours", "count"),
    ResultColumn("direction", "Compared with the range"),
    ResultColumn("observed", "Observed in an hour", "messages"),
    ResultColumn("expected", "Expected", "messages"),
    ResultColumn("range_low", "Range from", "messages"),
    ResultColumn("range_high", "Range to", "messages"),
)
_DESTINATIONS = (
    DESTINATION,
    ResultColumn("ahead", "Forecast", "messages"),
    ResultColumn("busiest", "Hour", "time"),
    ResultColumn("most", "Highest forecast in an hour", "messages"),
    ResultColumn("most_high", "Highest, 90% to", "messages"),
    ResultColumn("anomalies", "Anomalies", "count"),
)


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Forecast the hours after the time range from those in it."""
    measure = question.parameters.get("measure") or TRAFFIC
    ahead = seconds_of(question.parameters.get("horizon") or "24h") // HOUR
    history = _READ[measure](question, collect)
    model = fit(history.whole, history.end)
    if model is None:
        return empty_result(_too_short(history), history.rows_read)
    forecasts = {ALL: model.forecast(ahead)}
    ranges = {ALL: expected_ranges(history.whole, history.end)}
    for name, values in history.destinations.items():
        if (own := fit(values, history.end)) is not None:
            forecasts[name], ranges[name] = own.forecast(ahead), expected_ranges(values, history.end)
    anomalies = {
        name: find_anomalies(_last(_values(history, name), expected), expected, history.end - len(expected))
        for name, expected in ranges.items()
        if len(expected)
    }
    return JobResult(
        sentence=_sentence(measure, forecasts[ALL], history.end, anomalies),
        headline=_headline(measure, forecasts[ALL], anomalies),
        rows_read=history.rows_read,
        charts=((_TITLES[measure], _chart(history, ranges[ALL], forecasts[ALL], anomalies.get(ALL, []))),),
        tables=_tables(measure, history, forecasts, anomalies),
        notes=_notes(model, ranges[ALL]),
    )


_TITLES = {TRAFFIC: "Messages per hour, with forecast", DEPTH: "Depth at the end of hours, with forecast"}


def _too_short(history: HourlyHistory) -> str:
    known = recorded_hours(history.whole)
    if known >= LEAST_DAILY:
        return "A forecast needs records of at least half of the hours of the time range."
    return (
        f"A forecast needs at least {LEAST_DAILY // DAY_HOURS} days of recorded traffic;"
        f" this time range has {pluralize(known, 'whole hour')}."
    )


def _values(history: HourlyHistory, name: str) -> np.ndarray:
    return history.whole if name == ALL else history.destinations[name]


def _last(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return values[len(values) - len(expected) :]


def _sentence(measure: str, ahead: np.ndarray, end: int, anomalies: Mapping[str, Sequence[Anomaly]]) -> str:
    hours = len(ahead)
    span = "hour" if hours == 1 else f"{hours // DAY_HOURS} days" if hours > 2 * DAY_HOURS else f"{hours} hours"
    top = int(np.argmax(ahead[:, MIDDLE]))
    low, most, high = (f"{ahead[top, place]:,.0f}" for place in (LOW, MIDDLE, HIGH))
    peak = f"about {most} at {_moment(end + top)} (with 90% probability {low} to {high})"
    if measure == TRAFFIC:
        first = f"about {pluralize(ahead[:, MIDDLE].sum(), 'message')} expected in the next {span}"
        second = f"busiest hour: {peak}" if hours > 1 else f"with 90% probability {low} to {high}"
    else:
        first = f"a depth of about {pluralize(ahead[-1, MIDDLE], 'message')} expected at the end of the next {span}"
        second = f"highest: {peak}" if hours > 1 else f"with 90% probability {low} to {high}"
    return sentence(first, second, _count(anomalies[ALL]) if ALL in anomalies else "")


def _count(found: Sequence[Anomaly]) -> str:
    if not found:
        return "no anomalies"
    worst = max(found, key=lambda each: each.difference)
    many = "anomaly" if len(found) == 1 else f"largest of {len(found)} anomalies"
    return (
        f"{many}: {worst.observed:,.0f} an hour instead of {worst.low:,.0f} to {worst.high:,.0f},"
        f" for {pluralize(worst.hours, 'hour')} from {_moment(worst.first)}"
    )


def _moment(hour: int) -> str:
    return datetime.fromtimestamp(hour * HOUR, UTC).strftime("%a %-d %b, %H:00 UTC")


def _headline(
    measure: str, ahead: np.ndarray, anomalies: Mapping[str, Sequence[Anomaly]]
) -> tuple[HeadlineFigure, ...]:
    middle = ahead[:, MIDDLE]
    first = middle.sum() if measure == TRAFFIC else middle[-1]
    return (
        HeadlineFigure("Forecast", round(float(first)), "messages"),
        HeadlineFigure("Highest in an hour", round(float(middle.max())), "messages"),
        HeadlineFigure("Anomalies", len(anomalies.get(ALL, ()))),
    )


def _chart(
    history: HourlyHistory, expected: np.ndarray, ahead: np.ndarray, anomalies: Sequence[Anomaly]
) -> dict[str, Any]:
    shown = min(len(history.whole), max(len(expected), WEEK_HOURS))
    first, after = history.end - shown, len(ahead)
    observed = [*_plain(history.whole[-shown:]), *[None] * after]
    marked = {hour for each in anomalies for hour in range(each.first, each.first + each.hours)}
    before = [None] * (shown - len(expected))
    bands = {
        "expected range": tuple([*before, *_plain(expected[:, end]), *[None] * after] for end in (0, 2)),
        "90% interval": tuple([*[None] * shown, *_plain(ahead[:, end])] for end in (LOW, HIGH)),
        "50% interval": tuple([*[None] * shown, *_plain(ahead[:, end])] for end in (LOWER, UPPER)),
    }
    return charts.forecast(
        iso_times((first + number) * HOUR for number in range(shown + after)),
        observed,
        [*[None] * shown, *_plain(ahead[:, MIDDLE])],
        {name: each for name, each in bands.items() if any(value is not None for value in each[0])},
        [value if first + number in marked else None for number, value in enumerate(observed)],
        "messages",
    )


def _plain(values: np.ndarray) -> list[int | None]:
    return [None if np.isnan(each) else round(float(each)) for each in values]


def _tables(
    measure: str,
    history: HourlyHistory,
    forecasts: Mapping[str, np.ndarray],
    anomalies: Mapping[str, Sequence[Anomaly]],
) -> tuple[ResultTable, ...]:
    hours = [
        {"hour": _at(history.end + number), "forecast": round(row[MIDDLE]), "lower": round(row[LOWER]),
         "upper": round(row[UPPER]), "low": round(row[LOW]), "high": round(row[HIGH])}
        for number, row in enumerate(forecasts[ALL].tolist())
    ]  # fmt: skip
    found = [
        {"start": _at(each.first), "destination": name, "hours": each.hours, "direction": each.direction,
         "observed": round(each.observed), "expected": round(each.expected), "range_low": round(each.low),
         "range_high": round(each.high)}
        for name, together in anomalies.items()
        for each in together
    ]  # fmt: skip
    found.sort(key=lambda each: (each["start"], each["destination"]), reverse=True)
    of_all = [each for each in found if each["destination"] == ALL]
    of_each = [each for each in found if each["destination"] != ALL]
    rows = []
    for name in (each for each in forecasts if each != ALL):
        middle = forecasts[name][:, MIDDLE]
        top = int(np.argmax(middle))
        rows.append(
            {"destination": name, "ahead": round(float(middle.sum() if measure == TRAFFIC else middle[-1])),
             "busiest": _at(history.end + top), "most": round(float(middle[top])),
             "most_high": round(float(forecasts[name][top, HIGH])), "anomalies": len(anomalies.get(name, ()))}
        )  # fmt: skip
    return tuple(
        ResultTable(name, title, columns, table_of(each, columns))
        for name, title, columns, each in (
            ("anomalies", "Anomalies", (_START, *_ANOMALY), of_all),
            ("destination-anomalies", "Anomalies by destination", (_START, DESTINATION, *_ANOMALY), of_each),
            ("destinations", "Forecast by destination", _DESTINATIONS, rows),
            ("forecast", "Forecast by hour", _HOURS, hours),
        )
        if each
    )


def _at(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * HOUR, UTC)


def _notes(model: SeasonalModel, expected: np.ndarray) -> tuple[str, ...]:
    """Say what the forecast was made from."""
    if model.is_weekly:
        basis = f"The forecast uses the weekly pattern of {pluralize(model.hours // WEEK_HOURS, 'week')}."
    else:
        basis = (
            f"The forecast uses the daily pattern of {pluralize(model.hours // DAY_HOURS, 'day')} only: weekdays and"
            f" weekends are not told apart. The weekly pattern needs {LEAST_WEEKLY // WEEK_HOURS} weeks."
        )
    days = len(expected) // DAY_HOURS
    checked = (
        f"Anomalies of the last {pluralize(days, 'day')} {verb_form(days, 'was', 'were')} looked for."
        if days
        else "Anomalies were not looked for: they need another day of history."
    )
    return basis, checked
