"""Defines trace events: kinds, columns, and the version of both.

docs/data.md explains the columns to whoever reads the archive.
"""

from __future__ import annotations

import pyarrow as pa

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

#: Reasons of a `depth`. A node notes all its logs that hold anything as the broker begins with it, and at each full
#: hour; else those that changed, and, as if they had, all that it finds beside other nodes, or leaves when it stops.
START, ALL, CHANGED = "start", "all", "changed"

MOMENT = pa.timestamp("us", tz="UTC")
#: Texts of which a batch holds few different ones. Parquet stores them the same way; readers see strings.
NAME = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        pa.field("ts", MOMENT, nullable=False),
        pa.field("kind", NAME, nullable=False),
        pa.field("msg_id", pa.string(), nullable=False),
        pa.field("destination", NAME, nullable=False),
        pa.field("original", NAME, nullable=False),
        pa.field("consumer", NAME),
        pa.field("broker", NAME, nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("born", MOMENT, nullable=False),
        pa.field("reason", NAME),
        pa.field("ps", pa.map_(pa.string(), pa.string())),
        pa.field("pn", pa.map_(pa.string(), pa.float64())),
        pa.field("weight", pa.int32(), nullable=False),
    ],
    metadata={VERSION_KEY: str(VERSION).encode()},
)


def current(events: pa.Table, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Convert events of an earlier version to the columns of this one. Raises pyarrow.ArrowInvalid."""
    if "weight" not in events.schema.names:  # version 1 knew no sampling
        events = events.append_column("weight", pa.repeat(pa.scalar(1, pa.int32()), events.num_rows))
    if missing := set(schema.names) - set(events.schema.names):
        raise pa.ArrowInvalid(f"not trace events: no column {', '.join(sorted(missing))}")
    return events.select(schema.names).cast(schema)
