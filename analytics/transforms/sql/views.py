"""Build the views of SQL statements as Spark frames of the recorded events that a user may see.

Values of hidden rows are null before rows are filtered: Spark may evaluate a condition of a statement before a filter
of a view, and an error of it would name the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import WITHOUT_MESSAGE
from analytics.sql.access import LAST4, REMOVE, DataAccess, Patterns, PropertyMask
from analytics.sql.views import VIEWS
from analytics.transforms.event_filters import regex_of_name
from brokerapp.model.destination import NAMED_KINDS
from brokerapp.model.jms.properties import CLASH_PREFIX
from brokerapp.tracing.schema import ORDER

#: What stands where a value was.
COVER = "••••"
#: Characters left of a value by LAST4.
LAST_CHARACTERS = 4
#: Outcome of a copy, by the event that ended it.
OUTCOMES = {
    "ack": "acknowledged",
    "dead_letter": "dead_lettered",
    "drop": "dropped",
    "move": "moved",
    "remove": "removed",
}
OPEN = "open"
FAILED = ("dead_lettered", "dropped")
#: Events that say where a copy is: the last one of them decides on its outcome.
_STATES = (*OUTCOMES, "forward", "return", "delay")
_OF_COPIES = (*_STATES, "dispatch", "bridge_forward", "redeliver")
#: Numbers for the kinds of events, a power of two: codes are shifted by so many bits.
_KIND_BITS = 5
_KINDS = 1 << _KIND_BITS


def view_frames(events: DataFrame, access: DataAccess, names: Iterable[str]) -> dict[str, DataFrame]:
    """Return these views over events that have the columns of docs/data.md."""
    seen = visible_events(events, access)
    return {name: _BUILDERS[name](seen).select(*(each.name for each in VIEWS[name].columns)) for name in names}


def visible_events(events: DataFrame, access: DataAccess) -> DataFrame:
    """Return the view `events`: what the access shows of recorded events."""
    is_subscription = F.col("destination").startswith("subscription://")
    place = F.when(is_subscription, F.col("original")).otherwise(F.col("destination"))
    seen, sender_seen = matches(access.destinations, place), matches(access.destinations, F.col("original"))

    def shown(column: Column | str) -> Column:
        found = F.col(column) if isinstance(column, str) else column
        return found if seen is None else F.when(seen, found)

    is_cause = F.col("reason").isNotNull() & ~F.col("kind").isin(*WITHOUT_MESSAGE)
    covered = F.when(is_cause, F.lit(COVER)).otherwise(F.col("reason"))
    reason = covered if access.masks_reasons else F.col("reason")
    columns = {
        "ts": shown("ts"),
        "kind": shown("kind"),
        "message_id": shown("msg_id"),
        "destination": shown("destination"),
        "sent_to": shown("original" if sender_seen is None else F.when(sender_seen, F.col("original"))),
        "client": shown("consumer"),
        "size": shown("size"),
        "arrived_at": shown("born"),
        "reason": shown(reason),
        "properties": shown(_properties(access, place)),
        "numbers": shown(_numbers(access, place)),
        "weight": shown(F.col("weight").cast("long")),
        "broker": shown("broker"),
    }
    found = events.select(*(column.alias(name) for name, column in columns.items()))
    return found if seen is None else found.where(F.col("kind").isNotNull())


def matches(groups: Patterns, column: Column) -> Column | None:
    """Return whether a destination matches one pattern of each group; None if all do, as there are no groups."""
    # The queue of a fully qualified name is what a pattern is about, see Destination.physical.
    physical = F.regexp_replace(column, "^(?:queue|topic)://.*?::", "queue://")
    wanted = [reduce(or_, [physical.rlike(_regex(each)) for each in group], F.lit(False)) for group in groups]
    return F.coalesce(reduce(and_, wanted), F.lit(False)) if wanted else None


def _regex(pattern: str) -> str:
    kinds, _, name = pattern.rpartition("://")
    return f"^(?:{kinds or '|'.join(NAMED_KINDS)})://{regex_of_name(name)}$"


def _properties(access: DataAccess, place: Column) -> Column:
    shown = _where_visible(access, place, F.col("ps"))
    if any(each.action == REMOVE for each in access.masks):
        shown = F.map_filter(shown, lambda name, _: _by_mask(access, name, lambda mask: F.lit(mask.action != REMOVE)))
    if any(each.action != REMOVE for each in access.masks):
        shown = F.transform_values(
            shown, lambda name, value: _by_mask(access, name, lambda mask: _masked(mask, value), value)
        )
    return shown


def _numbers(access: DataAccess, place: Column) -> Column:
    shown = _where_visible(access, place, F.col("pn"))
    if access.masks:
        shown = F.map_filter(shown, lambda name, _: _by_mask(access, name, lambda _: F.lit(False)))
    return shown


def _where_visible(access: DataAccess, place: Column, column: Column) -> Column:
    if access.properties is None:
        return F.when(F.lit(False), column)
    seen = matches(access.properties, place)
    return column if seen is None else F.when(seen, column)


def _by_mask(
    access: DataAccess, name: Column, value: Callable[[PropertyMask], Column], unmasked: Column | None = None
) -> Column:
    """Return the value for the first mask that matches the name of a property, else `unmasked` (default: true)."""
    found = F.lit(True) if unmasked is None else unmasked
    said = F.regexp_replace(name, f"^{CLASH_PREFIX.replace('.', '[.]')}", "")
    for mask in reversed(access.masks):
        regex = f"(?is){mask.regex}"
        found = F.when(name.rlike(regex) | said.rlike(regex), value(mask)).otherwise(found)
    if not access.spared:
        return found
    return F.when(name.isin(*access.spared), F.lit(True) if unmasked is None else unmasked).otherwise(found)


def _masked(mask: PropertyMask, value: Column) -> Column:
    if mask.action != LAST4:
        return F.lit(mask.replacement)
    end = F.concat(F.lit(COVER), F.right(value, F.lit(LAST_CHARACTERS)))
    return F.when(F.length(value) > LAST_CHARACTERS, end).otherwise(F.lit(COVER))


def _messages(events: DataFrame) -> DataFrame:
    sent = events.where(F.col("kind") == "enqueue")
    return sent.withColumnsRenamed({"ts": "sent_at", "client": "producer"})


def _deliveries(events: DataFrame) -> DataFrame:
    """Combine the events of each copy, in the order of their times; at the same time in that of their kinds."""
    kind, code = F.col("kind"), F.unix_micros("ts") * _KINDS + _order_of(F.col("kind"))
    is_topic = F.col("destination").startswith("topic://")
    settled = kind.isin("dispatch", "bridge_forward", "redeliver", *OUTCOMES) & F.col("client").isNotNull()
    copies = (
        events.where(kind.isin(*_OF_COPIES))
        .withColumn("subscriber", F.when(is_topic, F.coalesce("client", F.lit(""))).otherwise(F.lit("")))
        .groupBy("broker", "message_id", "destination", "subscriber")
        .agg(
            F.min("sent_to").alias("sent_to"),
            F.min("arrived_at").alias("arrived_at"),
            F.min(F.when(kind == "forward", F.col("ts"))).alias("stored_at"),
            F.min(F.when(kind.isin("dispatch", "bridge_forward"), F.col("ts"))).alias("dispatched_at"),
            F.max(F.when(kind == "ack", F.col("ts"))).alias("acknowledged_at"),
            F.max(F.when(kind.isin(*_STATES), code)).alias("state"),
            F.max_by("reason", F.when(kind.isin("dead_letter", "drop"), code)).alias("cause"),
            F.max_by("client", F.when(settled, code)).alias("consumer"),
            F.count(F.when(kind.isin("dispatch", "bridge_forward"), 1)).alias("dispatches"),
            F.count(F.when(kind == "redeliver", 1)).alias("redeliveries"),
            F.max("size").alias("size"),
            F.max("weight").alias("weight"),
        )
    )
    outcome, last = F.lit(OPEN), F.col("state") % _KINDS
    for name, text in OUTCOMES.items():
        outcome = F.when(last == ORDER.index(name), F.lit(text)).otherwise(outcome)
    micros = F.unix_micros("acknowledged_at") - F.unix_micros("arrived_at")
    return (
        copies.withColumn("outcome", outcome)
        .withColumn("ended_at", F.when(F.col("outcome") != OPEN, F.timestamp_micros(F.shiftright("state", _KIND_BITS))))
        .withColumn("reason", F.when(F.col("outcome").isin(*FAILED), F.col("cause")))
        .withColumn("latency_ms", micros / 1000)
    )


def _order_of(kind: Column) -> Column:
    found = F.lit(0)
    for name in _OF_COPIES:
        found = F.when(kind == name, F.lit(ORDER.index(name))).otherwise(found)
    return found


def _dead_letters(events: DataFrame) -> DataFrame:
    found = events.where(F.col("kind") == "dead_letter")
    return found.withColumnsRenamed({"ts": "dead_lettered_at", "client": "consumer"})


def _depths(events: DataFrame) -> DataFrame:
    found = events.where(F.col("kind") == "depth")
    return found.withColumnsRenamed({"ts": "recorded_at", "size": "messages", "reason": "cause"})


_BUILDERS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "messages": _messages,
    "deliveries": _deliveries,
    "dead_letters": _dead_letters,
    "depths": _depths,
    "events": lambda events: events,
}
