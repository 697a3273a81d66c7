"""Report: a comparison in words, tables and a chart. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from analytics.model.time_buckets import moments
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
DRAWN = 4
#: Names that a note gives.
NAMED = 5


@dataclass(frozen=True, slots=True)
class MessageSample:
    """A recorded message that stands for those of its class."""

    what: str  #: what it is a sample of: `leg 3`, or what becomes of it
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
    """All that is to be said; `covered` is where there is a record."""
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
        text = "The draft would have brought every target as many messages as the routing in force does"
        if unsent := untested_changes(trial.current, trial.proposed, comparison):
            is_why = len(unsent) == len(changed_destinations(trial.current, trial.proposed))
            text += f"{', as' if is_why else ';'} nothing was sent to {_named(unsent)} in this window"
    else:
        states = [each.state for each in changed]
        counts = ((states.count("new"), "new"), (states.count("lost"), "lost"))
        parts = [f"{count} {word}" for count, word in counts if count]
        most = changed[0]
        text = (
            f"The draft would have changed what {_counted(len(changed), 'target')} of {len(targets)} "
            f"{'gets' if len(changed) == 1 else 'get'}" + (f" ({', '.join(parts)})" if parts else "") + "; "
            f"most at {short_name(most.name)}, {format_signed(most.difference)} messages"
        )
    if lost:
        text += f"; {_counted(lost, 'message')} would have reached nothing"
    return text + "."


def notes(
    comparison: WhatIfComparison,
    trial: WhatIfRequest,
    flow: pa.Table,
    unknown: Sequence[SelectorCondition],
    gone: Sequence[str],
) -> list[str]:
    """What the record cannot tell, and what to know before believing the figures."""
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
            f"The draft also changes {named}; that is not judged: what it makes of messages that wait, expire, fail or"
            " are refused is not in the figures."
        )
    weight = pc.max(flow["weight"]).as_py()
    if weight > 1:
        yield f"Some of the traffic was sampled, down to one message in {weight}: figures are estimates there."
    if undone := pc.sum(flow["rolled_back"]).as_py():
        yield f"{_counted(undone, 'message')} of transactions that were rolled back {_are(undone)} not counted as sent."
    if bare := comparison.draft.classes.bare:
        yield f"Of {_counted(bare, 'message')} no properties were kept: what selectors ask of them counts as unknown."
    for each in unknown:
        yield f"{_short(each.text)} asks for what is not recorded, such as bodies: it counts as unknown."
    if refused := comparison.draft.count(comparison.draft.refused):
        problem = next(way.problem for way in comparison.draft.ways if way.problem)
        yield f"{_counted(refused, 'message')} would be refused: {problem}."
    yield from _about_definitions(trial.proposed, comparison, trial)
    if gone:
        yield f"Queues that existed in the window and do not now were taken as there: {_named(gone)}."
    if any(each.subscription.no_local for each in trial.circumstances.kept):
        yield "Who sent a message is not recorded: subscriptions that leave out what is their own count as taking it."


def _about_definitions(proposed: Definitions, comparison: WhatIfComparison, trial: WhatIfRequest) -> Iterator[str]:
    if any(isinstance(each, VirtualTopic) and each.selector_aware for each in proposed.virtual_destinations):
        yield "What selectorAware virtual topics copy follows the consumers there are, and that are remembered, now."
    if unsent := untested_changes(trial.current, proposed, comparison):
        yield (
            f"Nothing was sent to {_named(unsent)} in this window, nor brought there by other definitions: of what the"
            " draft changes there the record tells nothing."
        )
    existing = {f"queue://{name}" for name in trial.circumstances.queues}
    born = [each.name for each in comparison.targets if each.name.startswith("queue://") and each.name not in existing]
    if born:  # a composite queue that only forwards is there, and listed, without keeping anything
        yield (
            f"Nothing is kept at these yet, and nobody consumed from them: {_named(born)}. What virtual topics would"
            " copy to such a queue once it keeps messages is not counted."
        )


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


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
        ("Messages of which something is stored", 0, lambda which: getattr(comparison, which).kept),
        ("Bytes stored, a message once", 1, lambda which: getattr(comparison, which).kept),
        ("Messages that reach nothing", 0, lambda which: (_lost(comparison, which), 0)),
        ("Waiting in the end (draft: predicted)", 0, comparison.left),
        ("Bytes waiting in the end (draft: predicted)", 1, comparison.left),
    ):
        rows.append((label, "bytes" if unit else "messages", *(of(which)[unit] for which in (ACTIVE, DRAFT))))
    return ResultTable(
        "totals", "In all",
        (ResultColumn("what", "What"), ResultColumn("unit", "Unit"), ResultColumn("in_force", "In force", "messages"),
         ResultColumn("draft", "With the draft", "messages"), ResultColumn("difference", "Difference", "messages")),
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
        ResultColumn("state", ""),
        ResultColumn("in_force", "In force", "messages"),
        ResultColumn("draft", "With the draft", "messages"),
        ResultColumn("difference", "Difference", "messages"),
        ResultColumn("in_force_bytes", "In force", "bytes"),
        ResultColumn("draft_bytes", "With the draft", "bytes"),
        ResultColumn("served", "Served a minute", "messages"),
        ResultColumn("waiting_recorded", "Waiting in the end, recorded", "messages"),
        ResultColumn("waiting_draft", "with the draft", "messages"),
    )
    minutes = comparison.buckets.seconds / 60
    rows = [_target(each, minutes) for each in comparison.targets]
    return ResultTable("targets", "What each target gets", columns, _rows([each.name for each in columns], rows))


def _target(each: ComparedTarget, minutes: float) -> tuple:
    in_force, draft = (int(series.messages.sum()) for series in (each.in_force, each.draft))
    waiting = [
        each.left(depth, series)[0] if each.keeps else None
        for depth, series in ((each.waiting_recorded, each.in_force), (each.waiting_draft, each.draft))
    ]
    return (
        each.name, each.state, in_force, draft, each.difference,
        int(each.in_force.bytes.sum()), int(each.draft.bytes.sum()),
        round(each.served / minutes, 1) if each.keeps else None, *waiting,
    )  # fmt: skip


def _legs(comparison: WhatIfComparison) -> ResultTable:
    columns = (
        ResultColumn("leg", "No."),
        ResultColumn("definition", "Definition"),
        ResultColumn("at", "At"),
        ResultColumn("target", "To"),
        ResultColumn("selector", "Selector"),
        ResultColumn("in_force", "Taken as in force", "messages"),
        ResultColumn("taken", "Taken with the draft", "messages"),
        ResultColumn("refused", "Refused", "messages"),
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
        for place, (leg, in_force, draft) in enumerate(comparison.legs, 1)
    ]
    return ResultTable("legs", "What each leg takes", columns, _rows([each.name for each in columns], rows))


def _samples(samples: Sequence[MessageSample]) -> ResultTable:
    columns = (
        ResultColumn("what", "Sample of"),
        ResultColumn("message", "Message"),
        ResultColumn("time", "Sent"),
        ResultColumn("destination", "To"),
    )
    rows = pa.table(
        {
            "what": pa.array([each.what for each in samples], pa.string()),
            "message": pa.array([each.id for each in samples], pa.string()),
            "time": pa.array([each.us for each in samples], pa.timestamp("us", "UTC")),
            "destination": pa.array([each.destination for each in samples], pa.string()),
        }
    )
    return ResultTable("samples", "Messages it is true of", columns, rows)


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
    """Predicted depths of the targets for which they differ most, or which end deepest, where there is a record."""
    keeping = [each for each in comparison.targets if each.keeps]
    deepest = sorted(
        keeping, key=lambda each: (-abs(each.waiting_draft[-1] - each.waiting_recorded[-1]), -each.waiting_draft[-1])
    )
    shown = [each for each in deepest[:DRAWN] if each.waiting_draft.any() or each.waiting_recorded.any()]
    if not shown:
        return None
    buckets = comparison.buckets
    ends = [each + buckets.seconds for each in buckets.starts]  # then a depth was what it is said to be
    before = sum(1 for each in ends if each * 1_000_000 <= covered.since_us)
    times = moments(min(each, covered.until_us // 1_000_000) for each in ends[before:])
    pairs = {
        each.name: tuple(
            [round(float(depth)) if known else None for depth, known in zip(depths, each.known, strict=True)][before:]
            for depths in (each.waiting_recorded, each.waiting_draft)
        )
        for each in shown
    }
    return "Waiting as recorded, and with the draft at the rate at which it was served", charts.before_and_after(
        times, pairs, "messages"
    )
