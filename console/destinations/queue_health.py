"""Delivery issues of a queue: counters of blocked, dropped and redelivered messages, and assigned message groups."""

from __future__ import annotations

from typing import Any

from brokerapp.errors import BrokerError
from brokerapp.model.stats_records import DestinationStats
from console.broker.gateway import gateway

#: Message groups shown of one queue.
MAX_GROUPS = 200
#: Counters of delivery issues: label, JMX name, explanation.
ISSUE_COUNTERS = (
    ("Blocked sends", "BlockedSends", "sends blocked by flow control"),
    ("Time blocked", "TotalBlockedTime", "total time of blocked sends, in milliseconds"),
    ("Dropped", "DroppedCount", "copies dropped by a full queue or for a slow consumer"),
    ("Expired", "ExpiredCount", "messages that expired (TTL elapsed)"),
    ("Redelivered", "RedeliveredCount", "messages returned by a consumer and dispatched again"),
    ("Discarded", "DiscardedCount", "dropped without a dead-letter queue"),
    ("Bytes enqueued", "EnqueueBytes", "bytes of enqueued messages"),
    ("Bytes dequeued", "DequeueBytes", "bytes of dequeued messages"),
)


def delivery_issues(stats: DestinationStats) -> dict[str, Any]:
    """Return the counters of a queue and its assigned message groups; no groups while no node responds."""
    try:
        groups = gateway().groups(stats.destination)[:MAX_GROUPS]
    except BrokerError:
        groups = []
    return {
        "rest": [(label, name, words, getattr(stats, name)) for label, name, words in ISSUE_COUNTERS],
        "groups": groups,
    }
