"""Limit the backlog of a topic's subscriber, and choose the messages to discard. Pure."""

from __future__ import annotations

from collections import deque

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.policy_strategies import MessageEviction, PendingMessageLimit

#: Messages of a topic that wait for one subscriber when no policy says otherwise; ActiveMQ has no such bound.
MAX_PENDING = 10_000

OLDEST = MessageEviction()


def pending_limit(limit: PendingMessageLimit | None, prefetch: int, wanted: int) -> int:
    """Return the limit of a subscriber's backlog; `wanted` is the limit that it requests, 0 for none.

    As in ActiveMQ the request counts only where a policy sets a limit, and can only lower it.
    """
    if limit is None:
        return MAX_PENDING
    allowed = int(prefetch * limit.multiplier) if limit.kind == "prefetchRate" else limit.limit
    if wanted > 0 and (allowed < 0 or wanted < allowed):
        return wanted
    return MAX_PENDING if allowed < 0 else allowed


def evict(pending: deque[LogEntry], eviction: MessageEviction, now_ms: int) -> list[LogEntry]:
    """Take out what is to go; at least one."""
    if len(pending) >= eviction.evict_expired_messages_high_watermark:
        expired = [each for each in pending if 0 < each.message.expires <= now_ms]
        if expired:
            return _remove(pending, expired)
    if eviction.kind == "lowestPriority":
        return _remove(pending, [min(pending, key=lambda each: each.message.priority)])
    if eviction.kind == "uniqueProperty" and (followed := _superseded(pending, eviction.property_name)):
        return _remove(pending, followed)
    return [pending.popleft()]


def _superseded(pending: deque[LogEntry], property_name: str) -> list[LogEntry]:
    """Return the messages that a later one with the same value of a property replaces."""
    latest: dict[str, LogEntry] = {}
    followed = []
    for each in pending:
        value = each.message.headers.get(property_name)
        if value is None:
            continue
        if value in latest:
            followed.append(latest[value])
        latest[value] = each
    return followed


def _remove(pending: deque[LogEntry], gone: list[LogEntry]) -> list[LogEntry]:
    numbers = set(map(id, gone))
    remaining = [each for each in pending if id(each) not in numbers]
    pending.clear()
    pending.extend(remaining)
    return gone
