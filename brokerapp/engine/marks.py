"""Marks: what tells a node that starts after a crash which messages of a log may have been delivered before.

All (`open`) while the log has consumers, those up to a number once the last one left.
"""

from __future__ import annotations

from brokerapp.engine.message_log import MessageLog

#: Mark of a log whose messages may all have been delivered.
OPEN = "open"


def suspects(mark: str, last: int) -> int:
    """The number up to which messages may have been delivered; `last` is that of the broker's last message."""
    return last if mark == OPEN else int(mark or 0)


def closing_mark(log: MessageLog) -> str:
    """The mark of a log that nobody consumes from any more."""
    if log.coming:  # what was given early has no number yet
        return OPEN
    return str(max(log.dispatched, log.may_have_been_delivered)) if log.depth else "0"
