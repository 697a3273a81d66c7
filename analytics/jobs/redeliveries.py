"""Redeliveries and duplicates: messages dispatched again, and messages processed more than once."""

from __future__ import annotations

from typing import Any

from analytics.jobs.common.tables import DESTINATION, MAX_BARS, Collect, empty_result, table_of, total
from analytics.model.wording import format_percent, pluralize, sentence, short_name, verb_form
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.transforms.event_filters import of_destination
from analytics.transforms.redeliveries import repeats

STEPS = 1
_COLUMNS = (
    DESTINATION,
    ResultColumn("messages", "Processed", "messages"),
    ResultColumn("redelivered", "Redelivered", "messages"),
    ResultColumn("rate", "Redelivery rate", "part"),
    ResultColumn("most", "Most redeliveries", "times"),
    ResultColumn("most_redelivered", "Most redelivered", about="message"),
    ResultColumn("duplicated", "Duplicates", "messages"),
    ResultColumn("across", "By two brokers", "messages"),
    ResultColumn("most_processed", "Example of duplicate", about="message"),
)


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Count redelivered and duplicate messages by destination."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("redeliveries and duplicates", repeats(events))
    if not found.num_rows:
        return empty_result("No messages acknowledged in this time range.")
    rows = [{**each, "rate": _rate(each)} for each in found.to_pylist()]
    rows.sort(key=lambda each: (-(each["redelivered"] + each["duplicated"]), each["destination"]))
    again = [each for each in rows if each["redelivered"] or each["duplicated"]]
    series = {
        label: [each[name] for each in again[:MAX_BARS]]
        for name, label in (("redelivered", "redelivered"), ("duplicated", "processed more than once"))
    }
    chart = charts.bars([short_name(each["destination"]) for each in again[:MAX_BARS]], series, "messages", log=False)
    return JobResult(
        sentence=_sentence(rows),
        headline=tuple(
            HeadlineFigure(label, total(found, name), "messages")
            for name, label in (
                ("messages", "Processed"),
                ("redelivered", "Redelivered"),
                ("duplicated", "Duplicates"),
                ("across", "By two brokers"),
            )
        ),
        rows_read=total(found, "events"),
        charts=(("Redeliveries and duplicates", chart),) if again else (),
        tables=(ResultTable("repeats", "By destination", _COLUMNS, table_of(rows, _COLUMNS)),) if again else (),
    )


def _rate(row: dict[str, Any]) -> float:
    return min(1.0, row["redelivered"] / max(row["messages"], row["redelivered"], 1))


def _sentence(rows: list[dict[str, Any]]) -> str:
    processed, again, twice, across = (
        sum(each[name] for each in rows) for name in ("messages", "redelivered", "duplicated", "across")
    )
    worst = max(rows, key=lambda each: (each["rate"], each["redelivered"]))
    often = max(rows, key=lambda each: each["most"] or 0)
    most = often["most"] or 0
    return sentence(
        f"{again:,} of {pluralize(processed, 'message')} {verb_form(again, 'was', 'were')} redelivered (highest rate: "
        f"{short_name(worst['destination'])} with {format_percent(worst['rate'])})"
        if again
        else "no messages redelivered",
        f"one message in {short_name(often['destination'])} was redelivered {most:,.0f} times" if most > 1 else "",
        f"{pluralize(twice, 'message')} {verb_form(twice, 'was', 'were')} processed more than once"
        + (f", {across:,} of them by two brokers" if across else "")
        if twice
        else "no messages processed more than once",
    )
