"""Defines the kinds of trace events, and the version of these and of the columns (arrow_schema.py)."""

from __future__ import annotations

#: Grows when a column is added or changes its meaning; stands in the metadata of every batch and every file.
VERSION = 4
VERSION_KEY = b"sluice.events"

# The kinds by their number, which batches in the stream have: new ones are appended, none is ever given another number.
KINDS = (
    "depth", "bridge_receive", "enqueue", "forward", "dispatch", "bridge_forward", "bridge_refuse", "ack", "redeliver",
    "expire", "dead_letter", "drop", "rollback", "move", "remove", "delay", "return",
    "subscribe", "unsubscribe",
)  # fmt: skip
(
    DEPTH, BRIDGE_RECEIVE, ENQUEUE, FORWARD, DISPATCH, BRIDGE_FORWARD, BRIDGE_REFUSE, ACK, REDELIVER,
    EXPIRE, DEAD_LETTER, DROP, ROLLBACK, MOVE, REMOVE, DELAY, RETURN, SUBSCRIBE, UNSUBSCRIBE,
) = range(len(KINDS))  # fmt: skip
#: References that a run of events is noted by, see recorder.py.
RUN_FIELDS = 7
#: In the order in which they happen to a message: sorted by (ts, its place here) a journey reads right.
ORDER = (
    "depth", "subscribe", "bridge_receive", "enqueue", "rollback", "forward", "return", "dispatch", "bridge_forward",
    "bridge_refuse", "ack", "redeliver", "expire", "dead_letter", "drop", "move", "remove", "delay",
    "unsubscribe",
)  # fmt: skip
#: Events that are about no message, but about a destination or its consumers: they have no id and are never sampled.
WITHOUT_MESSAGE = (DEPTH, SUBSCRIBE, UNSUBSCRIBE)

#: Properties that hold the trace context of the producer (W3C): recorded whatever a policy says, because without them
#: what happens to a message cannot be joined to the trace that it belongs to.
TRACE_CONTEXT = frozenset({"traceparent", "tracestate"})

#: Reasons of a `depth`. A node notes all its logs that hold anything as the broker begins with it, and at each full
#: hour; else those that changed, and, as if they had, all that it finds beside other nodes, or leaves when it stops.
START, ALL, CHANGED = "start", "all", "changed"
