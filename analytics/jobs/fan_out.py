"""Fan-out: copies and bytes stored for messages sent to virtual and composite destinations."""

from __future__ import annotations

import pyarrow as pa

from analytics.jobs.common.tables import DESTINATION, MAX_BARS, Collect, empty_result, table_of, total
from analytics.model.routing_coverage import dlq_predicate
from analytics.model.wording import format_bytes, pluralize, sentence, short_name
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.tables.counts import WHOLE_DAYS, read_counts
from analytics.tables.definitions import ROUTES
from analytics.transforms.event_filters import of_destination
from analytics.transforms.route_counts import routes_of
from brokerapp.model.definitions import Definitions

STEPS = 1
_SENT = ResultColumn("sent", "Sent", "messages")
_COPIES = ResultColumn("copies", "Copies", "messages")
_BYTES_SENT, _BYTES_COPIED = (
    ResultColumn("bytes_sent", "Sent", "bytes"),
    ResultColumn("bytes_copied", "Copied", "bytes"),
)
_FACTOR = ResultColumn("factor", "Copies per message", "times")
_ORIGINAL = ResultColumn("original", "Sent to", about="destination")
_TARGETS = ResultColumn("targets", "Targets", "count")


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Count the copies of messages by the destination they were sent to."""
    counts = read_counts(question, WHOLE_DAYS).where(
        lambda each: of_destination(each, question.parameters.get("destination", ""), "original")
    )
    found = collect("routes of messages", routes_of(counts.messages(ROUTES, "original", "destination")))
    rows_read = total(found, "events")
    if not rows_read:
        return empty_result()
    found = without_dead_letters(found, question.routing)
    totals = sum_copies(found)
    if not totals:
        return empty_result("No messages copied to other destinations in this time range.", rows_read)
    legs = [each for each in found.to_pylist() if each["copies"] and _is_copied(each, totals)]
    legs.sort(key=lambda each: -each["copies"])
    columns = (_ORIGINAL, _TARGETS, _SENT, _COPIES, _FACTOR, _BYTES_SENT, _BYTES_COPIED)
    return JobResult(
        sentence=_sentence(totals),
        headline=(
            *(
                HeadlineFigure(label, sum(each[name] for each in totals), unit)
                for label, name, unit in (
                    ("Sent", "sent", "messages"),
                    ("Copies", "copies", "messages"),
                    ("Bytes of copies", "bytes_copied", "bytes"),
                )
            ),
            HeadlineFigure("Most copies per message", max(each["factor"] for each in totals), "times"),
        ),
        rows_read=rows_read,
        charts=(("Copies by target", _chart(totals, legs)),),
        tables=(
            ResultTable("fan-out", "By original destination", columns, table_of(totals, columns)),
            ResultTable("copies", "By target", (_ORIGINAL, DESTINATION, _COPIES, _BYTES_COPIED), _legs(legs)),
        ),
    )


def without_dead_letters(found: pa.Table, routing: Definitions | None) -> pa.Table:
    """Remove routes to dead-letter queues."""
    is_failure = dlq_predicate(routing)
    kept = [
        each["destination"] == each["original"] or not is_failure(each["destination"])
        for each in found.select(["destination", "original"]).to_pylist()
    ]
    return found.filter(pa.array(kept, pa.bool_()))


def sum_copies(found: pa.Table) -> list[dict]:
    """Sum copies by original destination, the most copies first."""
    of: dict[str, dict] = {}
    for each in found.to_pylist():
        row = of.setdefault(
            each["original"],
            {"original": each["original"], "targets": 0, "elsewhere": 0, **dict.fromkeys(
                ("sent", "bytes_sent", "copies", "bytes_copied"), 0)},
        )  # fmt: skip
        if each["destination"] == each["original"]:
            row["sent"], row["bytes_sent"] = each["sent"], each["bytes_sent"]
        row["targets"] += each["copies"] > 0
        row["elsewhere"] += each["copies"] if each["destination"] != each["original"] else 0
        row["copies"] += each["copies"]
        row["bytes_copied"] += each["bytes_copied"]
    copied = [each for each in of.values() if each["elsewhere"] and each["sent"]]
    for each in copied:
        each["factor"] = round(each["copies"] / each["sent"], 3)
    return sorted(copied, key=lambda each: (-each["copies"], each["original"]))


def _is_copied(leg: dict, totals: list[dict]) -> bool:
    return any(each["original"] == leg["original"] for each in totals)


def _legs(legs: list[dict]) -> pa.Table:
    return table_of(legs, (_ORIGINAL, DESTINATION, _COPIES, _BYTES_COPIED))


def _chart(totals: list[dict], legs: list[dict]) -> dict:
    names = [each["original"] for each in totals[:MAX_BARS]]
    series: dict[str, list[float]] = {}
    for leg in legs:
        if leg["original"] in names:
            row = series.setdefault(short_name(leg["destination"]), [0.0] * len(names))
            row[names.index(leg["original"])] += leg["copies"]
    return charts.bars(
        [short_name(each) for each in names], charts.largest_series(series), "copies", log=False, stacked=True
    )


def _sentence(totals: list[dict]) -> str:
    sent, copies = (sum(each[name] for each in totals) for name in ("sent", "copies"))
    more = sum(each["bytes_copied"] - each["bytes_sent"] for each in totals)
    widest = max(totals, key=lambda each: each["factor"])
    return sentence(
        f"{pluralize(sent, 'message')} resulted in {pluralize(copies, 'copy', 'copies')}",
        f"highest fan-out: {short_name(widest['original'])} with {widest['factor']:.3g} copies per message",
        f"copying added {format_bytes(more)}" if more > 0 else "",
    )
