"""Depth over time with a forecast: when a queue is empty, or reaches its limit."""

from __future__ import annotations

from typing import Any

from analytics.jobs.common import recorded_depths
from analytics.jobs.common.recorded_depths import Key, read_recorded_depths
from analytics.jobs.common.tables import DESTINATION, Collect, empty_result, table_of
from analytics.model.capacity import QueueCapacity, capacity_of
from analytics.model.depth_series import DepthForecast, DepthSeries, forecast
from analytics.model.time_buckets import iso_times, slot_seconds
from analytics.model.wording import format_duration, pluralize, sentence, short_name, verb_form
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import chart_slot

STEPS = recorded_depths.STEPS
MAX_LINES = 8
#: Rates are those of the last part of the window: what was hours ago says little of what comes.
RECENT = 0.25
_COLUMNS = (
    DESTINATION,
    ResultColumn("depth", "Depth", "messages"),
    ResultColumn("consumers", "Consumers", "count"),
    ResultColumn("least", "Minimum", "messages"),
    ResultColumn("most", "Maximum", "messages"),
    ResultColumn("came", "Enqueue rate", "rate"),
    ResultColumn("went", "Dequeue rate", "rate"),
    ResultColumn("drained_seconds", "Empty in", "seconds"),
    ResultColumn("full_seconds", "Limit reached in", "seconds"),
    ResultColumn("limit", "Limit"),
)


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Show the depths of the time range, and forecast them at the latest rates."""
    window, covered = question.window, question.covered
    slot = chart_slot(question, slot_seconds(covered))
    known = read_recorded_depths(question, slot, collect, question.parameters.get("destination", ""))
    slot, begins = known.slot, known.begins
    shown = sum(1 for each in begins if each + slot <= covered.since_us / 1e6)  # slots before it
    limit = int(question.parameters.get("limit") or 0)
    recent = max(1, round((len(begins) - shown) * RECENT))
    seconds = window.until_us / 1e6 - max(begins[-recent], covered.since_us / 1e6)  # the last slot may not be over
    named = _named(known.courses, shown)
    rooms = {
        label: capacity_of(name, course.message_bytes, limit, question.routing)
        for label, (name, course) in named.items()
    }
    ahead = {label: forecast(course, seconds, recent, rooms[label].messages) for label, (_, course) in named.items()}
    ends = [min(each + slot, window.until_us // 1_000_000) for each in begins[shown:]]
    return _findings(named, ahead, rooms, ends, known.rows_read)


def _named(found: dict[Key, DepthSeries], before: int) -> dict[str, tuple[str, DepthSeries]]:
    """Return the courses from the window on: by what a chart calls them, with where they were. Topics keep nothing."""
    several = len({broker for broker, _ in found}) > 1
    return {
        short_name(name) + (f" ({broker})" if several else ""): (
            name,
            _from(course, before),
        )
        for (broker, name), course in found.items()
        if not name.startswith("topic://")
    }


def _from(course: DepthSeries, slot: int) -> DepthSeries:
    came = course.enqueued[slot:]
    size = round(course.message_bytes * sum(came))
    return DepthSeries(course.depths[slot:], came, course.dequeued[slot:], size, course.gaps[slot:], course.consumers)


def _findings(
    found: dict[str, tuple[str, DepthSeries]],
    ahead: dict[str, DepthForecast],
    rooms: dict[str, QueueCapacity],
    ends: list[int],
    rows_read: int,
) -> JobResult:
    """Build the findings of each queue; `ends` are the ends of the slots, at which the depths were counted."""
    used = {label: each for label, each in found.items() if any(each[1].depths) or any(each[1].enqueued)}
    if not used:
        return empty_result("All queues were empty in this time range.", rows_read)
    outlooks = {label: ahead[label] for label in used}
    rows = [_row(name, course, outlooks[label], rooms[label].limit_text) for label, (name, course) in used.items()]
    rows.sort(key=lambda each: (-each["depth"], -each["most"], each["destination"]))
    deepest = charts.largest_series({label: course.depths for label, (_, course) in used.items() if any(course.depths)})
    deepest.pop(charts.OTHERS, None)
    drawn = {label: used[label][1].chart_values for label in deepest}
    return JobResult(
        sentence=_sentence(outlooks, rooms),
        headline=(
            HeadlineFigure("Backlog", sum(each.depth for each in outlooks.values()), "messages"),
            HeadlineFigure("Growing queues", sum(each.enqueue_rate > each.dequeue_rate for each in outlooks.values())),
            HeadlineFigure("Next limit reached in", min((each.full_seconds for each in outlooks.values()
                                         if each.full_seconds is not None), default=None), "seconds"),
        ),
        rows_read=rows_read,
        charts=(("Depth", charts.lines(iso_times(ends), drawn, "messages")),) if deepest else (),
        tables=(ResultTable("depths", "Depths at the end of the time range", _COLUMNS, table_of(rows, _COLUMNS)),),
    )  # fmt: skip


def _row(name: str, course: DepthSeries, ahead: DepthForecast, limit: str) -> dict[str, Any]:
    return {
        "destination": name, "depth": ahead.depth, "consumers": course.consumers,
        "least": min(course.depths), "most": max(course.depths),
        "came": ahead.enqueue_rate, "went": ahead.dequeue_rate, "drained_seconds": ahead.drained_seconds,
        "full_seconds": ahead.full_seconds, "limit": limit,
    }  # fmt: skip


def _sentence(outlooks: dict[str, DepthForecast], rooms: dict[str, QueueCapacity]) -> str:
    label, deepest = max(outlooks.items(), key=lambda each: each[1].depth)
    full = {name: each.full_seconds for name, each in outlooks.items() if each.full_seconds is not None}
    growing = [name for name, each in outlooks.items() if each.depth and each.enqueue_rate > each.dequeue_rate]
    soonest = min(full, key=full.__getitem__, default=None)
    if not deepest.depth:
        queues = verb_form(len(outlooks), "the queue is", f"all {len(outlooks):,} queues are")
        return sentence(f"{queues} empty at the end of the time range")
    drained = deepest.drained_seconds
    return sentence(
        f"deepest of {pluralize(len(outlooks), 'queue')}: {label} with {pluralize(deepest.depth, 'message')}",
        f"at current rates it is empty in {format_duration(drained * 1e6)}" if drained else "",
        f"{pluralize(len(growing), 'queue')} {verb_form(len(growing), 'grows', 'grow')}"
        if growing
        else "no queue grows",
        f"{soonest} reaches its limit ({rooms[soonest].limit_text}) in {format_duration(full[soonest] * 1e6)}"
        if soonest and full[soonest]
        else f"{soonest} has reached its limit ({rooms[soonest].limit_text})"
        if soonest
        else "",
    )
