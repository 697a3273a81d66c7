"""Define the views that SQL statements read: one table of names, types and meanings. Pure.

The Spark frames (transforms/sql/views.py), the names that a statement may use (statement.py), the page and docs/sql.md
follow it.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Grows when a view or a column is added, removed or changes its meaning; stands in each result.
SCHEMA_VERSION = 1

TEXT, TIME, WHOLE, NUMBER = "string", "timestamp", "bigint", "double"
TEXTS, NUMBERS = "map<string,string>", "map<string,double>"


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view: its type in Spark, and its meaning in the words of docs/sql.md."""

    name: str
    type: str
    meaning: str
    is_optional: bool = False  #: whether it may be null

    @property
    def type_in_words(self) -> str:
        """Return the type as pages and docs/sql.md name it."""
        return self.type + (", or null" if self.is_optional else "")


@dataclass(frozen=True, slots=True)
class SqlView:
    """A view: its name, what one row of it is, and its columns."""

    name: str
    row: str
    columns: tuple[ViewColumn, ...]


_MESSAGE_ID = ViewColumn("message_id", TEXT, "message-id; all copies of a message share it")
_BROKER = ViewColumn("broker", TEXT, "name of the broker")
_SIZE = ViewColumn("size", WHOLE, "bytes of the body")
_WEIGHT = ViewColumn(
    "weight", WHOLE, "number of messages that the row stands for: 1, or N if one message in N is recorded"
)
_ARRIVED = ViewColumn("arrived_at", TIME, "time at which the message reached the broker")
_SENT_TO = ViewColumn("sent_to", TEXT, "destination that the producer sent to; null if you cannot view it", True)

MESSAGES = SqlView(
    "messages",
    "one message that a producer sent within the time range",
    (
        _MESSAGE_ID,
        ViewColumn("sent_at", TIME, "time at which it arrived; in a transaction, time of the commit"),
        ViewColumn("destination", TEXT, "destination that it was sent to: `queue://orders`, `topic://prices`"),
        ViewColumn("producer", TEXT, "client ID of the producer", True),
        _SIZE,
        ViewColumn(
            "properties",
            TEXTS,
            "headers and properties, by name; null without permission to browse messages there",
            True,
        ),
        ViewColumn("numbers", NUMBERS, "those properties that are decimal numbers, as numbers", True),
        _WEIGHT,
        _BROKER,
    ),
)
DELIVERIES = SqlView(
    "deliveries",
    "one copy of a message at a queue or durable subscription, or at one subscriber of a topic, with its events in the"
    " time range",
    (
        _MESSAGE_ID,
        ViewColumn("destination", TEXT, "queue, topic or `subscription://CLIENT:NAME` of the copy"),
        _SENT_TO,
        _ARRIVED,
        ViewColumn("stored_at", TIME, "time at which the copy was first stored there", True),
        ViewColumn("dispatched_at", TIME, "time at which it was first sent to a consumer", True),
        ViewColumn("acknowledged_at", TIME, "time of its last acknowledgement", True),
        ViewColumn("ended_at", TIME, "time at which its outcome was reached", True),
        ViewColumn(
            "outcome",
            TEXT,
            "`acknowledged`, `dead_lettered`, `dropped`, `moved`, `removed`, or `open` at the end of the time range",
        ),
        ViewColumn("reason", TEXT, "cause of a dead letter or drop", True),
        ViewColumn("consumer", TEXT, "client ID of the consumer that it was last sent to, or that settled it", True),
        ViewColumn("dispatches", WHOLE, "how often it was sent to a consumer"),
        ViewColumn("redeliveries", WHOLE, "how often it was returned, to be sent again"),
        ViewColumn("latency_ms", NUMBER, "milliseconds from `arrived_at` to `acknowledged_at`", True),
        _SIZE,
        _WEIGHT,
        _BROKER,
    ),
)
DEAD_LETTERS = SqlView(
    "dead_letters",
    "one copy that was moved to a dead-letter queue",
    (
        _MESSAGE_ID,
        ViewColumn("dead_lettered_at", TIME, "time of the move"),
        ViewColumn("destination", TEXT, "destination where the copy failed"),
        _SENT_TO,
        ViewColumn("reason", TEXT, "cause", True),
        ViewColumn("consumer", TEXT, "client ID of the last consumer", True),
        _ARRIVED,
        _SIZE,
        _WEIGHT,
        _BROKER,
    ),
)
DEPTHS = SqlView(
    "depths",
    "one recorded depth: every minute of each queue and subscription whose depth changed, at each full hour of all that"
    " hold messages",
    (
        ViewColumn("recorded_at", TIME, "time just after the depth was read"),
        ViewColumn("destination", TEXT, "queue or subscription"),
        ViewColumn("messages", WHOLE, "messages that it held"),
        ViewColumn("cause", TEXT, "`changed`, `all` (full hour, start or stop of a node) or `start` of the broker"),
        _BROKER,
    ),
)
EVENTS = SqlView(
    "events",
    "one recorded event, see [Recorded traffic](data.md#columns)",
    (
        ViewColumn("ts", TIME, "time of the event"),
        ViewColumn("kind", TEXT, "kind of the event"),
        ViewColumn("message_id", TEXT, "message-id; empty for `depth`, `subscribe` and `unsubscribe`"),
        ViewColumn("destination", TEXT, "destination of the event"),
        _SENT_TO,
        ViewColumn("client", TEXT, "the producer, or the consumer", True),
        ViewColumn("size", WHOLE, "bytes of the body, or number of messages or clients, by kind"),
        _ARRIVED,
        ViewColumn("reason", TEXT, "cause of a dead letter, a drop or an expiration", True),
        ViewColumn("properties", TEXTS, "as in `messages`, on `enqueue` only", True),
        ViewColumn("numbers", NUMBERS, "as in `messages`, on `enqueue` only", True),
        _WEIGHT,
        _BROKER,
    ),
)
VIEWS: dict[str, SqlView] = {each.name: each for each in (MESSAGES, DELIVERIES, DEAD_LETTERS, DEPTHS, EVENTS)}
