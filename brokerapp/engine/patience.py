"""Patience: what becomes of a send that finds no room. Pure."""

from __future__ import annotations

from brokerapp.definitions import PolicyEntry

#: Milliseconds between warnings about a place that stays full (ActiveMQ's blockedProducerWarningInterval).
WARNING_INTERVAL_MS = 30_000


def patience_ms(policy: PolicyEntry | None, fails: bool, fails_after_ms: int) -> int | None:
    """How long such a send waits for room: 0, it is refused at once; None, as long as it takes.

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


def limit_of(policy: PolicyEntry | None) -> int:
    """Bytes a queue may hold; 0: no limit of its own. Without flow control nobody minds the limit."""
    if policy is None or policy.producer_flow_control is False:
        return 0
    return policy.memory_limit or 0


def warning_interval_ms(policy: PolicyEntry | None) -> int:
    """Milliseconds between warnings about a full queue; 0: none."""
    interval = policy.blocked_producer_warning_interval if policy is not None else None
    return WARNING_INTERVAL_MS if interval is None else max(0, interval)
