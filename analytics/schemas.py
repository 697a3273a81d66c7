"""What Spark reads and what transforms give: the contract of every DataFrame, checked where it is made."""

from __future__ import annotations

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


def _struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, type) for name, type in columns.items()])


#: Trace events as the archive has them; the last three come from the path (docs/data.md).
EVENTS = _struct(
    ts=TimestampType(),
    kind=StringType(),
    msg_id=StringType(),
    destination=StringType(),
    original=StringType(),
    consumer=StringType(),
    size=LongType(),
    born=TimestampType(),
    reason=StringType(),
    ps=MapType(StringType(), StringType()),
    pn=MapType(StringType(), DoubleType()),
    weight=IntegerType(),
    broker=StringType(),
    day=DateType(),
    hour=StringType(),
)

#: Of each destination and bucket of time; `bytes` is of what arrived, `events` how many rows were counted.
TRAFFIC = _struct(
    destination=StringType(),
    minute=TimestampType(),
    arrived=LongType(),
    dispatched=LongType(),
    acked=LongType(),
    bytes=LongType(),
    events=LongType(),
)

#: Of each consumer queue, microseconds from the broker to the ack.
LATENCY = _struct(
    destination=StringType(),
    acked=LongType(),
    p50_us=DoubleType(),
    p95_us=DoubleType(),
    p99_us=DoubleType(),
)
