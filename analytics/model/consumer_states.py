"""How a consumer does its work, judged by what it did in a window while it was there. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from statistics import median
from typing import Any

from analytics.requests.request import TimeWindow

#: A consumer is slow when it holds messages so many times longer than its neighbours do.
SLOW_FACTOR = 3.0
#: A queue is not kept up with when so much more arrives than is finished.
BEHIND = 1.1


class ConsumerState(StrEnum):
    """What is to be said of a consumer, the worst first."""

    STUCK = "stuck"
    SLOW = "slow"
    BEHIND = "falls behind"
    IDLE = "idle"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class ConsumerReport:
    """One consumer of one queue."""

    destination: str
    client: str
    dispatched: int
    acked: int
    holds: int  #: messages given to it that it has not finished
    held_ms: float  #: how long it holds a message, on average
    quiet_seconds: float  #: since it did anything, when the window ends
    left_us: int | None = None  #: when it stopped to consume there, microseconds since the epoch; None: it did not
    state: ConsumerState = ConsumerState.FINE


def competing_consumers(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows of schemas.CLIENTS that are consumers, by the queue they share; subscribers of a topic share nothing."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["client"] is not None and row["dispatched"] and not row["destination"].startswith("topic://"):
            found.setdefault(row["destination"], []).append(row)
    return found


def overlapped(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two consumers of a queue were there at one time, as far as their rows tell."""
    return all(not (mine["came_at"] and left_us(its, 0) is not None and _micros(mine["came_at"]) > left_us(its, 0))
               for mine, its in ((one, other), (other, one)))  # fmt: skip


def classify_consumers(
    rows: Sequence[Mapping[str, Any]], window: TimeWindow, quiet_seconds: float
) -> list[ConsumerReport]:
    """What consumers did, the worst first. One that did nothing for `quiet_seconds` is stuck, or idle.

    One that left is judged by what it did while it was there, and each beside those that were there with it.
    """
    arrived: dict[str, int] = {}
    for row in rows:
        arrived[row["destination"]] = arrived.get(row["destination"], 0) + row["arrived"]
    began = max((_micros(row["left_at"]) for row in rows if row["client"] is None and row["left_at"]), default=0)
    found = []
    for destination, siblings in competing_consumers(rows).items():
        consumers = [_consumer(row, window, left_us(row, began)) for row in siblings]
        pairs = list(zip(siblings, consumers, strict=True))
        behind = arrived.get(destination, 0) > BEHIND * sum(row["ended"] - row["redelivered"] for row in siblings)
        active = min((each.quiet_seconds for each in consumers if each.left_us is None), default=0.0)
        for row, each in pairs:
            others = [other.held_ms for its, other in pairs if other is not each and overlapped(row, its)]
            found.append(replace(each, state=_state(each, others, behind, active, quiet_seconds)))
    order = list(ConsumerState)
    return sorted(found, key=lambda each: (order.index(each.state), -each.holds, -each.held_ms, each.client))


def left_us(row: Mapping[str, Any], broker_began_us: int = 0) -> int | None:
    """When the consumer of a row stopped to consume, if it did not begin again; also by the end of its broker.

    None of what was recorded before version 4, which does not tell.
    """
    left = max(_micros(row["left_at"]) if row["left_at"] is not None else 0, broker_began_us)
    came = max((_micros(each) for each in (row["began_at"], row["last_dispatched"]) if each is not None), default=0)
    return left if left and left >= came else None


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)


def _consumer(row: Mapping[str, Any], window: TimeWindow, left: int | None) -> ConsumerReport:
    until_us = window.until_us if left is None else left
    balance = max(row["dispatched"] - row["ended"], row["given"] - row["finished"])
    # What it holds at the end it has held until then.
    held = row["held_ms"] + (row["given"] - row["finished"]) * (until_us - window.since_us) / 1000
    lasts = [each.timestamp() for each in (row["last_dispatched"], row["last_ended"]) if each is not None]
    # While it holds messages only finishing one shows that it works; else being given one does.
    last = row["last_ended"].timestamp() if balance > 0 and row["last_ended"] else max(lasts)
    if balance > 0 and row["last_ended"] is None:
        last = window.since_us / 1e6
    return ConsumerReport(
        row["destination"], row["client"], row["dispatched"], row["acked"], max(0, balance) if left is None else 0,
        max(0.0, held / max(row["given"], 1)), max(0.0, window.until_us / 1e6 - last), left,
    )  # fmt: skip


def _state(
    consumer: ConsumerReport, others: Sequence[float], behind: bool, active: float, quiet: float
) -> ConsumerState:
    is_there = consumer.left_us is None
    if is_there and consumer.quiet_seconds >= quiet:
        if consumer.holds:
            return ConsumerState.STUCK
        if active < quiet:  # others are given messages of the same queue
            return ConsumerState.IDLE
    if others and consumer.held_ms > SLOW_FACTOR * max(median(others), 1.0):
        return ConsumerState.SLOW
    return ConsumerState.BEHIND if behind and is_there else ConsumerState.FINE
