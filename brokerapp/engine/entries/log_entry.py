"""Represent a message in a log: ready, in flight, returned or settled.

Two logs that hold one message have an entry each: what happens to it in one of them is nothing to the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.model.message import Message

#: `seq` of an entry that is on its way to the store: it comes after all that is stored.
UNCOMMITTED = 1 << 62


@dataclass(slots=True, eq=False)
class LogEntry:
    """Represent a message in a log. `seq` orders the log.

    `seq` is 0 when the message is not stored (dispatched without passing through the store), and UNCOMMITTED when it
    was dispatched while the store commits it: the commit gives it its number.
    """

    log: str
    seq: int
    message: Message
    payload: int = 0  #: number of the stored payload it refers to; 0: it holds its message itself
    size: int = 0  #: bytes of the stored message
    original_destination: str = ""  #: what its original-destination header says, STOMP form, when not in the message
    shown_destination: str = ""  #: what its destination header says, STOMP form, when not the log's
    redelivery_count: int = 0  #: times it was handed to a consumer before
    first_of_group: bool = False  #: the first of its message group for the consumer it is dispatched to
    acked_before_commit: bool = False  #: settled while it was UNCOMMITTED
    #: The node (its session) that stored it and is likely to have it in memory, until it is dispatched.
    cached_at: str = ""
