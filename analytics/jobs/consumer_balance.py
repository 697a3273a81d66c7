"""Skew: how evenly competing consumers share the messages of a queue.

The measure is the part of the messages that other consumers would have to have taken for all to have taken the same
(the Hoover index): 0 when shares are alike, 24 % for shares of 74 and 26 %, 17 % for 50, 34 and 17 %.
"""

from __future__ import annotations

from typing import Any

from analytics.jobs.common.tables import ACKED, CLIENT, DESTINATION, MAX_BARS, Collect, nothing, table_of, total
from analytics.model.consumer_states import competing, meet
from analytics.model.wording import client, counted, form, part, sentence, short
from analytics.requests.question import Question
from analytics.results import charts
from analytics.results.storage import Column, Figure, Findings, Table
from analytics.transforms.clients import clients
from analytics.transforms.event_filters import of_destination

STEPS = 1
#: From here on shares are called uneven: the part of the messages that others would have to have taken.
UNEVEN = 0.1
#: Messages of each consumer, on average, below which chance makes shares uneven, and nothing is said.
FEWEST = 10
EVEN, UNLIKE, TOO_FEW = "evenly shared", "unevenly shared", "too few messages to tell"
_CONSUMERS = Column("consumers", "Consumers", "count")
_BUSIEST, _SHARE = Column("client", "Busiest", about="client"), Column("share", "Its share", "part")
_FACTOR = Column("factor", "Times an even share", "times")
_MISPLACED, _VERDICT = Column("misplaced", "To be taken by others", "part"), Column("verdict", "Shares")
_OWN = Column("share", "Share", "part")
_BYTES = Column("bytes_acked", "Acknowledged", "bytes")


def run(question: Question, collect: Collect) -> Findings:
    """Who takes how much of what they share."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("messages by consumer", clients(events, question.window))
    rows_read = total(found, "events")
    together = {name: rows for name, every in competing(found.to_pylist()).items() if (rows := _sharing(every))}
    queues = sorted(
        (shared(name, rows) for name, rows in together.items()),
        key=lambda each: (each["verdict"] != UNLIKE, -each["misplaced"]),
    )
    if not queues:
        return nothing("No queue had more than one consumer in this window: nobody competes.", rows_read)
    members = [each for row in queues for each in _members(together[row["destination"]])]
    queue_columns = (DESTINATION, _VERDICT, _MISPLACED, _CONSUMERS, ACKED, _BUSIEST, _SHARE, _FACTOR)
    member_columns = (CLIENT, DESTINATION, ACKED, _OWN, _FACTOR, _BYTES)
    return Findings(
        sentence=_sentence(queues),
        headline=(
            Figure("Queues with competing consumers", len(queues)),
            Figure("Shared unevenly", sum(each["verdict"] == UNLIKE for each in queues)),
            Figure("To be taken by others, at most", queues[0]["misplaced"], "part"),
        ),
        rows_read=rows_read,
        charts=(("Shares of consumers", _chart([each["destination"] for each in queues[:MAX_BARS]], together)),),
        tables=(
            Table("skew", "By queue", queue_columns, table_of(queues, queue_columns)),
            Table("shares", "By consumer", member_columns, table_of(members, member_columns)),
        ),
    )


def _sharing(rows: list[Any]) -> list[Any]:
    """Those that shared the queue with another: who came when all others had left took nothing from anybody."""
    return [each for each in rows if any(other is not each and meet(each, other) for other in rows)]


def _members(rows: list[Any]) -> list[dict[str, Any]]:
    """Consumers of a queue by their share, the busiest first."""
    acked = sum(row["acked"] for row in rows)
    found = [{**row, "share": row["acked"] / acked if acked else 0.0} for row in rows]
    for each in found:
        each["factor"] = round(each["share"] * len(rows), 3)
    return sorted(found, key=lambda each: (-each["acked"], each["client"]))


def shared(name: str, rows: list[Any]) -> dict[str, Any]:
    """How the consumers of a queue share it."""
    members = _members(rows)
    acked, even = sum(row["acked"] for row in rows), 1 / len(rows)
    misplaced = round(sum(abs(each["share"] - even) for each in members) / 2, 4) if acked else 0.0
    verdict = TOO_FEW if acked < FEWEST * len(rows) else UNLIKE if misplaced >= UNEVEN else EVEN
    found = {"destination": name, "consumers": len(rows), "acked": acked, "misplaced": misplaced, "verdict": verdict}
    return {**members[0], **found}


def _chart(names: list[str], shared: dict[str, list[Any]]) -> dict:
    ranked = [_members(shared[name]) for name in names]
    series: dict[str, list[float]] = {}
    for place in range(min(len(charts.COLORWAY) - 1, max(map(len, ranked)))):
        label = "busiest" if not place else f"number {place + 1}"
        series[label] = [round(each[place]["share"] * 100, 2) if place < len(each) else 0 for each in ranked]
    rest = [round(100 - sum(values), 2) for values in zip(*series.values(), strict=True)]
    if any(each > 0.1 for each in rest):
        series[charts.OTHERS] = rest
    return charts.bars([short(each) for each in names], series, "% of messages", log=False, stacked=True)


def _sentence(queues: list[dict[str, Any]]) -> str:
    of = {verdict: [each for each in queues if each["verdict"] == verdict] for verdict in (UNLIKE, EVEN, TOO_FEW)}
    few = f"of {counted(len(of[TOO_FEW]), 'queue')} there are too few messages to tell" if of[TOO_FEW] else ""
    if not of[UNLIKE]:
        even = f"the consumers of {counted(len(of[EVEN]), 'queue')} share their messages evenly" if of[EVEN] else ""
        return sentence(even, few)
    worst, are = of[UNLIKE][0], form(len(of[UNLIKE]), "is", "are")
    return sentence(
        f"{client(worst['client'])} takes {part(worst['share'])} of the messages of {short(worst['destination'])}, "
        f"where others would have to take {part(worst['misplaced'])} of them for shares to be even",
        f"{counted(len(of[UNLIKE]), 'queue')} of {len(queues):,} with competing consumers {are} shared unevenly",
        few,
    )
