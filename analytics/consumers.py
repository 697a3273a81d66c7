"""How a consumer does its work, judged by what it did in a window. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median
from typing import Any

from analytics.request import Window

#: A consumer is slow when it holds messages so many times longer than its neighbours do.
SLOW_FACTOR = 3.0
#: A queue is not kept up with when so much more arrives than is finished.
BEHIND = 1.1


class State(StrEnum):
    """What is to be said of a consumer, the worst first."""

    STUCK = "stuck"
    SLOW = "slow"
    BEHIND = "falls behind"
    IDLE = "idle"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer of one queue."""

    destination: str
    client: str
    dispatched: int
    acked: int
    holds: int  #: messages given to it that it has not finished
    held_ms: float  #: how long it holds a message, on average
    quiet_seconds: float  #: since it did anything, when the window ends
    state: State = State.FINE


def competing(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows of schemas.CLIENTS that are consumers, by the queue they share; subscribers of a topic share nothing."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["client"] is not None and row["dispatched"] and not row["destination"].startswith("topic://"):
            found.setdefault(row["destination"], []).append(row)
    return found


def judged(rows: Sequence[Mapping[str, Any]], window: Window, quiet_seconds: float) -> list[Consumer]:
    """What consumers did, the worst first. One that did nothing for `quiet_seconds` is stuck, or idle."""
    arrived: dict[str, int] = {}
    for row in rows:
        arrived[row["destination"]] = arrived.get(row["destination"], 0) + row["arrived"]
    found = []
    for destination, siblings in competing(rows).items():
        consumers = [_consumer(row, window) for row in siblings]
        behind = arrived.get(destination, 0) > BEHIND * sum(row["ended"] - row["redelivered"] for row in siblings)
        active = min(each.quiet_seconds for each in consumers)
        for each in consumers:
            others = [other.held_ms for other in consumers if other is not each]
            found.append(replace(each, state=_state(each, others, behind, active, quiet_seconds)))
    order = list(State)
    return sorted(found, key=lambda each: (order.index(each.state), -each.holds, -each.held_ms, each.client))


def _consumer(row: Mapping[str, Any], window: Window) -> Consumer:
    balance = max(row["dispatched"] - row["ended"], row["given"] - row["finished"])
    # What it holds at the end it has held until then.
    held = row["held_ms"] + (row["given"] - row["finished"]) * (window.until_us - window.since_us) / 1000
    lasts = [each.timestamp() for each in (row["last_dispatched"], row["last_ended"]) if each is not None]
    # While it holds messages only finishing one shows that it works; else being given one does.
    last = row["last_ended"].timestamp() if balance > 0 and row["last_ended"] else max(lasts)
    if balance > 0 and row["last_ended"] is None:
        last = window.since_us / 1e6
    return Consumer(
        row["destination"], row["client"], row["dispatched"], row["acked"], max(0, balance),
        max(0.0, held / max(row["given"], 1)), max(0.0, window.until_us / 1e6 - last),
    )  # fmt: skip


def _state(consumer: Consumer, others: Sequence[float], behind: bool, active: float, quiet: float) -> State:
    if consumer.quiet_seconds >= quiet:
        if consumer.holds:
            return State.STUCK
        if active < quiet:  # others are given messages of the same queue
            return State.IDLE
    if others and consumer.held_ms > SLOW_FACTOR * max(median(others), 1.0):
        return State.SLOW
    return State.BEHIND if behind else State.FINE
