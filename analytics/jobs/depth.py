"""Depth over time, and where it is going: when a queue will be drained, or reach its limit."""

from __future__ import annotations

from typing import Any

from analytics.jobs.common import recorded_depths
from analytics.jobs.common.recorded_depths import Key, recorded
from analytics.jobs.common.tables import DESTINATION, Collect, nothing, table_of
from analytics.model.capacity import Room, room_of
from analytics.model.depth_series import Course, Outlook, outlook
from analytics.model.time_buckets import moments, slot_seconds
from analytics.model.wording import counted, duration, form, sentence, short
from analytics.requests.question import Question
from analytics.results import charts
from analytics.results.storage import Column, Figure, Findings, Table

STEPS = recorded_depths.STEPS
MAX_LINES = 8
#: Rates are those of the last part of the window: what was hours ago says little of what comes.
RECENT = 0.25
_COLUMNS = (
    DESTINATION,
    Column("depth", "Waiting", "messages"),
    Column("consumers", "Consumers", "count"),
    Column("least", "Least", "messages"),
    Column("most", "Most", "messages"),
    Column("came", "In", "rate"),
    Column("went", "Out", "rate"),
    Column("drained_seconds", "Empty in", "seconds"),
    Column("full_seconds", "At the limit in", "seconds"),
    Column("limit", "Limit"),
)


def run(question: Question, collect: Collect) -> Findings:
    """How many messages waited, and for how long they would at these rates."""
    window, covered = question.window, question.covered
    known = recorded(question, slot_seconds(covered), collect, question.parameters.get("destination", ""))
    slot, begins = known.slot, known.begins
    shown = sum(1 for each in begins if each + slot <= covered.since_us / 1e6)  # slots before it
    limit = int(question.parameters.get("limit") or 0)
    recent = max(1, round((len(begins) - shown) * RECENT))
    seconds = window.until_us / 1e6 - max(begins[-recent], covered.since_us / 1e6)  # the last slot may not be over
    named = _named(known.courses, shown)
    rooms = {
        label: room_of(name, course.message_bytes, limit, question.routing) for label, (name, course) in named.items()
    }
    ahead = {label: outlook(course, seconds, recent, rooms[label].messages) for label, (_, course) in named.items()}
    ends = [min(each + slot, window.until_us // 1_000_000) for each in begins[shown:]]
    return _findings(named, ahead, rooms, ends, known.rows_read)


def _named(found: dict[Key, Course], before: int) -> dict[str, tuple[str, Course]]:
    """The courses from the window on: by what a chart calls them, with where they were. Topics keep nothing."""
    several = len({broker for broker, _ in found}) > 1
    return {
        short(name) + (f" ({broker})" if several else ""): (
            name,
            _from(course, before),
        )
        for (broker, name), course in found.items()
        if not name.startswith("topic://")
    }


def _from(course: Course, slot: int) -> Course:
    came = course.came[slot:]
    size = round(course.message_bytes * sum(came))
    return Course(course.depths[slot:], came, course.went[slot:], size, course.silent[slot:], course.consumers)


def _findings(
    found: dict[str, tuple[str, Course]],
    ahead: dict[str, Outlook],
    rooms: dict[str, Room],
    ends: list[int],
    rows_read: int,
) -> Findings:
    """`ends` is when each slot ends, which is when its depth was."""
    used = {label: each for label, each in found.items() if any(each[1].depths) or any(each[1].came)}
    if not used:
        return nothing("No message waited anywhere in this window.", rows_read)
    outlooks = {label: ahead[label] for label in used}
    rows = [_row(name, course, outlooks[label], rooms[label].words) for label, (name, course) in used.items()]
    rows.sort(key=lambda each: (-each["depth"], -each["most"], each["destination"]))
    deepest = charts.greatest({label: course.depths for label, (_, course) in used.items() if any(course.depths)})
    deepest.pop(charts.OTHERS, None)
    drawn = {label: used[label][1].drawn for label in deepest}
    return Findings(
        sentence=_sentence(outlooks, rooms),
        headline=(
            Figure("Waiting", sum(each.depth for each in outlooks.values()), "messages"),
            Figure("Queues that grow", sum(each.came > each.went for each in outlooks.values())),
            Figure("Until a limit", min((each.full_seconds for each in outlooks.values()
                                         if each.full_seconds is not None), default=None), "seconds"),
        ),
        rows_read=rows_read,
        charts=(("Messages waiting", charts.lines(moments(ends), drawn, "messages")),) if deepest else (),
        tables=(Table("depths", "Depths at the end of the window", _COLUMNS, table_of(rows, _COLUMNS)),),
    )  # fmt: skip


def _row(name: str, course: Course, ahead: Outlook, limit: str) -> dict[str, Any]:
    return {
        "destination": name, "depth": ahead.depth, "consumers": course.consumers,
        "least": min(course.depths), "most": max(course.depths),
        "came": ahead.came, "went": ahead.went, "drained_seconds": ahead.drained_seconds,
        "full_seconds": ahead.full_seconds, "limit": limit,
    }  # fmt: skip


def _sentence(outlooks: dict[str, Outlook], rooms: dict[str, Room]) -> str:
    label, deepest = max(outlooks.items(), key=lambda each: each[1].depth)
    full = {name: each.full_seconds for name, each in outlooks.items() if each.full_seconds is not None}
    growing = [name for name, each in outlooks.items() if each.depth and each.came > each.went]
    soonest = min(full, key=full.__getitem__, default=None)
    if not deepest.depth:
        return sentence(f"nothing waits in {counted(len(outlooks), 'queue')} at the end of the window")
    drained = deepest.drained_seconds
    return sentence(
        f"{counted(deepest.depth, 'message')} {form(deepest.depth, 'waits', 'wait')} in {label}, the deepest of "
        f"{counted(len(outlooks), 'queue')}",
        f"at the rates of late it is empty in {duration(drained * 1e6)}" if drained else "",
        f"{counted(len(growing), 'queue')} {form(len(growing), 'grows', 'grow')}" if growing else "none grows",
        f"{soonest} reaches its limit, {rooms[soonest].words}, in {duration(full[soonest] * 1e6)}"
        if soonest and full[soonest]
        else f"{soonest} is at its limit, {rooms[soonest].words}, already"
        if soonest
        else "",
    )
