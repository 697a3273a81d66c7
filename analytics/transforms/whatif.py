"""What-if: recorded messages counted by where they were sent and by what selectors say of them.

A message's answers are packed into whole numbers, two bits each, so that one aggregate over few columns counts all
classes: wide aggregates, and rows for each target, were slower (docs/data.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.selector_column import NotRecorded, to_column
from analytics.whatif.coding import PER_WORD, Coding
from analytics.whatif.questions import Question

#: Headers of a message that are columns of the record, as texts; see docs/data.md.
_COLUMNS = {
    "message-id": lambda: F.col("msg_id"),
    "timestamp": lambda: F.unix_millis("born").cast("string"),
}
_UNKNOWN = 2


def flows(events: DataFrame, bucket_seconds: int) -> DataFrame:
    """By destination and bucket (seconds since the epoch): what was sent there, stored there, and left.

    Columns `destination`, `bucket`, `sent`, `bytes` (of what was sent), `stored`, `acked`, `gone` (otherwise), `events`.
    """
    return events.groupBy("destination", _bucket(bucket_seconds)).agg(
        F.count_if(F.col("kind") == "enqueue").alias("sent"),
        F.sum(F.when(F.col("kind") == "enqueue", F.col("size")).otherwise(0)).alias("bytes"),
        F.count_if(F.col("kind") == "forward").alias("stored"),
        F.count_if(F.col("kind") == "ack").alias("acked"),
        F.count_if(F.col("kind").isin("expire", "dead_letter", "drop")).alias("gone"),
        F.count("*").alias("events"),
    )


def classes(events: DataFrame, coding: Coding, bucket_seconds: int) -> DataFrame:
    """Messages sent to destinations that ask questions, by destination, bucket and answers.

    Columns `destination`, `bucket`, a word each of the answers (see Coding), `sent`, `bytes`, `newest` (when the last
    of them was sent, microseconds since the epoch), `bare` (those recorded without properties).
    """
    words = [column.alias(name) for name, column in _words(coding).items()]
    return (
        _sent(events, coding.destinations)
        .groupBy("destination", _bucket(bucket_seconds), *words)
        .agg(
            F.count("*").alias("sent"),
            F.sum("size").alias("bytes"),
            F.max(F.unix_micros("ts")).alias("newest"),
            F.count_if(F.col("ps").isNull()).alias("bare"),
        )
    )


def sent_at(events: DataFrame, coding: Coding, destinations: Sequence[str], moments: Sequence[int]) -> DataFrame:
    """Single messages that were sent to these destinations at these moments (microseconds since the epoch), and their
    answers: columns `destination`, `us`, `msg_id` and the words."""
    words = [column.alias(name) for name, column in _words(coding).items()]
    return (
        _sent(events, destinations)
        .where(F.unix_micros("ts").isin(list(moments)))
        .select("destination", F.unix_micros("ts").alias("us"), "msg_id", *words)
    )


def is_recorded(question: Question) -> bool:
    """Whether what a selector asks for is recorded of messages."""
    try:
        _answer(question)
    except NotRecorded:
        return False
    return True


def _sent(events: DataFrame, destinations: Sequence[str]) -> DataFrame:
    return events.where((F.col("kind") == "enqueue") & F.col("destination").isin(list(destinations)))


def _bucket(seconds: int) -> Column:
    at = F.unix_seconds("ts")
    return (at - F.pmod(at, F.lit(seconds))).alias("bucket")


def _words(coding: Coding) -> Mapping[str, Column]:
    """Each word of the answers: that of the questions which the message's own destination asks."""
    found = {}
    for number, name in enumerate(coding.words):
        chosen: Column = F.lit(0).cast("bigint")
        for destinations, questions in coding.groups:
            asked = questions[number * PER_WORD : (number + 1) * PER_WORD]
            if asked and len(coding.groups) == 1:
                chosen = _packed(asked)
            elif asked:
                chosen = F.when(F.col("destination").isin(list(destinations)), _packed(asked)).otherwise(chosen)
        found[name] = chosen
    return found


def _packed(questions: Sequence[Question]) -> Column:
    digits = [F.shiftleft(_digit(each), 2 * place) for place, each in enumerate(questions)]
    return reduce(lambda left, right: left.bitwiseOR(right), digits)


def _digit(question: Question) -> Column:
    """0 for FALSE, 1 for TRUE, 2 for unknown, and for what is not recorded."""
    try:
        return F.coalesce(_answer(question).cast("bigint"), F.lit(_UNKNOWN).cast("bigint"))
    except NotRecorded:
        return F.lit(_UNKNOWN).cast("bigint")


def _answer(question: Question) -> Column:
    """The selector over the columns of a recorded message."""
    known = {name: column() for name, column in _COLUMNS.items()}
    known |= {name: F.lit(text) for name, text in question.headers.items()}
    return to_column(question.selector.tree, known=known)
