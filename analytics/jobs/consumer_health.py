"""Finds consumers that are slow, idle or stuck."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime

from analytics.jobs.common.tables import ACKED, CLIENT, DESTINATION, MAX_BARS, Collect, empty_result, table_of, total
from analytics.model.consumer_states import ConsumerState, classify_consumers
from analytics.model.wording import (
    client_label,
    client_name,
    format_duration,
    join_names,
    pluralize,
    sentence,
    short_name,
    verb_form,
)
from analytics.requests.question import RunQuestion
from analytics.results import charts
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from analytics.transforms.clients import clients
from analytics.transforms.event_filters import of_destination

STEPS = 1
_COLUMNS = (
    CLIENT,
    DESTINATION,
    ResultColumn("state", "State"),
    ResultColumn("holds", "In flight", "messages"),
    ResultColumn("held_ms", "Processing time", "ms"),
    ResultColumn("quiet_seconds", "Idle for", "seconds"),
    ResultColumn("dispatched", "Dispatched", "messages"),
    ACKED,
    ResultColumn("left", "Left", "time"),
)


def run(question: RunQuestion, collect: Collect) -> JobResult:
    """Classify the consumers of the time range by state."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("messages by consumer", clients(events, question.window))
    rows_read = total(found, "events")
    quiet = 60.0 * int(question.parameters.get("minutes") or 5)
    consumers = classify_consumers(found.to_pylist(), question.window, quiet)
    if not consumers:
        return empty_result("No messages dispatched to consumers of queues in this time range.", rows_read)
    slowest = sorted(consumers, key=lambda each: -each.held_ms)[:MAX_BARS]
    names = [client_label(each.client) for each in slowest]
    bars = {"processing time": [round(max(each.held_ms, 0.001), 3) for each in slowest]}
    rows = [{**asdict(each), "state": str(each.state), "left": _moment(each.left_us)} for each in consumers]
    return JobResult(
        sentence=_sentence(consumers, quiet),
        headline=(
            HeadlineFigure("Consumers", len(consumers)),
            *(HeadlineFigure(str(state).capitalize(), sum(each.state == state for each in consumers))
              for state in (ConsumerState.STUCK, ConsumerState.SLOW, ConsumerState.BEHIND)),
        ),
        rows_read=rows_read,
        charts=(("Processing time by consumer", charts.bars(names, bars, "milliseconds")),),
        tables=(ResultTable("consumers", "Consumers, most severe first", _COLUMNS, table_of(rows, _COLUMNS)),),
    )  # fmt: skip


def _moment(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)


def _sentence(every: list, quiet: float) -> str:
    """Summarize the states of connected consumers, and how many left."""
    consumers = [each for each in every if each.left_us is None]
    gone = len(every) - len(consumers)
    parting = (
        f"{pluralize(gone, 'consumer')} left {verb_form(gone, 'its', 'their')} queue" + "s" * (gone > 1) if gone else ""
    )
    if not consumers:
        return sentence(parting)
    states = Counter(each.state for each in consumers)
    stuck = [client_name(each.client) for each in consumers if each.state == ConsumerState.STUCK]
    behind = list(
        dict.fromkeys(short_name(each.destination) for each in consumers if each.state == ConsumerState.BEHIND)
    )
    if states[ConsumerState.FINE] == len(consumers):
        return sentence(
            f"all {pluralize(len(consumers), 'consumer')} keep up" if len(consumers) > 1 else "the consumer keeps up",
            parting,
        )
    slow, idle = [each for each in consumers if each.state == ConsumerState.SLOW], states[ConsumerState.IDLE]
    return sentence(
        f"{join_names(stuck)} {verb_form(len(stuck), 'is', 'are')} stuck: messages in flight and none finished for "
        f"{format_duration(quiet * 1e6)} or more"
        if stuck
        else "",
        f"{client_name(slow[0].client)} is slow, with a processing time of {format_duration(slow[0].held_ms * 1000)}"
        + (
            f", and so {verb_form(len(slow) - 1, 'is', 'are')} {pluralize(len(slow) - 1, 'other')}"
            if len(slow) > 1
            else ""
        )
        if slow
        else "",
        f"consumers of {join_names(behind)} are lagging" if behind else "",
        f"{pluralize(idle, 'consumer')} {verb_form(idle, 'is', 'are')} idle" if idle else "",
        parting,
    )
