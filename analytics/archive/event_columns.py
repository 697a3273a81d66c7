"""Define the columns of recorded events for readers: one table of names, types and meanings.

Spark's schema (schemas.py), the data source, unarchived events, DuckDB's types of the columns in the path, and the
table in docs/data.md are derived from it. Files keep repeated texts in dictionaries; readers see strings.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from analytics.archive.data_files import ARCHIVED
from brokerapp.tracing.arrow_schema import MOMENT


@dataclass(frozen=True, slots=True)
class EventColumn:
    """A column: its type in Arrow, and what it means in the words of docs/data.md."""

    name: str
    type: pa.DataType
    is_optional: bool  #: whether it may be null
    meaning: str

    @property
    def type_in_words(self) -> str:
        """Return the type as docs/data.md names it."""
        return _TYPES[self.type][0] + (", or null" if self.is_optional else "")

    @property
    def duckdb(self) -> str:
        """Return the type that DuckDB gives it."""
        return _TYPES[self.type][1]


#: Type of a column -> its name in the documentation and in DuckDB.
_TYPES = {
    MOMENT: ("timestamp, microseconds, UTC", "TIMESTAMP WITH TIME ZONE"),
    pa.string(): ("string", "VARCHAR"),
    pa.int32(): ("int32", "INTEGER"),
    pa.int64(): ("int64", "BIGINT"),
    pa.date32(): ("date", "DATE"),
    pa.map_(pa.string(), pa.string()): ("map of string to string", "MAP(VARCHAR, VARCHAR)"),
    pa.map_(pa.string(), pa.float64()): ("map of string to double", "MAP(VARCHAR, DOUBLE)"),
}
#: Columns that only the path has. The hour is a number, as readers without a schema infer it from the path.
_FROM_PATH = {"broker": pa.string(), "day": pa.date32(), "hour": pa.int64()}
_MEANINGS = {
    "ts": "time of the event",
    "kind": "kind of the event, see below",
    "msg_id": "message-id; all copies of a message share it. Empty for `depth`, `subscribe` and `unsubscribe`",
    "destination": "destination of the event, in native form: `queue://orders`, `topic://prices`, or"
    " `subscription://CLIENT:NAME` (durable and shared subscriptions)",
    "original": "destination that the producer sent to",
    "consumer": "client: the producer (`enqueue`), or the consumer (`dispatch`, `ack` and the events that follow from"
    " them)",
    "size": "bytes of the body; for `depth` the number of messages, for `subscribe` and `unsubscribe` the number of"
    " consuming clients",
    "born": "time at which the message reached the broker; on every event, so that a latency needs no join",
    "reason": "cause of a dead letter, a drop or an expiration",
    "ps": "properties, on `enqueue` only",
    "pn": "those properties that are decimal numbers, as numbers",
    "weight": "number of messages that the event stands for: 1, or N if one message in N is recorded",
    "entry": "position of the event's entry in the stream, an increasing number: milliseconds since the epoch times"
    " 2**20, plus a counter. Files of early versions have none: the Spark source `sluice` returns the last one of"
    " the file, other readers null",
    "broker": "name of the broker (from the path)",
    "day": "day of `ts` in UTC (from the path)",
    "hour": "hour of `ts` in UTC, 0 to 23 (from the path)",
}


def _type_of(field: pa.Field) -> pa.DataType:
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


#: In the order of files, then what the path says.
COLUMNS = (
    *(EventColumn(each.name, _type_of(each), each.nullable, _MEANINGS[each.name]) for each in ARCHIVED),
    *(EventColumn(name, type, False, _MEANINGS[name]) for name, type in _FROM_PATH.items()),
)
#: The same as an Arrow schema, which batches for Spark must match exactly.
ARROW = pa.schema([(each.name, each.type) for each in COLUMNS])
#: Types of the columns in the path for DuckDB, which would infer a text for hour 09, a number for 10 and for broker 7.
HIVE_TYPES = {each.name: each.duckdb for each in COLUMNS if each.name in _FROM_PATH}


def with_path(events: pa.Table, broker: str) -> pa.Table:
    """Convert archived events to the columns of readers: add those from the path, and decode dictionaries."""
    return (
        events.append_column("broker", pa.repeat(pa.scalar(broker), events.num_rows))
        .append_column("day", events["ts"].cast(pa.date32()))
        .append_column("hour", pc.hour(events["ts"]))
        .select(ARROW.names)
        .cast(ARROW)
    )
