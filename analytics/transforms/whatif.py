"""Count recorded messages by destination and by the answers of selectors, for what-if analyses.

A message's answers are packed into integers, two bits each, so that one aggregate over few columns counts all classes:
wide aggregates, and rows for each target, were slower (docs/data.md). Each property is looked up once for a message,
whatever the number of conditions: looked up in each of 20 conditions, the properties took three quarters of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import SERVED, WITHOUT_MESSAGE
from analytics.transforms.aggregates import by_kind, last, messages, size_of
from analytics.transforms.depth_changes import never_stored
from analytics.transforms.selector_column import NotRecorded, to_column
from analytics.transforms.text_selectors import Properties
from analytics.whatif.answer_encoding import ANSWERS_PER_WORD, AnswerEncoding
from analytics.whatif.conditions import SelectorCondition
from brokerapp.model.jms.form import JMS_HEADER

#: Headers of a message that are columns of the events, as texts; see docs/data.md.
_COLUMNS = {
    "message-id": lambda: F.col("msg_id"),
    "timestamp": lambda: F.unix_millis("born").cast("string"),
}
_UNKNOWN = 2


def flows(events: DataFrame, bucket_seconds: int) -> DataFrame:
    """Count the messages that were sent to, stored at and removed from each destination, by bucket.

    Columns: `destination`, `bucket` (start, seconds since the epoch), `sent`, `bytes` (of `sent`), `rolled_back` (not
    in `sent`), `stored`, `dispatched`, `left` (acknowledged, dead-lettered, dropped or delayed), `busy` (seconds from
    the first to the last of these), `newest` (time of the last message sent, microseconds since the epoch), `weight`
    (the greatest), `events`.
    """
    counted = by_kind(
        events.where(~F.col("kind").isin(*WITHOUT_MESSAGE)),
        "destination",
        _bucket(bucket_seconds),
        never=_sum(never_stored(), F.col("weight")),
        most=F.max("weight"),
        first=F.min("ts"),
    )
    first_left = F.min(F.when(F.col("kind").isin(*SERVED), F.col("first")))
    return counted.groupBy("destination", "bucket").agg(
        messages("enqueue").alias("sent"),
        size_of("enqueue").alias("bytes"),
        messages("rollback").alias("rolled_back"),
        messages("forward").alias("stored"),
        messages("dispatch").alias("dispatched"),
        (messages(*SERVED) - F.sum("never")).alias("left"),
        ((F.unix_micros(last(*SERVED)) - F.unix_micros(first_left)) / 1e6).alias("busy"),
        F.unix_micros(last("enqueue")).alias("newest"),
        F.max("most").alias("weight"),
        F.sum("events").alias("events"),
    )


def jms_forms(events: DataFrame, destinations: Sequence[str]) -> DataFrame:
    """Select the different JMS forms of the messages sent to these destinations: column `form`."""
    form = F.col("ps")[JMS_HEADER].alias("form")
    return _sent(events, destinations).select(form).where(F.col("form").isNotNull()).distinct()


def classes(events: DataFrame, coding: AnswerEncoding, bucket_seconds: int, forms: Sequence[str] = ()) -> DataFrame:
    """Count the messages sent to destinations with conditions, by destination, bucket and answers.

    `forms` are the JMS forms of messages: selectors read their properties by type.

    Columns: `destination`, `bucket`, the words of the answers (AnswerEncoding), `sent`, `bytes`, `newest` (time of the
    last message, microseconds since the epoch), `bare` (messages recorded without properties).
    """
    texts, numbers = PropertyColumns("ps"), PropertyColumns("pn")
    words = [column.alias(name) for name, column in _Conditions(texts, numbers, forms).words(coding).items()]
    return (
        _sent(events, coding.destinations)
        .select("*", *texts.columns(), *numbers.columns())
        .groupBy("destination", _bucket(bucket_seconds), *words)
        .agg(
            F.sum("weight").alias("sent"),
            F.sum(F.col("size") * F.col("weight")).alias("bytes"),
            F.max(F.unix_micros("ts")).alias("newest"),
            _sum(F.col("ps").isNull(), F.col("weight")).alias("bare"),
        )
    )


def sent_at(events: DataFrame, destinations: Sequence[str], moments: Sequence[int]) -> DataFrame:
    """Select the messages that were sent to these destinations at these times (microseconds since the epoch).

    Columns: `destination`, `us`, `msg_id`, `born_ms`, `ps`.
    """
    return (
        _sent(events, destinations)
        .where(F.col("ts").isin([F.timestamp_micros(F.lit(each)) for each in moments]))  # readers skip row groups by it
        .select("destination", F.unix_micros("ts").alias("us"), "msg_id", F.unix_millis("born").alias("born_ms"), "ps")
    )


def is_recorded(condition: SelectorCondition) -> bool:
    """Return whether all properties and headers that a selector uses are recorded."""
    try:
        _Conditions(PropertyColumns("ps"), PropertyColumns("pn")).answer(condition)
    except NotRecorded:
        return False
    return True


def _sum(condition: Column, value: Column) -> Column:
    return F.sum(F.when(condition, value).otherwise(0))


def _sent(events: DataFrame, destinations: Sequence[str]) -> DataFrame:
    return events.where((F.col("kind") == "enqueue") & F.col("destination").isin(list(destinations)))


def _bucket(seconds: int) -> Column:
    at = F.unix_seconds("ts")
    return (at - F.pmod(at, F.lit(seconds))).alias("bucket")


class PropertyColumns(Mapping[str, Column]):
    """Gives each property of a map that is asked for a column of its own, which `columns` looks up."""

    def __init__(self, properties: str) -> None:
        self._map, self._names = properties, dict[str, str]()

    def __getitem__(self, name: str) -> Column:
        return F.col(self._names.setdefault(name, f"{self._map}_{len(self._names)}"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def columns(self) -> list[Column]:
        """Return the columns of the properties that were asked for, for a projection before they are used.

        Not `map[name]`: Spark takes that for cheap and moves it into each expression that uses it.
        """
        return [F.element_at(self._map, F.lit(name)).alias(column) for name, column in self._names.items()]


@dataclass(frozen=True, slots=True)
class _Conditions:
    """Builds the columns of conditions over the properties of messages of these forms."""

    texts: Properties
    numbers: Properties
    forms: Sequence[str] = ()

    def words(self, coding: AnswerEncoding) -> Mapping[str, Column]:
        """Return the columns of the encoded answers to the conditions of each message's destination."""
        found = {}
        for number, name in enumerate(coding.words):
            chosen: Column = F.lit(0).cast("bigint")
            for destinations, conditions in coding.groups:
                asked = conditions[number * ANSWERS_PER_WORD : (number + 1) * ANSWERS_PER_WORD]
                if asked:
                    is_sent_there = F.col("destination").isin(list(destinations))
                    chosen = F.when(is_sent_there, self._packed(asked)).otherwise(chosen)
            found[name] = chosen
        return found

    def _packed(self, conditions: Sequence[SelectorCondition]) -> Column:
        digits = [F.shiftleft(self._digit(each), 2 * place) for place, each in enumerate(conditions)]
        return reduce(lambda left, right: left.bitwiseOR(right), digits)

    def _digit(self, condition: SelectorCondition) -> Column:
        """Return 0 for FALSE, 1 for TRUE, 2 for unknown and for conditions on unrecorded data."""
        try:
            return F.coalesce(self.answer(condition).cast("bigint"), F.lit(_UNKNOWN).cast("bigint"))
        except NotRecorded:
            return F.lit(_UNKNOWN).cast("bigint")

    def answer(self, condition: SelectorCondition) -> Column:
        """Return the selector over the columns of a recorded message. Raises NotRecorded."""
        known = {name: column() for name, column in _COLUMNS.items()}
        known |= {name: F.lit(text) for name, text in condition.headers.items()}
        return to_column(condition.selector, self.texts, self.numbers, known, self.forms)
