"""Define the schema of every DataFrame that Spark reads or a transform returns; checked where it is made."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from analytics.archive.event_columns import COLUMNS
from brokerapp.tracing.arrow_schema import MOMENT


def _struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, type) for name, type in columns.items()])


#: Spark's name of each type that a column of events has.
_SPARK = {
    MOMENT: TimestampType(),
    pa.string(): StringType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.date32(): DateType(),
    pa.map_(pa.string(), pa.string()): MapType(StringType(), StringType()),
    pa.map_(pa.string(), pa.float64()): MapType(StringType(), DoubleType()),
}
#: Recorded events, by the table of their columns.
EVENTS = _struct(**{each.name: _SPARK[each.type] for each in COLUMNS})

#: Of each destination and slot of time: messages that were sent to it and copies that were stored there, the greater of
#: which `arrived`; those of transactions that were rolled back were not sent; `bytes` is of what arrived, `events` how
#: many rows were counted.
TRAFFIC = _struct(
    destination=StringType(),
    slot=TimestampType(),
    sent=LongType(),
    stored=LongType(),
    arrived=LongType(),
    dispatched=LongType(),
    acked=LongType(),
    rolled_back=LongType(),
    bytes_sent=LongType(),
    bytes=LongType(),
    events=LongType(),
)

#: Log histograms of the time to the ack: by destination and slot (no consumer), by destination and consumer (no slot).
LATENCY = _struct(
    destination=StringType(),
    consumer=StringType(),
    slot=TimestampType(),
    bucket=LongType(),
    messages=LongType(),
)

#: Of each pair of where messages were sent to and where something happened to them.
WAYS = _struct(
    original=StringType(),
    destination=StringType(),
    sent=LongType(),
    bytes_sent=LongType(),
    copies=LongType(),
    bytes_copied=LongType(),
    dispatched=LongType(),
    acked=LongType(),
    last_arrived=TimestampType(),
    last_read=TimestampType(),
    events=LongType(),
)

#: Of each destination and client, and of what no client did there (client null); when it began to consume there, and
#: when it stopped, last; when it was there first (or was given anything).
CLIENTS = _struct(
    destination=StringType(),
    client=StringType(),
    sent=LongType(),
    bytes_sent=LongType(),
    rolled_back=LongType(),
    arrived=LongType(),
    dispatched=LongType(),
    acked=LongType(),
    bytes_acked=LongType(),
    redelivered=LongType(),
    ended=LongType(),
    given=LongType(),
    finished=LongType(),
    held_ms=LongType(),
    last_dispatched=TimestampType(),
    last_ended=TimestampType(),
    began_at=TimestampType(),
    left_at=TimestampType(),
    came_at=TimestampType(),
    events=LongType(),
)

#: The last note of each log in each slot, and the last of how many clients consume there; when it was noted with all
#: others for an hour began, or the broker did (the first start in the slot); when anything was noted first.
DEPTH_NOTES = _struct(
    broker=StringType(),
    destination=StringType(),
    slot=TimestampType(),
    ts=TimestampType(),
    depth=LongType(),
    consumers=LongType(),
    whole=TimestampType(),
    started=TimestampType(),
    first=TimestampType(),
)

#: Of each log, slot (its number) and part of it: what came to wait, and what waits no more.
DEPTH_FLOWS = _struct(
    broker=StringType(),
    destination=StringType(),
    number=IntegerType(),
    part=IntegerType(),
    came=LongType(),
    went=LongType(),
    bytes_came=LongType(),
    events=LongType(),
)

#: Of each log and block of 2**level slots from `start`: when the oldest message that waited at the end of all of them
#: reached the broker. Of level BEFORE: how many copies are known to have been stored before the first slot.
OLDEST = _struct(
    broker=StringType(),
    destination=StringType(),
    level=IntegerType(),
    start=IntegerType(),
    born=TimestampType(),
    messages=LongType(),
)

#: Of each log and slot (its number): messages that arrived, were served and acknowledged; how many of the last have an
#: age, and the sum of these ages.
SERVICE = _struct(
    broker=StringType(),
    destination=StringType(),
    number=IntegerType(),
    arrived=LongType(),
    served=LongType(),
    acked=LongType(),
    timed=LongType(),
    age_us=DoubleType(),
)

#: Of each outcome, cause, destination, consumer and slot: how many messages, and the newest of them.
CAUSES = _struct(
    outcome=StringType(),
    cause=StringType(),
    destination=StringType(),
    consumer=StringType(),
    slot=TimestampType(),
    messages=LongType(),
    first=TimestampType(),
    last=TimestampType(),
    example=StringType(),
    example_reason=StringType(),
    events=LongType(),
)

#: Of each destination: messages acknowledged, given out again (how many, how often, at most), processed twice or more.
REPEATS = _struct(
    destination=StringType(),
    messages=LongType(),
    redelivered=LongType(),
    redeliveries=LongType(),
    most=LongType(),
    duplicated=LongType(),
    across=LongType(),
    most_redelivered=StringType(),
    most_processed=StringType(),
    events=LongType(),
)

#: Of each destination, week back and slot: as TRAFFIC; `failed` are dead letters.
WEEKS = _struct(
    destination=StringType(),
    week=IntegerType(),
    slot=TimestampType(),
    arrived=LongType(),
    acked=LongType(),
    failed=LongType(),
    events=LongType(),
)
