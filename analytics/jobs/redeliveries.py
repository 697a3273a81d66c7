"""Redelivery and duplicates: messages that were given out again, and those that were processed more than once."""

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
    ResultColumn("redelivered", "Given out again", "messages"),
    ResultColumn("rate", "Part given out again", "part"),
    ResultColumn("most", "Most often", "times"),
    ResultColumn("most_redelivered", "Which", about="message"),
    ResultColumn("duplicated", "Processed twice", "messages"),
    ResultColumn("across", "By two brokers", "messages"),
    ResultColumn("most_processed", "For example", about="message"),
)


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Where work was done again."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("messages given out or processed again", repeats(events))
    if not found.num_rows:
        return empty_result("No message was acknowledged in this window.")
    rows = [{**each, "rate": _rate(each)} for each in found.to_pylist()]
    rows.sort(key=lambda each: (-(each["redelivered"] + each["duplicated"]), each["destination"]))
    again = [each for each in rows if each["redelivered"] or each["duplicated"]]
    series = {
        label: [each[name] for each in again[:MAX_BARS]]
        for name, label in (("redelivered", "given out again"), ("duplicated", "processed twice"))
    }
    chart = charts.bars([short_name(each["destination"]) for each in again[:MAX_BARS]], series, "messages", log=False)
    return JobResult(
        sentence=_sentence(rows),
        headline=tuple(
            HeadlineFigure(label, total(found, name), "messages")
            for name, label in (
                ("messages", "Processed"),
                ("redelivered", "Given out again"),
                ("duplicated", "Processed twice"),
                ("across", "By two brokers"),
            )
        ),
        rows_read=total(found, "events"),
        charts=(("Messages given out or processed again", chart),) if again else (),
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
        f"{pluralize(again, 'message')} of {processed:,} {verb_form(again, 'was', 'were')} given out again, most of "
        f"all in "
        f"{short_name(worst['destination'])}, {format_percent(worst['rate'])}"
        if again
        else "no message was given out again",
        f"one of {short_name(often['destination'])} came back {most:,.0f} times" if most > 1 else "",
        f"{pluralize(twice, 'message')} {verb_form(twice, 'was', 'were')} processed more than once"
        + (f", {across:,} of them by two brokers" if across else "")
        if twice
        else "none was processed twice",
    )
