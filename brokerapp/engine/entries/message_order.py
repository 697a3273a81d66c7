"""Define the numbers that order the messages of a log, so that "up to here" and "after this" are well-defined.

The place of a message is its number; where a policy says `prioritizedMessages`, its urgency before its number. The
store keeps such logs in this order too (`store/functions/priority_index.lua`).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Protocol

from brokerapp.model.message import Message

#: More numbers than a broker gives out; ten times as many are still exact as the scores of a sorted set.
PRIORITY_SPAN = 1 << 49
HIGHEST_PRIORITY = 9


class OrderedMessage(Protocol):
    """A message in a log: an entry, or what the store returns of one."""

    seq: int
    message: Message


OrderKey = Callable[[OrderedMessage], int]

seq_order: OrderKey = attrgetter("seq")


def priority_order(entry: OrderedMessage) -> int:
    """Sort by priority, the highest first, and by number among equals."""
    return (HIGHEST_PRIORITY - entry.message.priority) * PRIORITY_SPAN + entry.seq


def order_key_for(prioritized: bool) -> OrderKey:
    """Return the sort key of a log's messages: by priority, or by number alone."""
    return priority_order if prioritized else seq_order
