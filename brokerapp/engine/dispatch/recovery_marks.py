"""Track which messages may have been delivered, for a node that starts after a crash or takes a log over.

All (`open`) while the log has consumers, those up to a number once the last one left. Where a broker has several nodes
an open mark also says at which of them the consumers are, and up to which number messages came back from some: while
those nodes live they know what they hold, and nothing else was delivered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from brokerapp.engine.dispatch.message_log import MessageLog

#: Mark of a log whose messages may all have been delivered.
OPEN_MARK = "open"


def is_open(mark: str) -> bool:
    """Return whether the mark says that the log had consumers."""
    return mark.startswith(OPEN_MARK)


def maybe_delivered_up_to(mark: str, last: int, alive: Collection[str] = ()) -> int:
    """Return the number up to which messages may have been delivered by a node that died.

    `last` is that of the broker's last message, `alive` the nodes (sessions) that have said what they hold.
    """
    if not is_open(mark):
        return int(mark or 0)
    _, *known = mark.split()
    if known and all(session in alive for session in known[1:]):
        return int(known[0])
    return last


def open_mark(log: MessageLog, me: str, holders: Iterable[str] = ()) -> str:
    """The mark of a log with consumers, at home on the node of this session; `holders` are other nodes whose clients
    hold some of it, or did when nothing more was heard of them.
    """
    if not log.shared:
        return OPEN_MARK
    came_back = max(log.redelivery_counts, default=0)
    sessions = sorted({*holders, *(consumer.owner_session or me for consumer in log.consumers)})
    return " ".join((OPEN_MARK, str(max(came_back, log.maybe_delivered_up_to)), *sessions))


def closing_mark(log: MessageLog) -> str:
    """Return the mark of a log without consumers."""
    if log.uncommitted_bytes:  # what was dispatched before its commit has no number yet
        return OPEN_MARK
    if log.shared or log.depth:  # of what others stored and could not tell of, the depth knows nothing
        return str(max(log.dispatched_up_to, log.maybe_delivered_up_to))
    return "0"
