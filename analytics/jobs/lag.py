"""Lag of queues and subscriptions over time: age of the oldest message, time behind, arrival and service rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from analytics.jobs.common import recorded_depths
from analytics.jobs.common.recorded_depths import HOUR_US, LONGEST, Key, RecordedDepths, read_recorded_depths
from analytics.jobs.common.tables import DESTINATION, Collect, empty_result, table_of
from analytics.model.lag_series import (
    BEFORE,
    Certainty,
    LagSeries,
    ServiceCounts,
    SlotTimes,
    by_oldest,
    empty_counts,
    greatest,
    lag_of,
    mean_age,
    oldest_of_slots,
)
from analytics.model.time_buckets import iso_times, slot_seconds
from analytics.model.wording import format_duration, pluralize, sentence, short_name, verb_form
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.transforms.event_filters import of_destination
from analytics.transforms.lag.oldest_messages import oldest_messages
from analytics.transforms.lag.service_counts import service

STEPS = recorded_depths.STEPS + 2
MAX_LINES = 6
#: Destinations in the table over time, those with the oldest messages: each has a row for each slot.
MAX_OVER_TIME = 50
_OLDEST = ResultColumn("oldest_seconds", "Oldest message", "seconds")
_CERTAINTY = ResultColumn("certainty", "Accuracy of the age")
_BEHIND = ResultColumn("behind_seconds", "Time behind", "seconds")
_AGE = ResultColumn("acknowledged_seconds", "Age at acknowledgement", "seconds")
_RATES = (ResultColumn("arrival_rate", "Arrival rate", "rate"), ResultColumn("service_rate", "Service rate", "rate"))
_COLUMNS = (
    DESTINATION,
    ResultColumn("depth", "Depth", "messages"),
    _OLDEST,
    _CERTAINTY,
    ResultColumn("oldest_max_seconds", "Oldest, maximum", "seconds"),
    _BEHIND,
    ResultColumn("behind_max_seconds", "Behind, maximum", "seconds"),
    _AGE,
    *_RATES,
)
_OVER_TIME = (
    ResultColumn("time", "Time", "time"),
    DESTINATION,
    ResultColumn("depth", "Depth", "messages"),
    _OLDEST,
    _CERTAINTY,
    _BEHIND,
    _AGE,
    *_RATES,
)


@dataclass(frozen=True, slots=True)
class LogLag:
    """The lag of one queue or subscription."""

    name: str  #: in native form
    series: LagSeries
    acknowledged_age: float | None  #: mean of the time range, seconds


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Compute the lag of each queue and subscription over the time range."""
    destination = question.parameters.get("destination", "")
    window, slot = question.window, min(slot_seconds(question.covered), LONGEST)
    known = read_recorded_depths(question, slot, collect, destination)
    whole = TimeWindow(window.since_us // HOUR_US * HOUR_US, window.until_us)
    events, first = of_destination(question.read(whole), destination), whole.since_us // 1_000_000
    blocks = collect("oldest messages", oldest_messages(events, slot, first, len(known.begins)))
    counts = collect("arrivals and service", service(events, slot, first))
    known_since = max(whole.since_us, question.began_us or 0) / 1e6
    times = SlotTimes(known.begins, slot, known_since, window.until_us / 1e6)
    shown = sum(1 for each in known.begins if each + slot <= question.covered.since_us / 1e6)  # slots before it
    found = _lags(known, times, _blocks_of(blocks), _counts_of(counts, len(known.begins)), shown)
    return _findings(found, [times.end(each) for each in range(shown, len(known.begins))], known.rows_read)


def _lags(
    known: RecordedDepths,
    times: SlotTimes,
    blocks: Mapping[Key, list[tuple[int, int, int, int]]],
    counts: Mapping[Key, ServiceCounts],
    shown: int,
) -> dict[str, LogLag]:
    """Return the lag of each log from the slot `shown` on, by its name in charts. Topics keep nothing."""
    several, slots = len({broker for broker, _ in known.courses}) > 1, len(known.begins)
    found: dict[str, LogLag] = {}
    for key, course in known.courses.items():
        broker, name = key
        if name.startswith("topic://"):
            continue
        rows = blocks.get(key, [])
        born = oldest_of_slots(slots, [each[:3] for each in rows if each[0] != BEFORE])
        before, served = sum(each[3] for each in rows), counts.get(key) or empty_counts(slots)
        series = _from(lag_of(course, times, served, born, before), shown)
        if any(series.depths) or any(series.arrival_rate) or any(series.service_rate):
            label = short_name(name) + (f" ({broker})" if several else "")
            found[label] = LogLag(name, series, mean_age(served, shown))
    return found


def _from(series: LagSeries, slot: int) -> LagSeries:
    return LagSeries(
        series.depths[slot:], series.oldest[slot:], series.certainty[slot:], series.arrival_rate[slot:],
        series.service_rate[slot:], series.behind[slot:], series.acknowledged_age[slot:],
    )  # fmt: skip


def _blocks_of(rows: pa.Table) -> dict[Key, list[tuple[int, int, int, int]]]:
    found: dict[Key, list[tuple[int, int, int, int]]] = {}
    columns = (rows["level"], rows["start"], rows["born"].cast(pa.int64()), rows["messages"])
    keys = zip(rows["broker"].to_pylist(), rows["destination"].to_pylist(), strict=True)
    for key, *row in zip(keys, *(each.to_pylist() for each in columns), strict=True):
        found.setdefault(key, []).append(tuple(row))
    return found


def _counts_of(rows: pa.Table, slots: int) -> dict[Key, ServiceCounts]:
    found: dict[Key, ServiceCounts] = {}
    for each in rows.to_pylist():
        counts = found.setdefault((each["broker"], each["destination"]), empty_counts(slots))
        number = each["number"]
        counts.arrived[number], counts.served[number] = each["arrived"], each["served"]
        counts.timed[number], counts.age_us[number] = each["timed"], each["age_us"]
    return found


def _findings(found: dict[str, LogLag], ends: list[float], rows_read: int) -> JobResult:
    if not found:
        return empty_result("All queues and subscriptions were empty in this time range.", rows_read)
    series = {label: each.series for label, each in found.items()}
    rows = [_row(each) for each in found.values()]
    rows.sort(key=lambda each: (-(each["oldest_seconds"] or 0), -(each["oldest_max_seconds"] or 0),
                                -(each["depth"] or 0), each["destination"]))  # fmt: skip
    order = by_oldest(series)
    return JobResult(
        sentence=_sentence(found, order),
        headline=(
            HeadlineFigure("Oldest message", greatest(each["oldest_seconds"] for each in rows), "seconds"),
            HeadlineFigure("Most behind", greatest(each["behind_seconds"] for each in rows), "seconds"),
            HeadlineFigure("With messages", sum(bool(each["depth"]) for each in rows)),
            HeadlineFigure("Of these not served", sum(_is_stuck(each) for each in series.values())),
        ),
        rows_read=rows_read,
        notes=_notes(series),
        charts=tuple(_charts(series, order, ends)),
        tables=(
            ResultTable("lag", "Lag at the end of the time range", _COLUMNS, table_of(rows, _COLUMNS)),
            ResultTable(
                "lag-by-time", "Lag over time", _OVER_TIME,
                table_of(_over_time([found[each] for each in order[:MAX_OVER_TIME]], ends), _OVER_TIME),
            ),
        ),
    )  # fmt: skip


def _row(log: LogLag) -> dict[str, Any]:
    series = log.series
    return {
        "destination": log.name, "depth": series.depths[-1], "oldest_seconds": series.oldest[-1],
        "certainty": series.certainty[-1], "oldest_max_seconds": greatest(series.oldest),
        "behind_seconds": series.behind[-1], "behind_max_seconds": greatest(series.behind),
        "acknowledged_seconds": log.acknowledged_age, "arrival_rate": series.arrival_rate[-1],
        "service_rate": series.service_rate[-1],
    }  # fmt: skip


def _over_time(logs: Sequence[LogLag], ends: Sequence[float]) -> Iterator[dict[str, Any]]:
    for number in range(len(ends) - 1, -1, -1):
        for log in logs:
            series = log.series
            yield {
                "time": round(ends[number] * 1e6), "destination": log.name, "depth": series.depths[number],
                "oldest_seconds": series.oldest[number], "certainty": series.certainty[number],
                "behind_seconds": series.behind[number], "acknowledged_seconds": series.acknowledged_age[number],
                "arrival_rate": series.arrival_rate[number], "service_rate": series.service_rate[number],
            }  # fmt: skip


def _charts(series: dict[str, LagSeries], order: list[str], ends: Sequence[float]) -> Iterator[tuple[str, Any]]:
    times, drawn = iso_times(int(each) for each in ends), order[:MAX_LINES]
    ages = {label: _in_ms(series[label].oldest) for label in drawn if greatest(series[label].oldest)}
    if ages:
        yield "Oldest message", charts.lines(times, ages, charts.MILLISECONDS)
    late = {label: _in_ms(series[label].behind) for label in drawn if greatest(series[label].behind)}
    if late:
        yield "Time behind", charts.lines(times, late, charts.MILLISECONDS)
    acked = {label: _in_ms(series[label].acknowledged_age) for label in drawn}
    if any(greatest(each) for each in acked.values()):
        yield "Age at acknowledgement", charts.lines(times, acked, charts.MILLISECONDS)
    busiest = max(order, key=lambda label: sum(series[label].arrival_rate))
    rates = {"arrival": series[busiest].arrival_rate, "service": series[busiest].service_rate}
    rounded = {name: _rounded(values) for name, values in rates.items()}
    yield f"Arrival and service rate of {busiest}", charts.lines(times, rounded, "msg/s")


def _in_ms(values: Sequence[float | None]) -> list[float | None]:
    return [None if each is None else round(each * 1000, 3) for each in values]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(each, 3) for each in values]


