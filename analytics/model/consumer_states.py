"""Classifies consumers by what they did in a time range while connected. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from statistics import median
from typing import Any

from analytics.requests.request import TimeWindow

#: A consumer is slow when its processing time exceeds the median of the others by this factor.
SLOW_FACTOR = 3.0
#: Consumers lag when arrivals exceed finished messages by this factor.
LAG_FACTOR = 1.1


class ConsumerState(StrEnum):
    """The state of a consumer, the most severe first."""

    STUCK = "stuck"
    SLOW = "slow"
    BEHIND = "lagging"
    IDLE = "idle"
    FINE = "healthy"


@dataclass(frozen=True, slots=True)
class ConsumerReport:
    """The figures and the state of one consumer of one queue."""

    destination: str
    client: str
    dispatched: int
    acked: int
    holds: int  #: messages in flight; the name is that of the column of results
    held_ms: float  #: average time between the dispatch and the end of a message
    quiet_seconds: float  #: without activity at the end of the time range
    left_us: int | None = None  #: when it stopped consuming, microseconds since the epoch; None: it did not
    state: ConsumerState = ConsumerState.FINE


def competing_consumers(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of schemas.CLIENTS that are consumers, by queue; subscribers of topics do not compete."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["client"] is not None and row["dispatched"] and not row["destination"].startswith("topic://"):
            found.setdefault(row["destination"], []).append(row)
    return found


def were_connected_together(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two consumers of a queue were connected at the same time."""
    return all(not (mine["came_at"] and left_us(its, 0) is not None and _micros(mine["came_at"]) > left_us(its, 0))
               for mine, its in ((one, other), (other, one)))  # fmt: skip


def classify_consumers(
    rows: Sequence[Mapping[str, Any]], window: TimeWindow, quiet_seconds: float
) -> list[ConsumerReport]:
    """Classify consumers, the most severe state first. One without activity for `quiet_seconds` is stuck or idle.

    A consumer that left is classified by its time in the queue; each is compared with those connected with it.
    """
    arrived: dict[str, int] = {}
    for row in rows:
        arrived[row["destination"]] = arrived.get(row["destination"], 0) + row["arrived"]
    began = max((_micros(row["left_at"]) for row in rows if row["client"] is None and row["left_at"]), default=0)
    found = []
    for destination, siblings in competing_consumers(rows).items():
        consumers = [_consumer(row, window, left_us(row, began)) for row in siblings]
        pairs = list(zip(siblings, consumers, strict=True))
        behind = arrived.get(destination, 0) > LAG_FACTOR * sum(row["ended"] - row["redelivered"] for row in siblings)
        active = min((each.quiet_seconds for each in consumers if each.left_us is None), default=0.0)
        for row, each in pairs:
            others = [other.held_ms for its, other in pairs if other is not each and were_connected_together(row, its)]
            found.append(replace(each, state=_state(each, others, behind, active, quiet_seconds)))
    order = list(ConsumerState)
    return sorted(found, key=lambda each: (order.index(each.state), -each.holds, -each.held_ms, each.client))


def left_us(row: Mapping[str, Any], broker_began_us: int = 0) -> int | None:
    """Return when a consumer stopped for good, also by a restart of its broker; None while it consumes.

    Always None for events recorded before version 4, which have no unsubscribe events.
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
