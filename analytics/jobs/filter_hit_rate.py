"""Selector hit rate: the share of messages that each target accepts, and targets that accept none."""

from __future__ import annotations

from typing import Any

from analytics.jobs.common.tables import DESTINATION, MAX_BARS, Collect, empty_result, table_of, total
from analytics.jobs.fan_out import without_dead_letters
from analytics.model.routing_coverage import edges_of, upstream_destinations
from analytics.model.wording import format_percent, join_names, pluralize, sentence, short_name
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import WHOLE_DAYS, read_counts
from analytics.tables.definitions import ROUTES
from analytics.transforms.event_filters import of_destination
from analytics.transforms.route_counts import routes_of
from brokerapp.model.definitions import Definitions

STEPS = 1
_AT = ResultColumn("at", "Sent to", about="destination")
_SENT, _TAKEN = ResultColumn("sent", "Sent", "messages"), ResultColumn("taken", "Accepted", "messages")
_RATE = ResultColumn("rate", "Hit rate", "part")
_COLUMNS = (
    _AT,
    DESTINATION,
    ResultColumn("selector", "Selector"),
    _SENT,
    _TAKEN,
    _RATE,
    ResultColumn("says", "Finding"),
)

NEVER, NOT_SENT, ALL, CHAINED, NOT_DEFINED = (
    "never matches", "no messages sent", "accepts all messages", "also reached through other definitions",
    "no longer defined",
)  # fmt: skip


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Measure the share of messages that each target of each definition accepts."""
    counts = read_counts(question, WHOLE_DAYS).where(
        lambda each: of_destination(each, question.parameters.get("destination", ""), "original")
    )
    routes = routes_of(counts.messages(ROUTES, "original", "destination"))
    # Sizes and times, which it does not need, are not read then.
    found = collect("routes of messages", routes.select("original", "destination", "sent", "copies", "events"))
    rows_read, found = total(found, "events"), without_dead_letters(found, question.routing)
    recorded = found.to_pylist()
    rows = _defined(question.routing, recorded) if question.routing else []
    known = {(each["at"], each["destination"]) for each in rows}
    rows += [each for each in _seen(recorded) if (each["at"], each["destination"]) not in known]
    rows = [each for each in rows if _is_asked(question.parameters.get("destination", ""), each["at"], recorded)]
    rows.sort(key=lambda each: (each["says"] != NEVER, -(each["sent"] or 0), each["at"], each["destination"]))
    if not rows:
        return empty_result("No messages sent to definitions with several targets in this time range.", rows_read)
    shown = [each for each in rows if each["rate"] is not None][:MAX_BARS]
    names = [f"{short_name(each['destination'])} of {short_name(each['at'])}" for each in shown]
    chart = charts.bars(
        names, {"hit rate": [round(each["rate"] * 100, 2) for each in shown]}, "% of messages", log=False
    )
    return JobResult(
        sentence=_sentence(rows, question.routing),
        headline=tuple(
            HeadlineFigure(label, sum(each["says"] in says for each in rows))
            for label, says in (
                ("Targets", {each["says"] for each in rows}),
                ("Never matched", {NEVER}),
                ("Without messages", {NOT_SENT}),
            )
        ),
        rows_read=rows_read,
        charts=(("Hit rate by target", chart),) if shown else (),
        tables=(ResultTable("filters", "Targets", _COLUMNS, table_of(rows, _COLUMNS)),),
    )


def _defined(routing: Definitions, recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sent = _sent(recorded)
    copies = {(each["original"], each["destination"]): each["copies"] for each in recorded}
    return [_row(leg, str(leg.at), str(leg.to), sent, copies, routing) for leg in edges_of(routing)]


def _row(leg: Any, at: str, to: str, sent: dict, copies: dict, routing: Definitions) -> dict[str, Any]:
    seen, taken = sent.get(at, 0), copies.get((at, to), 0)
    through = sum(copies.get((str(each), to), 0) for each in upstream_destinations(routing, leg.at))
    if through:
        rate, says = None, CHAINED
    elif not seen:
        rate, says = None, NOT_SENT
    else:
        rate, says = min(1.0, taken / seen), NEVER if not taken else ALL if taken == seen and leg.selector else ""
    return {
        "at": at, "destination": to, "selector": leg.selector, "sent": seen, "taken": taken + through, "rate": rate,
        "says": says,
    }  # fmt: skip


def _seen(recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return routes that no active composite has: of virtual topics, and of earlier definitions."""
    sent = _sent(recorded)
    return [
        {
            "at": each["original"], "destination": each["destination"], "selector": None,
            "sent": sent[each["original"]], "taken": each["copies"],
            "rate": min(1.0, each["copies"] / sent[each["original"]]),
            "says": "" if each["original"].startswith("topic://") else NOT_DEFINED,
        }
        for each in recorded
        if each["copies"] and sent.get(each["original"]) and each["destination"] != each["original"]
        and each["destination"].startswith("queue://")
    ]  # fmt: skip


def _sent(recorded: list[dict[str, Any]]) -> dict[str, int]:
    """Return the messages sent to each original destination."""
    return {each["original"]: each["sent"] for each in recorded if each["original"] == each["destination"]}


def _is_asked(text: str, at: str, recorded: list[dict[str, Any]]) -> bool:
    return not text or any(each["original"] == at for each in recorded)


def _sentence(rows: list[dict[str, Any]], routing: Definitions | None) -> str:
    never = [f"{short_name(each['destination'])} of {short_name(each['at'])}" for each in rows if each["says"] == NEVER]
    unsent = {each["at"] for each in rows if each["says"] == NOT_SENT}
    rated = [each for each in rows if each["rate"]]
    least = min(rated, key=lambda each: each["rate"], default=None)
    return sentence(
        f"{pluralize(len(never), 'target')} never matched: {join_names(never)}"
        if never
        else "all targets with messages matched",
        f"{pluralize(len(unsent), 'definition')} received no messages" if unsent else "",
        f"lowest hit rate: {short_name(least['destination'])} with {format_percent(least['rate'])}"
        if least and least["rate"] < 1
        else "",
        "the active definitions could not be read" if routing is None else "",
    )
