"""Limit what all clients together may make the node hold, fairly among clients.

What one connection may hold by itself is said where it is held: client.py, producer_flow.py, dispatcher.py, frames.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.errors import LimitExceeded
from brokerapp.model.settings import DEFAULT_MEMORY

#: Subscriptions of one client, and of all: some 2 KB each.
MAX_SUBSCRIPTIONS = 10_000
MAX_ALL_SUBSCRIPTIONS = 200_000
#: Destinations with wildcards that one client may consume from: every new queue is compared with each.
MAX_PATTERNS = 1_000
#: Open transactions of all clients.
MAX_ALL_TRANSACTIONS = 10_000
#: Units of all clients on their way to the store: some 1 KB each beside the messages.
MAX_ALL_WRITES = 400_000
#: Units of one client on their way to the store, and bytes of messages in them; at this many its socket is not read
#: until half of them are done. Where many clients share the memory each has less, down to the second number.
WRITE_COUNTS = (2_000, 20)
WRITE_BYTES = (8 * 1024 * 1024, 64 * 1024)


@dataclass(slots=True)
class QuotaShare:
    """Limit of each client's pending writes."""

    write_count: int = WRITE_COUNTS[0]
    bytes: int = WRITE_BYTES[0]
    pending_bytes: int = 0  #: of messages that all have on their way now


class Quotas:
    """What all clients hold, and its limits. `memory` is in bytes, 0 for the default."""

    def __init__(self, memory: int = 0) -> None:
        self.memory = memory or DEFAULT_MEMORY
        self.share = QuotaShare()  #: all clients have this very object
        self.subscriptions = 0
        self.transactions = 0
        self.transaction_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of messages on their way to the store, and in open transactions."""
        return self.share.pending_bytes + self.transaction_bytes

    def divide_among(self, clients: int) -> None:
        """Set the share of each client when so many are connected."""
        self.share.write_count = _share_of(MAX_ALL_WRITES, clients, WRITE_COUNTS)
        self.share.bytes = _share_of(self.memory, clients, WRITE_BYTES)

    def check_subscription(self, own: int, own_patterns: int) -> None:
        """Raise LimitExceeded when a client that would have so many may not subscribe."""
        if own > MAX_SUBSCRIPTIONS:
            raise LimitExceeded(f"a connection has at most {MAX_SUBSCRIPTIONS} subscriptions")
        if own_patterns > MAX_PATTERNS:
            raise LimitExceeded(f"a connection consumes from at most {MAX_PATTERNS} destinations with wildcards")
        if self.subscriptions >= MAX_ALL_SUBSCRIPTIONS:
            raise LimitExceeded(f"there are {MAX_ALL_SUBSCRIPTIONS} subscriptions, as many as the broker serves")

    def begin_transaction(self) -> None:
        """One more transaction; raises LimitExceeded."""
        if self.transactions >= MAX_ALL_TRANSACTIONS:
            raise LimitExceeded(f"{MAX_ALL_TRANSACTIONS} transactions are open, as many as the broker serves")
        self.transactions += 1

    def reserve(self, size: int) -> None:
        """So many bytes more in a transaction; raises LimitExceeded."""
        if self.transaction_bytes + size > self.memory:
            raise LimitExceeded(
                f"open transactions of all clients hold {self.transaction_bytes} of {self.memory} bytes (memoryUsage)"
            )
        self.transaction_bytes += size

    def end_transaction(self, size: int) -> None:
        """Release what a transaction of so many bytes reserved."""
        self.transactions -= 1
        self.transaction_bytes -= size


def _share_of(whole: int, clients: int, bounds: tuple[int, int]) -> int:
    most, least = bounds
    return max(least, min(most, whole // max(1, clients)))
