"""Decide how long a send is blocked, and which limits policies set. Pure."""

from __future__ import annotations

from typing import NamedTuple

from brokerapp.model.definitions import VM_CURSOR, PolicyEntry

#: Milliseconds between warnings about a place that stays full (ActiveMQ's blockedProducerWarningInterval).
WARNING_INTERVAL_MS = 30_000


def send_timeout_ms(policy: PolicyEntry | None, fails: bool, fails_after_ms: int) -> int | None:
    """Return for how many milliseconds a send is blocked; 0: it is refused at once; None: without limit.

    A policy that says something about it counts before the whole broker's `sendFailIfNoSpace` and
    `sendFailIfNoSpaceAfterTimeout` (`fails`, `fails_after_ms`).
    """
    if policy is not None and policy.send_fail_if_no_space is not None:
        fails = policy.send_fail_if_no_space
    if policy is not None and policy.send_fail_if_no_space_after_timeout is not None:
        fails_after_ms = policy.send_fail_if_no_space_after_timeout
    if fails:
        return 0
    return fails_after_ms if fails_after_ms > 0 else None


class ByteLimit(NamedTuple):
    """Bytes that a place may hold, 0 for any number, and the attribute that says so."""

    bytes: int
    name: str


NO_LIMIT = ByteLimit(0, "")


def store_limit_of(policy: PolicyEntry | None) -> ByteLimit:
    """Return the limit of what a queue or a named subscription may hold in the store.

    As in ActiveMQ, `memoryLimit` limits a queue only if the queue is to hold its messages in memory (`vmQueueCursor`),
    and only with flow control. `storeLimit` is Sluice's own, and always applies.
    """
    if policy is None:
        return NO_LIMIT
    bounds = [ByteLimit(policy.store_limit, "storeLimit")] if policy.store_limit else []
    if policy.queue_cursor == VM_CURSOR and (memory := memory_limit_of(policy)).bytes:
        bounds.append(memory)
    return min(bounds, default=NO_LIMIT)


def memory_limit_of(policy: PolicyEntry | None) -> ByteLimit:
    """Return the limit of a topic subscriber's backlog beyond which producers are blocked."""
    if policy is None or policy.producer_flow_control is False or not policy.memory_limit:
        return NO_LIMIT
    return ByteLimit(policy.memory_limit, "memoryLimit")


def warning_interval_ms(policy: PolicyEntry | None) -> int:
    """Milliseconds between warnings about a full queue; 0: none."""
    interval = policy.blocked_producer_warning_interval if policy is not None else None
    return WARNING_INTERVAL_MS if interval is None else max(0, interval)
