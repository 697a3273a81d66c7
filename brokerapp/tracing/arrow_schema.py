"""Defines the columns of trace events. docs/data.md explains them to whoever reads the archive.

Not for nodes, which only record: Arrow takes a third of the memory of one.
"""

from __future__ import annotations

import pyarrow as pa

from brokerapp.tracing.schema import VERSION, VERSION_KEY

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
