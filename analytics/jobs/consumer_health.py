"""Consumers that are slow, idle or stuck."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime

from analytics.jobs.common.tables import ACKED, CLIENT, DESTINATION, MAX_BARS, Collect, nothing, table_of, total
from analytics.model.consumer_states import State, judged
from analytics.model.wording import client, client_label, counted, duration, form, listed, sentence, short
from analytics.requests.question import Question
from analytics.results import charts
from analytics.results.storage import Column, Figure, Findings, Table
from analytics.transforms.clients import clients
from analytics.transforms.event_filters import of_destination

STEPS = 1
_COLUMNS = (
    CLIENT,
    DESTINATION,
    Column("state", "State"),
    Column("holds", "Holds", "messages"),
    Column("held_ms", "Holds each for", "ms"),
    Column("quiet_seconds", "Did nothing for", "seconds"),
    Column("dispatched", "Given", "messages"),
    ACKED,
    Column("left", "Left", "time"),
)


def run(question: Question, collect: Collect) -> Findings:
    """Who holds messages for long, and who does nothing."""
    events = of_destination(question.events, question.parameters.get("destination", ""))
    found = collect("messages by consumer", clients(events, question.window))
    rows_read = total(found, "events")
    quiet = 60.0 * int(question.parameters.get("minutes") or 5)
    consumers = judged(found.to_pylist(), question.window, quiet)
    if not consumers:
        return nothing("Nothing was given to consumers of a queue in this window.", rows_read)
    slowest = sorted(consumers, key=lambda each: -each.held_ms)[:MAX_BARS]
    names = [client_label(each.client) for each in slowest]
    bars = {"held": [round(max(each.held_ms, 0.001), 3) for each in slowest]}
    rows = [{**asdict(each), "state": str(each.state), "left": _moment(each.left_us)} for each in consumers]
    return Findings(
        sentence=_sentence(consumers, quiet),
        headline=(
            Figure("Consumers", len(consumers)),
            *(Figure(str(state).capitalize(), sum(each.state == state for each in consumers))
              for state in (State.STUCK, State.SLOW, State.BEHIND)),
        ),
        rows_read=rows_read,
        charts=(("How long consumers hold a message", charts.bars(names, bars, "milliseconds")),),
        tables=(Table("consumers", "Consumers, the worst first", _COLUMNS, table_of(rows, _COLUMNS)),),
    )  # fmt: skip


def _moment(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)


def _sentence(every: list, quiet: float) -> str:
    """Of those who are there; and how many left."""
    consumers = [each for each in every if each.left_us is None]
    gone = len(every) - len(consumers)
    parting = f"{counted(gone, 'consumer')} left {form(gone, 'its', 'their')} queue" + "s" * (gone > 1) if gone else ""
    if not consumers:
        return sentence(parting)
    states = Counter(each.state for each in consumers)
    stuck = [client(each.client) for each in consumers if each.state == State.STUCK]
    behind = list(dict.fromkeys(short(each.destination) for each in consumers if each.state == State.BEHIND))
    if states[State.FINE] == len(consumers):
        return sentence(
            f"all {counted(len(consumers), 'consumer')} keep up" if len(consumers) > 1 else "the consumer keeps up",
            parting,
        )
    slow = [each for each in consumers if each.state == State.SLOW]
    return sentence(
        f"{listed(stuck)} {form(len(stuck), 'is', 'are')} stuck: messages are held and none was finished for "
        f"{duration(quiet * 1e6)} or more"
        if stuck
        else "",
        f"{client(slow[0].client)} is slow, it holds each message for {duration(slow[0].held_ms * 1000)}"
        + (f", and so {form(len(slow) - 1, 'is', 'are')} {counted(len(slow) - 1, 'other')}" if len(slow) > 1 else "")
        if slow
        else "",
        f"the consumers of {listed(behind)} fall behind" if behind else "",
        f"{counted(states[State.IDLE], 'consumer')} had nothing to do" if states[State.IDLE] else "",
        parting,
    )
