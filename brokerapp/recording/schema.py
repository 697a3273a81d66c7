"""The one home of what a trace event is: its kinds, its columns, and the version of both.

docs/data.md explains the columns to whoever reads the archive.
"""

from __future__ import annotations

import pyarrow as pa

#: Grows when a column is added or changes its meaning; stands in the metadata of every batch and every file.
VERSION = 1
VERSION_KEY = b"sluice.events"

# The kinds, numbered in the order in which they happen to a message: sorted by (ts, kind) a journey reads right.
ENQUEUE, FORWARD, DISPATCH, ACK, REDELIVER, EXPIRE, DEAD_LETTER, DROP = range(8)
KINDS = ("enqueue", "forward", "dispatch", "ack", "redeliver", "expire", "dead_letter", "drop")

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
    ],
    metadata={VERSION_KEY: str(VERSION).encode()},
)
