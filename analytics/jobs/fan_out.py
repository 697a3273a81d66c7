"""Fan-out: how many copies, and how many bytes, come of what is sent to virtual and composite destinations."""

from __future__ import annotations

import pyarrow as pa

from analytics.jobs.common.tables import DESTINATION, MAX_BARS, Collect, nothing, table_of, total
from analytics.model.routing_coverage import keeps_dead_letters
from analytics.model.wording import counted, sentence, short, size
from analytics.requests.question import Question
from analytics.results import charts
from analytics.results.storage import Column, Figure, Findings, Table
from analytics.transforms.event_filters import of_destination
from analytics.transforms.route_counts import ways
from brokerapp.model.definitions import Definitions

STEPS = 1
_SENT = Column("sent", "Sent", "messages")
_COPIES = Column("copies", "Copies", "messages")
_BYTES_SENT, _BYTES_COPIED = Column("bytes_sent", "Sent", "bytes"), Column("bytes_copied", "Copied", "bytes")
_FACTOR = Column("factor", "Copies of each", "times")
_ORIGINAL = Column("original", "Sent to", about="destination")
_TARGETS = Column("targets", "Targets", "count")


def run(question: Question, collect: Collect) -> Findings:
    """What a message becomes where it is copied."""
    events = of_destination(question.events, question.parameters.get("destination", ""), "original")
    found = collect("ways of messages", ways(events))
    rows_read = total(found, "events")
    if not rows_read:
        return nothing()
    found = without_dead_letters(found, question.routing)
    totals = summed(found)
    if not totals:
        return nothing("Nothing was copied in this window: every message stayed where it was sent to.", rows_read)
    legs = [each for each in found.to_pylist() if each["copies"] and _is_copied(each, totals)]
    legs.sort(key=lambda each: -each["copies"])
    columns = (_ORIGINAL, _TARGETS, _SENT, _COPIES, _FACTOR, _BYTES_SENT, _BYTES_COPIED)
    return Findings(
        sentence=_sentence(totals),
        headline=(
            *(
                Figure(label, sum(each[name] for each in totals), unit)
                for label, name, unit in (
                    ("Sent", "sent", "messages"),
                    ("Copies", "copies", "messages"),
                    ("Bytes of copies", "bytes_copied", "bytes"),
                )
            ),
            Figure("At most, of each", max(each["factor"] for each in totals), "times"),
        ),
        rows_read=rows_read,
        charts=(("Copies by target", _chart(totals, legs)),),
        tables=(
            Table("fan-out", "By destination sent to", columns, table_of(totals, columns)),
            Table("copies", "By target", (_ORIGINAL, DESTINATION, _COPIES, _BYTES_COPIED), _legs(legs)),
        ),
    )


def without_dead_letters(found: pa.Table, routing: Definitions | None) -> pa.Table:
    """The ways without those of messages that failed."""
    is_failure = keeps_dead_letters(routing)
    kept = [
        each["destination"] == each["original"] or not is_failure(each["destination"])
        for each in found.select(["destination", "original"]).to_pylist()
    ]
    return found.filter(pa.array(kept, pa.bool_()))


def summed(found: pa.Table) -> list[dict]:
    """Each destination whose messages were copied elsewhere, those with the most copies first."""
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
            row = series.setdefault(short(leg["destination"]), [0.0] * len(names))
            row[names.index(leg["original"])] += leg["copies"]
    return charts.bars([short(each) for each in names], charts.greatest(series), "copies", log=False, stacked=True)


def _sentence(totals: list[dict]) -> str:
    sent, copies = (sum(each[name] for each in totals) for name in ("sent", "copies"))
    more = sum(each["bytes_copied"] - each["bytes_sent"] for each in totals)
    widest = max(totals, key=lambda each: each["factor"])
    return sentence(
        f"{counted(sent, 'message')} became {counted(copies, 'copy').replace('copys', 'copies')}",
        f"{short(widest['original'])} multiplies most, each message by {widest['factor']:.3g}",
        f"copying added {size(more)}" if more > 0 else "",
    )
