"""Format a what-if comparison as a sentence, notes, tables and a chart. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from analytics.model.time_buckets import iso_times
from analytics.model.wording import format_signed, short_name
from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.results import charts
from analytics.results.storage import JobResult, ResultColumn, ResultTable
from analytics.whatif.comparison import ACTIVE, DRAFT, ComparedTarget, WhatIfComparison
from analytics.whatif.conditions import SelectorCondition
from analytics.whatif.unassessed_changes import unassessed_changes
from analytics.whatif.untested_changes import changed_destinations, untested_changes
from brokerapp.model.definitions import Definitions, VirtualTopic

#: Targets whose predicted depth is drawn.
MAX_CHART_TARGETS = 4
#: Names in a note.
MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class MessageSample:
    """A recorded message that represents its class."""

    what: str  #: label of the class: `leg 3`, or its outcome
    id: str
    us: int  #: when it was sent, microseconds since the epoch
    destination: str


def build_result(
    comparison: WhatIfComparison,
    trial: WhatIfRequest,
    samples: Sequence[MessageSample],
    rows_read: int,
    notes: Sequence[str],
    covered: TimeWindow,
) -> JobResult:
    """Build the result; `covered` is the part of the time range with recorded events."""
    drawn = chart(comparison, covered)
    return JobResult(
        sentence=_sentence(comparison, trial),
        rows_read=rows_read,
        charts=(drawn,) if drawn else (),
        tables=(_totals(comparison), _targets(comparison), _legs(comparison), _samples(samples)),
        notes=tuple(notes),
        about={name: value for name, value in trial.to_json().items() if name != "circumstances"},
    )


# -- words


def _sentence(comparison: WhatIfComparison, trial: WhatIfRequest) -> str:
    targets = comparison.targets
    changed = [each for each in targets if each.difference]
    lost = comparison.draft.count(comparison.draft.lost)
    if not changed:
        text = "No change: the draft sends every target as many messages as the active version"
        if unsent := untested_changes(trial.current, trial.proposed, comparison):
            is_why = len(unsent) == len(changed_destinations(trial.current, trial.proposed))
            text += (
                f"{', because' if is_why else '.'} {'no' if is_why else 'No'} messages were sent to {_named(unsent)}"
            )
    else:
        states = [each.state for each in changed]
        counts = ((states.count("new"), "new"), (states.count("lost"), "lost"))
        parts = [f"{count} {word}" for count, word in counts if count]
        most = changed[0]
        text = (
            f"{len(changed)} of {_counted(len(targets), 'target')} affected"
            + (f" ({', '.join(parts)})" if parts else "")
            + f". Largest change: {short_name(most.name)}, {format_signed(most.difference)} messages"
        )
    if lost:
        text += f". {_counted(lost, 'message')} would be unrouted"
    return text + "."


def notes(
    comparison: WhatIfComparison,
    trial: WhatIfRequest,
    flow: pa.Table,
    unknown: Sequence[SelectorCondition],
    gone: Sequence[str],
) -> list[str]:
    """Return notes on what the recorded events do not cover."""
    return list(_notes(comparison, trial, flow, unknown, gone))


def _notes(
    comparison: WhatIfComparison,
    trial: WhatIfRequest,
    flow: pa.Table,
    unknown: Sequence[SelectorCondition],
    gone: Sequence[str],
) -> Iterator[str]:
    if beside := unassessed_changes(trial.current, trial.proposed):
        *most, last = beside
        named = f"{', '.join(most)} and {last}" if most else last
        yield (
            f"The draft also changes {named}. Effects on waiting, expired, failed or rejected messages are excluded."
        )
    weight = pc.max(flow["weight"]).as_py()
    if weight > 1:
        yield f"Part of the traffic was sampled (down to 1 message in {weight}). Its figures are estimates."
    if undone := pc.sum(flow["rolled_back"]).as_py():
        yield f"{_counted(undone, 'message')} in rolled-back transactions {_are(undone)} not counted as sent."
    if bare := comparison.draft.classes.bare:
        yield f"{_counted(bare, 'message')} recorded without properties. Selectors on them count as unknown."
    for each in unknown:
        yield f"{_short(each.text)} needs data that is not recorded, such as bodies. It counts as unknown."
    if refused := comparison.draft.count(comparison.draft.refused):
        problem = next(way.problem for way in comparison.draft.routes if way.problem)
        yield f"{_counted(refused, 'message')} would be rejected: {problem}."
    yield from _about_definitions(trial.proposed, comparison, trial)
    if gone:
        yield f"Queues that no longer exist are included, as they existed in the time range: {_named(gone)}."
    if any(each.subscription.no_local for each in trial.circumstances.kept):
        yield "Senders are not recorded. Subscriptions with noLocal count as accepting all messages."


def _about_definitions(proposed: Definitions, comparison: WhatIfComparison, trial: WhatIfRequest) -> Iterator[str]:
    if any(isinstance(each, VirtualTopic) and each.selector_aware for each in proposed.virtual_destinations):
        yield "Copies of selectorAware virtual topics are computed for current and remembered consumers."
    if unsent := untested_changes(trial.current, proposed, comparison):
        yield (
            f"No messages were sent or forwarded to {_named(unsent)} in this time range. Changes there have no recorded"
            " messages to compare."
        )
    existing = {f"queue://{name}" for name in trial.circumstances.queues}
    born = [each.name for each in comparison.targets if each.name.startswith("queue://") and each.name not in existing]
    if born:  # a composite queue that only forwards is there, and listed, without keeping anything
        yield (
            f"These queues do not exist yet and have no consumers: {_named(born)}. Copies that virtual topics would"
            " send to them are not counted."
        )


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"


def _named(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# -- tables


def _totals(comparison: WhatIfComparison) -> ResultTable:
    rows = [_sent(comparison)]
    for label, unit, of in (
        ("Copies stored", 0, comparison.copies),
        ("Bytes of these copies", 1, comparison.copies),
        ("Messages stored at least once", 0, lambda which: getattr(comparison, which).stored),
        ("Bytes of these messages", 1, lambda which: getattr(comparison, which).stored),
        ("Unrouted messages", 0, lambda which: (_lost(comparison, which), 0)),
        ("Final backlog (draft: predicted)", 0, comparison.final_backlog),
        ("Bytes of final backlog (draft: predicted)", 1, comparison.final_backlog),
    ):
        rows.append((label, "bytes" if unit else "messages", *(of(which)[unit] for which in (ACTIVE, DRAFT))))
    return ResultTable(
        "totals", "Totals",
        (ResultColumn("what", "Figure"), ResultColumn("unit", "Unit"), ResultColumn("in_force", "Active", "messages"),
         ResultColumn("draft", "Draft", "messages"), ResultColumn("difference", "Difference", "messages")),
        _rows(("what", "unit", "in_force", "draft", "difference"), [(*row, row[3] - row[2]) for row in rows]),
    )  # fmt: skip


def _sent(comparison: WhatIfComparison) -> tuple[str, str, int, int]:
    total = int(comparison.draft.of_class.sum())
    return "Messages sent", "messages", total, total


def _lost(comparison: WhatIfComparison, which: str) -> int:
    tally = getattr(comparison, which)
    return tally.count(tally.lost)


def _targets(comparison: WhatIfComparison) -> ResultTable:
    columns = (
        ResultColumn("target", "Target"),
        ResultColumn("state", "Status"),
        ResultColumn("in_force", "Active", "messages"),
        ResultColumn("draft", "Draft", "messages"),
        ResultColumn("difference", "Difference", "messages"),
        ResultColumn("in_force_bytes", "Active", "bytes"),
        ResultColumn("draft_bytes", "Draft", "bytes"),
        ResultColumn("served", "Consumed per minute", "messages"),
        ResultColumn("waiting_recorded", "Final backlog, active", "messages"),
        ResultColumn("waiting_draft", "Final backlog, draft", "messages"),
    )
    minutes = comparison.buckets.seconds / 60
    rows = [_target(each, minutes) for each in comparison.targets]
    return ResultTable("targets", "Messages per target", columns, _rows([each.name for each in columns], rows))


def _target(each: ComparedTarget, minutes: float) -> tuple:
    in_force, draft = (int(series.messages.sum()) for series in (each.in_force, each.draft))
    waiting = [
        each.final_backlog(depth, series)[0] if each.keeps_messages else None
        for depth, series in ((each.waiting_recorded, each.in_force), (each.waiting_draft, each.draft))
    ]
    return (
        each.name, each.state, in_force, draft, each.difference,
        int(each.in_force.bytes.sum()), int(each.draft.bytes.sum()),
        round(each.served / minutes, 1) if each.keeps_messages else None, *waiting,
    )  # fmt: skip


def _legs(comparison: WhatIfComparison) -> ResultTable:
    columns = (
        ResultColumn("leg", "No."),
        ResultColumn("definition", "Definition"),
        ResultColumn("at", "Source"),
        ResultColumn("target", "Target"),
        ResultColumn("selector", "Selector"),
        ResultColumn("in_force", "Accepted, active", "messages"),
        ResultColumn("taken", "Accepted, draft", "messages"),
        ResultColumn("refused", "Not matched", "messages"),
        ResultColumn("unknown", "Unknown", "messages"),
    )
    rows = [
        (
            place,
            leg.definition,
            leg.at,
            leg.target,
            leg.selector,
            in_force.counts[True],
            *(draft.counts[each] for each in (True, False, None)),
        )
        for place, (leg, in_force, draft) in enumerate(comparison.target_uses, 1)
    ]
    return ResultTable("legs", "Matches per selector", columns, _rows([each.name for each in columns], rows))


def _samples(samples: Sequence[MessageSample]) -> ResultTable:
    columns = (
        ResultColumn("what", "Example of"),
        ResultColumn("message", "Message"),
        ResultColumn("time", "Sent"),
        ResultColumn("destination", "Sent to"),
    )
    rows = pa.table(
        {
            "what": pa.array([each.what for each in samples], pa.string()),
            "message": pa.array([each.id for each in samples], pa.string()),
            "time": pa.array([each.us for each in samples], pa.timestamp("us", "UTC")),
            "destination": pa.array([each.destination for each in samples], pa.string()),
        }
    )
    return ResultTable("samples", "Example messages", columns, rows)


#: Columns of text; all others hold whole numbers.
_TEXTS = frozenset({"what", "unit", "target", "state", "definition", "at", "selector"})


def _rows(names: Sequence[str], rows: Sequence[tuple]) -> pa.Table:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    types = {"served": pa.float64()}
    return pa.table(
        {
            name: pa.array(column, pa.string() if name in _TEXTS else types.get(name, pa.int64()))
            for name, column in zip(names, values, strict=True)
        }
    )


# -- the chart


def chart(comparison: WhatIfComparison, covered: TimeWindow) -> tuple[str, dict] | None:
    """Draw recorded and predicted depths of the targets with the largest difference."""
    keeping = [each for each in comparison.targets if each.keeps_messages]
    deepest = sorted(
        keeping, key=lambda each: (-abs(each.waiting_draft[-1] - each.waiting_recorded[-1]), -each.waiting_draft[-1])
    )
    shown = [each for each in deepest[:MAX_CHART_TARGETS] if each.waiting_draft.any() or each.waiting_recorded.any()]
    if not shown:
        return None
    buckets = comparison.buckets
    ends = [each + buckets.seconds for each in buckets.starts]  # then a depth was what it is said to be
    before = sum(1 for each in ends if each * 1_000_000 <= covered.since_us)
    times = iso_times(min(each, covered.until_us // 1_000_000) for each in ends[before:])
    pairs = {
        each.name: tuple(
            [round(float(depth)) if known else None for depth, known in zip(depths, each.known, strict=True)][before:]
            for depths in (each.waiting_recorded, each.waiting_draft)
        )
        for each in shown
    }
    return "Depth: recorded, and predicted for the draft at the recorded consumption rate", charts.before_and_after(
        times, pairs, "messages"
    )
