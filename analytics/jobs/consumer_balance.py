"""Consumer skew: how evenly competing consumers share the messages of a queue.

The measure is the part of the messages that other consumers would have to have taken for all to have taken the same
(the Hoover index): 0 when shares are alike, 24% for shares of 74% and 26%, 17% for 50%, 34% and 17%.
"""

from __future__ import annotations

from typing import Any

from analytics.jobs.common.tables import ACKED, CLIENT, DESTINATION, MAX_BARS, Collect, empty_result, table_of, total
from analytics.model.consumer_states import competing_consumers, were_connected_together
from analytics.model.wording import client_name, format_percent, pluralize, sentence, short_name, verb_form
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.transforms.clients import clients
from analytics.transforms.event_filters import of_destination

STEPS = 1
#: From here on shares are called uneven: the part of the messages that others would have to have taken.
UNEVEN = 0.1
#: Messages of each consumer, on average, below which chance makes shares uneven, and nothing is said.
FEWEST = 10
EVENLY, UNEVENLY, TOO_FEW = "even", "uneven", "too few messages"
_CONSUMERS = ResultColumn("consumers", "Consumers", "count")
_BUSIEST, _SHARE = ResultColumn("client", "Busiest", about="client"), ResultColumn("share", "Share of busiest", "part")
_FACTOR = ResultColumn("factor", "Ratio to even share", "times")
_MISPLACED, _VERDICT = ResultColumn("misplaced", "Skew", "part"), ResultColumn("verdict", "Balance")
_OWN = ResultColumn("share", "Share", "part")
_BYTES = ResultColumn("bytes_acked", "Acknowledged", "bytes")


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Measure how evenly competing consumers share their queues."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("messages by consumer", clients(events, question.window))
    rows_read = total(found, "events")
    together = {
        name: rows for name, every in competing_consumers(found.to_pylist()).items() if (rows := _sharing_rows(every))
    }
    queues = sorted(
        (balance_of(name, rows) for name, rows in together.items()),
        key=lambda each: (each["verdict"] != UNEVENLY, -each["misplaced"]),
    )
    if not queues:
        return empty_result("No queue had more than one consumer in this time range.", rows_read)
    members = [each for row in queues for each in _members(together[row["destination"]])]
    queue_columns = (DESTINATION, _VERDICT, _MISPLACED, _CONSUMERS, ACKED, _BUSIEST, _SHARE, _FACTOR)
    member_columns = (CLIENT, DESTINATION, ACKED, _OWN, _FACTOR, _BYTES)
    return JobResult(
        sentence=_sentence(queues),
        headline=(
            HeadlineFigure("Queues with competing consumers", len(queues)),
            HeadlineFigure("Shared unevenly", sum(each["verdict"] == UNEVENLY for each in queues)),
            HeadlineFigure("Highest skew", queues[0]["misplaced"], "part"),
        ),
        rows_read=rows_read,
        charts=(("Shares of consumers", _chart([each["destination"] for each in queues[:MAX_BARS]], together)),),
        tables=(
            ResultTable("skew", "By queue", queue_columns, table_of(queues, queue_columns)),
            ResultTable("shares", "By consumer", member_columns, table_of(members, member_columns)),
        ),
    )


def _sharing_rows(rows: list[Any]) -> list[Any]:
    """Return the consumers that shared the queue with another one at some time."""
    return [each for each in rows if any(other is not each and were_connected_together(each, other) for other in rows)]


def _members(rows: list[Any]) -> list[dict[str, Any]]:
    """Return the consumers of a queue by share, the busiest first."""
    acked = sum(row["acked"] for row in rows)
    found = [{**row, "share": row["acked"] / acked if acked else 0.0} for row in rows]
    for each in found:
        each["factor"] = round(each["share"] * len(rows), 3)
    return sorted(found, key=lambda each: (-each["acked"], each["client"]))


def balance_of(name: str, rows: list[Any]) -> dict[str, Any]:
    """Measure how the consumers of a queue share its messages."""
    members = _members(rows)
    acked, even = sum(row["acked"] for row in rows), 1 / len(rows)
    misplaced = round(sum(abs(each["share"] - even) for each in members) / 2, 4) if acked else 0.0
    verdict = TOO_FEW if acked < FEWEST * len(rows) else UNEVENLY if misplaced >= UNEVEN else EVENLY
    found = {"destination": name, "consumers": len(rows), "acked": acked, "misplaced": misplaced, "verdict": verdict}
    return {**members[0], **found}


def _chart(names: list[str], shared: dict[str, list[Any]]) -> dict:
    ranked = [_members(shared[name]) for name in names]
    series: dict[str, list[float]] = {}
    for place in range(min(len(charts.COLORWAY) - 1, max(map(len, ranked)))):
        label = "busiest" if not place else f"#{place + 1}"
        series[label] = [round(each[place]["share"] * 100, 2) if place < len(each) else 0 for each in ranked]
    rest = [round(100 - sum(values), 2) for values in zip(*series.values(), strict=True)]
    if any(each > 0.1 for each in rest):
        series[charts.OTHERS] = rest
    return charts.bars([short_name(each) for each in names], series, "% of messages", log=False, stacked=True)


def _sentence(queues: list[dict[str, Any]]) -> str:
    of = {verdict: [each for each in queues if each["verdict"] == verdict] for verdict in (UNEVENLY, EVENLY, TOO_FEW)}
    few = f"{pluralize(len(of[TOO_FEW]), 'queue')} with too few messages to compare" if of[TOO_FEW] else ""
    if not of[UNEVENLY]:
        even = f"consumers of {pluralize(len(of[EVENLY]), 'queue')} share messages evenly" if of[EVENLY] else ""
        return sentence(even, few)
    worst, are = of[UNEVENLY][0], verb_form(len(of[UNEVENLY]), "is", "are")
    return sentence(
        f"{client_name(worst['client'])} processes {format_percent(worst['share'])} of the messages of "
        f"{short_name(worst['destination'])} (skew {format_percent(worst['misplaced'])})",
        f"{len(of[UNEVENLY]):,} of {pluralize(len(queues), 'queue')} with competing consumers {are} shared unevenly",
        few,
    )