def _is_stuck(series: LagSeries) -> bool:
    """Return whether messages wait at the end, and none was served lately."""
    return bool(series.depths[-1]) and not series.service_rate[-1]


def _sentence(found: dict[str, LogLag], order: list[str]) -> str:
    series = {label: found[label].series for label in order}
    waiting = [label for label in order if series[label].oldest[-1] is not None]
    if not any(each.depths[-1] for each in series.values()):
        return sentence("all queues and subscriptions are empty at the end of the time range", _peak(series, order))
    first = max(waiting, key=lambda each: series[each].oldest[-1] or 0, default=None)
    late = max((each for each in order if series[each].behind[-1]), key=lambda each: series[each].behind[-1] or 0,
               default=None)  # fmt: skip
    stuck = [label for label in order if _is_stuck(series[label])]
    return sentence(
        f"oldest message: {first}, {_age_words(series[first])}"
        if first
        else "the age of the oldest message is unknown",
        f"{late} needs {format_duration((series[late].behind[-1] or 0) * 1e6)} at its service rate" if late else "",
        f"{pluralize(len(stuck), 'destination')} with messages {verb_form(len(stuck), 'is', 'are')} not served"
        if stuck
        else "",
    )


def _age_words(series: LagSeries) -> str:
    words = format_duration((series.oldest[-1] or 0) * 1e6)
    return words if series.certainty[-1] is Certainty.EXACT else f"{series.certainty[-1]} {words}"


def _peak(series: dict[str, LagSeries], order: list[str]) -> str:
    most = greatest(series[order[0]].oldest)
    return f"longest wait: {order[0]}, {format_duration(most * 1e6)}" if most else ""


def _notes(series: dict[str, LagSeries]) -> tuple[str, ...]:
    older, vague = (
        sum(each.certainty[-1] is certainty for each in series.values())
        for certainty in (Certainty.AT_LEAST, Certainty.AT_MOST)
    )
    unknown = sum(bool(each.depths[-1]) and each.oldest[-1] is None for each in series.values())
    found = (
        (older, "messages from before the first hour of the time range: the oldest one may be older"),
        (vague, "messages that were removed without a recorded event: the oldest one may be younger"),
        (unknown, "only messages without recorded events: the age of the oldest one is unknown"),
    )
    return tuple(f"{pluralize(count, 'destination')} had {what}." for count, what in found if count)
