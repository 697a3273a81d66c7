"""Who sends most, and who takes most."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from analytics.jobs.common.tables import MAX_BARS, Collect, nothing, rolled_back, table_of, total
from analytics.model.wording import client, client_label, counted, part, sentence, short
from analytics.requests.question import Question
from analytics.results import charts
from analytics.results.storage import Column, Figure, Findings, Table
from analytics.transforms.clients import clients
from analytics.transforms.event_filters import of_destination

STEPS = 1
NOBODY = "not recorded"
_PRODUCER, _CONSUMER = Column("client", "Producer", about="client"), Column("client", "Consumer", about="client")
_PLACES = Column("places", "Destinations", "count")
_MOST = Column("destination", "Most at", about="destination")
_SHARE, _RATE = Column("share", "Share", "part"), Column("rate", "Messages", "rate")


def run(question: Question, collect: Collect) -> Findings:
    """The producers and the consumers with the most messages."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("messages by client", clients(events, question.window))
    rows_read, seconds = total(found, "events"), question.covered.seconds
    producers = ranked(found, "sent", "bytes_sent", seconds)
    consumers = ranked(found, "acked", "bytes_acked", seconds)
    if not producers and not consumers:
        return nothing("Nothing was sent and nothing acknowledged in this window.", rows_read)
    tables, figures = [], []
    for name, title, who, rows, done in (
        ("producers", "Producers", _PRODUCER, producers, "Sent"),
        ("consumers", "Consumers", _CONSUMER, consumers, "Acknowledged"),
    ):
        columns = (
            who,
            Column("messages", done, "messages"),
            _SHARE,
            _RATE,
            Column("bytes", done, "bytes"),
            _PLACES,
            _MOST,
        )
        tables.append(Table(name, title, columns, table_of(rows, columns)))
        if rows:
            series = {done: [each["messages"] for each in rows[:MAX_BARS]]}
            figures.append(
                (
                    title,
                    charts.bars(
                        [client_label(each["client"]) for each in rows[:MAX_BARS]], series, "messages", log=False
                    ),
                )
            )
    known = [each for each in producers if each["client"] != NOBODY]
    headline = (
        Figure("Producers", len(known)),
        Figure("Sent", sum(each["messages"] for each in producers), "messages"),
        Figure("Consumers", len(consumers)),
        Figure("Acknowledged", sum(each["messages"] for each in consumers), "messages"),
    )
    notes = rolled_back(total(found, "rolled_back"))
    return Findings(
        _sentence(producers, consumers), rows_read, tuple(figures), tuple(tables), notes=notes, headline=headline
    )


def ranked(found: pa.Table, messages: str, size: str, seconds: float) -> list[dict[str, Any]]:
    """Clients by what they did, those who did most first; what no client is known of comes under NOBODY."""
    of: dict[str, list[dict[str, Any]]] = {}
    for each in found.to_pylist():
        if each[messages]:
            of.setdefault(each["client"] or NOBODY, []).append(each)
    whole = sum(each[messages] for rows in of.values() for each in rows)
    ranking = [
        {
            "client": name,
            "messages": (count := sum(each[messages] for each in rows)),
            "share": count / whole,
            "rate": count / seconds,
            "bytes": sum(each[size] for each in rows),
            "places": len(rows),
            "destination": max(rows, key=lambda each: each[messages])["destination"],
        }
        for name, rows in of.items()
    ]
    return sorted(ranking, key=lambda each: (-each["messages"], each["client"]))


def _sentence(producers: list[dict[str, Any]], consumers: list[dict[str, Any]]) -> str:
    known = [each for each in producers if each["client"] != NOBODY]
    return sentence(
        f"most is sent by {client(known[0]['client'])}, {part(known[0]['share'])} of all, mainly to "
        f"{short(known[0]['destination'])}"
        if known
        else f"{counted(sum(each['messages'] for each in producers), 'message')} were sent, by whom was not recorded"
        if producers
        else "nothing was sent",
        f"most is taken by {client(consumers[0]['client'])}, {part(consumers[0]['share'])} of what is acknowledged"
        if consumers
        else "nothing was acknowledged",
        f"{counted(len(known), 'producer')} and {counted(len(consumers), 'consumer')} were at work" if known else "",
    )
