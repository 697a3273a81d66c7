"""Entry: a message in its place in a log, which is what waits, is given out, comes back and is settled.

Two logs that hold one message have an entry each: what happens to it in one of them is nothing to the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.model.message import Message

#: `seq` of an entry that is on its way to the store: it comes after all that is stored.
UNCOMMITTED = 1 << 62


@dataclass(slots=True, eq=False)
class LogEntry:
    """A message in a log. `seq` orders the log.

    0: not stored (given to a consumer without passing through the store). COMING: given to a consumer while the store
    is told of it; it gets its number when that is done.
    """

    log: str
    seq: int
    message: Message
    payload: int = 0  #: number of the stored payload it refers to; 0: it holds its message itself
    size: int = 0  #: bytes of the stored message
    original: str = ""  #: what its original-destination header says, STOMP form, when not in the message
    shown: str = ""  #: what its destination header says, STOMP form, when not the log's
    deliveries: int = 0  #: times it was handed to a consumer before
    first_of_group: bool = False  #: the first of its message group for the consumer it is given to
    acked_before_commit: bool = False  #: settled while it was COMING
    #: The node (its session) that stored it and is likely to have it in memory, until it is given out.
    cached_at: str = ""
