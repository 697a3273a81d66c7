"""What did not go straight through a queue: its numbers, and the message groups that bind messages to consumers."""

from __future__ import annotations

from typing import Any

from brokerapp.errors import BrokerError
from brokerapp.model.stats_records import DestinationStats
from console.broker.gateway import gateway

#: Message groups shown of one queue.
MAX_GROUPS = 200
#: Numbers of a queue that are seldom looked at: label, name, explanation.
NUMBERS = (
    ("Blocked sends", "BlockedSends", "sends that found no room and had to wait"),
    ("Time blocked", "TotalBlockedTime", "milliseconds they waited, all together"),
    ("Dropped", "DroppedCount", "not kept: copies for a full queue, or for a slow subscriber"),
    ("Expired", "ExpiredCount", "messages whose time to live was over"),
    ("Redelivered", "RedeliveredCount", "messages that came back from a consumer, to be delivered again"),
    ("Discarded", "DiscardedCount", "of the dropped, those that failed and that no dead-letter queue takes"),
    ("Bytes in", "EnqueueBytes", "bytes of the messages that came"),
    ("Bytes out", "DequeueBytes", "bytes of the messages that left"),
)


def losses_of(stats: DestinationStats) -> dict[str, Any]:
    """The numbers, and the groups that have an owner; none while no node tells."""
    try:
        groups = gateway().groups(stats.destination)[:MAX_GROUPS]
    except BrokerError:
        groups = []
    return {"rest": [(label, name, words, getattr(stats, name)) for label, name, words in NUMBERS], "groups": groups}
