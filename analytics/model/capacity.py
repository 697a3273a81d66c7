"""Room: how many messages a queue may come to hold, by number or by the bytes that its policy leaves it. Pure."""

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
    words: str = ""


def capacity_of(name: str, message_bytes: float, limit: int, routing: Definitions | None) -> QueueCapacity:
    """The bound that is reached first: `limit` in messages (0: none), or what a policy says of a queue, in native form.

    A policy's bytes are as many messages as come to them when they stay as large as those of late. Without any of late
    that is not known, and nothing says that the bound comes nearer.
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
