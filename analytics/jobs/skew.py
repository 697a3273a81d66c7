"""Skew: how evenly competing consumers share the messages of a queue."""

from __future__ import annotations

from typing import Any

from analytics import charts
from analytics.consumers import competing
from analytics.jobs.parts import ACKED, CLIENT, DESTINATION, MAX_BARS, Collect, nothing, table_of, total
from analytics.question import Question
from analytics.results import Column, Figure, Findings, Table
from analytics.transforms.clients import clients
from analytics.transforms.which import of_destination
from analytics.words import client, counted, form, part, sentence, short

STEPS = 1
#: From here on a share is called uneven: so many times what it would be if all had the same.
UNEVEN = 1.5
_CONSUMERS = Column("consumers", "Consumers", "count")
_BUSIEST, _SHARE = Column("client", "Busiest", about="client"), Column("share", "Its share", "part")
_FACTOR = Column("factor", "Times an even share", "times")
_OWN = Column("share", "Share", "part")
_BYTES = Column("bytes_acked", "Acknowledged", "bytes")


def run(question: Question, collect: Collect) -> Findings:
    """Who takes how much of what they share."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("messages by consumer", clients(events, question.window))
    rows_read = total(found, "events")
    shared = {name: rows for name, rows in competing(found.to_pylist()).items() if len(rows) > 1}
    queues = sorted((_queue(name, rows) for name, rows in shared.items()), key=lambda each: -each["factor"])
    if not queues:
        return nothing("No queue had more than one consumer in this window: nobody competes.", rows_read)
    members = [each for row in queues for each in _members(shared[row["destination"]])]
    queue_columns = (DESTINATION, _CONSUMERS, ACKED, _BUSIEST, _SHARE, _FACTOR)
    member_columns = (CLIENT, DESTINATION, ACKED, _OWN, _FACTOR, _BYTES)
    return Findings(
        sentence=_sentence(queues),
        headline=(
            Figure("Queues with competing consumers", len(queues)),
            Figure("Shared unevenly", sum(each["factor"] >= UNEVEN for each in queues)),
            Figure("At most, of an even share", queues[0]["factor"], "times"),
        ),
        rows_read=rows_read,
        charts=(("Shares of consumers", _chart([each["destination"] for each in queues[:MAX_BARS]], shared)),),
        tables=(
            Table("skew", "By queue", queue_columns, table_of(queues, queue_columns)),
            Table("shares", "By consumer", member_columns, table_of(members, member_columns)),
        ),
    )


def _members(rows: list[Any]) -> list[dict[str, Any]]:
    """Consumers of a queue by their share, the busiest first."""
    acked = sum(row["acked"] for row in rows)
    found = [{**row, "share": row["acked"] / acked if acked else 0.0} for row in rows]
    for each in found:
        each["factor"] = round(each["share"] * len(rows), 3)
    return sorted(found, key=lambda each: (-each["acked"], each["client"]))


def _queue(name: str, rows: list[Any]) -> dict[str, Any]:
    members = _members(rows)
    acked = sum(row["acked"] for row in rows)
    return {**members[0], "destination": name, "consumers": len(rows), "acked": acked}


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
    uneven, worst = [each for each in queues if each["factor"] >= UNEVEN], queues[0]
    are = form(len(uneven), "is", "are")
    if not uneven:
        return sentence(f"the consumers of {counted(len(queues), 'queue')} share their messages evenly")
    return sentence(
        f"{client(worst['client'])} takes {part(worst['share'])} of the messages of {short(worst['destination'])}, "
        f"{worst['factor']:.2g} times an even share",
        f"{counted(len(uneven), 'queue')} of {len(queues):,} with competing consumers {are} shared unevenly",
    )
