"""Compute the limit of a queue's depth, from a number of messages or the bytes of its policy. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.model.routing_coverage import policy_of
from analytics.model.wording import format_bytes, pluralize
from brokerapp.engine.policy.send_timeout import NO_LIMIT, store_limit_of
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination


@dataclass(frozen=True, slots=True)
class QueueCapacity:
    """The limit of a queue's depth in messages (0: unlimited), and a phrase that names the setting behind it."""

    messages: int = 0
    limit_text: str = ""


def capacity_of(name: str, message_bytes: float, limit: int, routing: Definitions | None) -> QueueCapacity:
    """Return the limit that a queue (in native form) reaches first: `limit` in messages (0: none), or its policy's.

    A limit in bytes is converted by the average size of recent messages. Without recent messages it is left out.
    """
    bounds = [QueueCapacity(limit, pluralize(limit, "message"))] if limit else []
    destination = Destination.parse(name)
    bound = (
        store_limit_of(policy_of(routing, destination)) if routing is not None and destination.is_queue else NO_LIMIT
    )
    if bound.bytes and message_bytes:
        bounds.append(
            QueueCapacity(max(1, int(bound.bytes / message_bytes)), f"{bound.name} {format_bytes(bound.bytes)}")
        )
    return min(bounds, key=lambda each: each.messages, default=QueueCapacity())
