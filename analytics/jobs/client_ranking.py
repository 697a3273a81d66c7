"""Ranks producers and consumers by number of messages."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from analytics.jobs.common.tables import MAX_BARS, Collect, empty_result, rollback_notes, table_of, total
from analytics.model.wording import client_label, client_name, format_percent, pluralize, sentence, short_name
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import WHOLE_DAYS, read_counts
from analytics.tables.definitions import CLIENTS
from analytics.transforms.clients import client_counts_of
from analytics.transforms.event_filters import of_destination

STEPS = 1
NOT_RECORDED = "not recorded"
_PRODUCER, _CONSUMER = (
    ResultColumn("client", "Producer", about="client"),
    ResultColumn("client", "Consumer", about="client"),
)
_PLACES = ResultColumn("places", "Destinations", "count")
_MOST = ResultColumn("destination", "Main destination", about="destination")
_SHARE, _RATE = ResultColumn("share", "Share", "part"), ResultColumn("rate", "Messages", "rate")


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Rank the producers and the consumers by messages."""
    counts = read_counts(question, WHOLE_DAYS).where(
        lambda each: of_destination(each, question.parameters.get("destination", ""))
    )
    by_client = counts.messages(CLIENTS, "destination", F.col("consumer").alias("client"))
    found = collect("messages by client", client_counts_of(by_client))
    rows_read, seconds = total(found, "events"), question.covered.seconds
    producers = rank_clients(found, "sent", "bytes_sent", seconds)
    consumers = rank_clients(found, "acked", "bytes_acked", seconds)
    if not producers and not consumers:
        return empty_result("No messages sent or acknowledged in this time range.", rows_read)
    tables, figures = [], []
    for name, title, who, rows, done in (
        ("producers", "Producers", _PRODUCER, producers, "Sent"),
        ("consumers", "Consumers", _CONSUMER, consumers, "Acknowledged"),
    ):
        columns = (
            who,
            ResultColumn("messages", done, "messages"),
            _SHARE,
            _RATE,
            ResultColumn("bytes", done, "bytes"),
            _PLACES,
            _MOST,
        )
        tables.append(ResultTable(name, title, columns, table_of(rows, columns)))
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
    known = [each for each in producers if each["client"] != NOT_RECORDED]
    headline = (
        HeadlineFigure("Producers", len(known)),
        HeadlineFigure("Sent", sum(each["messages"] for each in producers), "messages"),
        HeadlineFigure("Consumers", len(consumers)),
        HeadlineFigure("Acknowledged", sum(each["messages"] for each in consumers), "messages"),
    )
    notes = rollback_notes(total(found, "rolled_back"))
    return JobResult(
        _sentence(producers, consumers), rows_read, tuple(figures), tuple(tables), notes=notes, headline=headline
    )


def rank_clients(found: pa.Table, messages: str, size: str, seconds: float) -> list[dict[str, Any]]:
    """Rank clients by messages, the busiest first. Events without a client count as NOT_RECORDED."""
    of: dict[str, list[dict[str, Any]]] = {}
    for each in found.to_pylist():
        if each[messages]:
            of.setdefault(each["client"] or NOT_RECORDED, []).append(each)
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
    known = [each for each in producers if each["client"] != NOT_RECORDED]
    return sentence(
        f"largest producer: {client_name(known[0]['client'])} with {format_percent(known[0]['share'])} of all, "
        f"mainly to {short_name(known[0]['destination'])}"
        if known
        else f"{pluralize(sum(each['messages'] for each in producers), 'message')} sent; producers were not recorded"
        if producers
        else "no messages sent",
        f"largest consumer: {client_name(consumers[0]['client'])} with {format_percent(consumers[0]['share'])} "
        "of all acknowledged messages"
        if consumers
        else "no messages acknowledged",
        f"{pluralize(len(known), 'producer')} and {pluralize(len(consumers), 'consumer')} were active" if known else "",
    )
