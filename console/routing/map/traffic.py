"""Compute the live cells of the routing graph: traffic and state of each destination. Pure.

A grade names a state (`good`, `idle`, `look`, `act`), a stream a line width (`s0` to `s5`).
"""

from __future__ import annotations

import math

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.broker.snapshot import BrokerSnapshot, Rates
from console.metrics.health import HealthUrgency, findings_of
from console.ui.formatting import number_format

#: Number of line widths: each stands for ten times the rate of the previous one.
STREAMS = 5
_GRADES = {HealthUrgency.NOTE: "look", HealthUrgency.LOOK: "look", HealthUrgency.ACT: "act"}


def stream_width(rate: float) -> str:
    """Name the line width for a rate in messages/s: logarithmic."""
    return f"s{min(STREAMS, int(math.log10(rate)) + 2) if rate >= 1 else 1 if rate > 0 else 0}"


def flow_cells(picture: BrokerSnapshot, destination: Destination) -> dict[str, str | int]:
    """Return the live cells of a destination."""
    stats = picture.stats.get(destination)
    if stats is None:
        return {
            "text": "–", "grade": "idle", "in": "s0", "out": "s0", "count": 0, "producers": _producer_words(0),
            "consumers": _consumer_words(destination, 0), "reading": "idle",
            "says": "does not exist, created with the first message",
        }  # fmt: skip
    rates = picture.rates(destination)
    is_queue = destination.kind is DestinationKind.QUEUE
    return {
        "text": number_format.format_compact(stats.QueueSize)
        if is_queue
        else f"{number_format.format_rate(rates.enqueue)}/s",
        "grade": _grade(picture, stats, rates),
        "in": stream_width(rates.enqueue),
        "out": stream_width(rates.dequeue if is_queue else rates.dispatch),
        "count": stats.EnqueueCount,
        "producers": _producer_words(stats.ProducerCount),
        "consumers": _consumer_words(destination, stats.ConsumerCount),
        "reading": _consumer_grade(stats),
        "says": _sentence(stats, rates),
    }


def _grade(picture: BrokerSnapshot, stats: DestinationStats, rates: Rates) -> str:
    if (found := findings_of(stats, picture)) and stats.destination.kind is DestinationKind.QUEUE:
        return _GRADES[max(each.urgency for each in found)]
    return "good" if rates.enqueue or rates.dequeue or rates.dispatch else "idle"


def _consumer_grade(stats: DestinationStats) -> str:
    if stats.ConsumerCount:
        return "good"
    return "look" if stats.QueueSize else "idle"


def _consumer_words(destination: Destination, count: int) -> str:
    noun = "consumer" if destination.is_queue else "subscriber"
    return number_format.pluralize_count(count, noun) if count else f"no {noun}s"


def _producer_words(count: int) -> str:
    return number_format.pluralize_count(count, "producer") if count else "no producers"


def _sentence(stats: DestinationStats, rates: Rates) -> str:
    parts = [f"enqueue rate {number_format.format_rate(rates.enqueue)} msg/s"]
    if stats.destination.is_queue:
        parts.insert(0, f"depth {number_format.format_integer(stats.QueueSize)}")
    parts += [_consumer_words(stats.destination, stats.ConsumerCount), _producer_words(stats.ProducerCount)]
    return ", ".join(parts)
