"""What a destination policy can say: one table with a row for each option, its words, unit and default. Pure.

Forms, lists and differences are made from it. An option that has no row yet is shown by its name all the same.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from brokerapp.config.parsing.attributes import xml_spelling
from brokerapp.model.definitions import (
    MOST_ONE_IN,
    DeadLetterStrategy,
    PolicyEntry,
    RecoveryPolicy,
    RedeliveryPolicy,
    RedeliverySettings,
)
from brokerapp.model.policy_strategies import (
    MessageEviction,
    NetworkBridgeFilter,
    PendingMessageLimit,
    SlowConsumerStrategy,
)


@dataclass(frozen=True, slots=True)
class PolicyOption:
    """One field of a record: in which section it stands, what it does, in which unit, what holds when it is not set."""

    field: str
    explanation: str
    default: str = ""
    unit: str = ""
    least: int | None = None
    choices: tuple[str, ...] = ()
    most: int | None = None
    section: str = ""

    @property
    def name(self) -> str:
        """What ActiveMQ calls it."""
        return xml_spelling(self.field)


def _section(title: str, *rows: tuple) -> tuple[PolicyOption, ...]:
    return tuple(PolicyOption(field, words, *rest, section=title) for field, words, *rest in rows)


_POLICY_ROWS: tuple[PolicyOption, ...] = (
    *_section(
        "Consumers",
        ("queue_prefetch", "Messages of a queue a consumer may hold unacknowledged.", "1000", "messages"),
        ("topic_prefetch", "The same for subscribers of a topic.", "32767", "messages"),
        ("durable_topic_prefetch", "The same for durable subscriptions.", "100", "messages"),
        ("queue_browser_prefetch", "Messages a browser is given before it acknowledges.", "500", "messages"),
        ("use_consumer_priority", "Consumers with a higher priority are given messages first.", "on"),
        ("all_consumers_exclusive_by_default", "One consumer gets all messages; others wait to take over.", "off"),
        ("strict_order_dispatch", "One consumer is filled before the next gets any: no turns.", "off"),
        (
            "consumers_before_dispatch_starts",
            "Consumers there must be before the first message.",
            "0",
            "consumers",
        ),
        ("time_before_dispatch_starts", "How long the first consumer waits for others.", "0", "ms"),
    ),
    *_section(
        "Order and groups",
        ("prioritized_messages", "Messages with a higher priority overtake others.", "off"),
        (
            "message_group_map_factory_type",
            "How owners of message groups are kept: cached, bucket?bucketCount=64, or simple.",
            "cached",
        ),
    ),
    *_section(
        "Limits and flow control",
        (
            "memory_limit",
            "Bytes in memory of a topic, or a queue with vmQueueCursor.",
            "no limit",
            "bytes",
        ),
        (
            "store_limit",
            "Bytes of stored messages of each queue, and of each named subscription. Senders beyond it wait.",
            "no limit",
            "bytes",
        ),
        (
            "queue_cursor",
            "vmQueueCursor lets memoryLimit bound all that a queue holds; other cursors of ActiveMQ do not.",
            "none",
            "",
            None,
            ("vmQueueCursor", "fileQueueCursor", "storeCursor"),
        ),
        ("producer_flow_control", "Senders to a full queue wait. Off: the queue has no limit of its own.", "on"),
        ("send_fail_if_no_space", "Senders to a full queue get an error at once instead of waiting.", "off"),
        ("send_fail_if_no_space_after_timeout", "They wait so long before they get the error.", "for ever", "ms"),
        ("blocked_producer_warning_interval", "Between two warnings about senders that wait.", "30000", "ms"),
        ("max_destinations", "Destinations that may match this pattern; below 0: any number.", "any", "destinations"),
    ),
    *_section(
        "Persistence",
        (
            "force_persistency",
            "Messages sent there are persistent (on) or not (off), whatever their senders say.",
            "as sent",
        ),
    ),
    *_section(
        "Expiry and cleaning up",
        ("expire_messages_period", "Between two looks for expired messages nobody reads; 0: none.", "30000", "ms"),
        ("max_expire_page_size", "Messages looked at in one step of that.", "400", "messages"),
        ("gc_inactive_destinations", "Destinations that nobody uses are removed.", "off"),
        ("inactive_timeout_before_gc", "When they were idle for so long.", "60000", "ms"),
        ("auto_create", "Clients create destinations by naming them. Off: operators only.", "on"),
    ),
    *_section(
        "Recording",
        (
            "record_one_in",
            "One message in so many is recorded, with all that happens to it; 1: every one, 0: none.",
            "1",
            "messages",
            0,
            (),
            MOST_ONE_IN,
        ),
        ("record_properties", "Names of the properties that are recorded, with commas. Bodies never are.", "all"),
    ),
    *_section(
        "Topics",
        ("always_retroactive", "Every new subscriber first gets what the topic remembers.", "off"),
    ),
    *_section(
        "Advisories",
        ("advisory_for_consumed", "Tell of each acknowledged message.", "off"),
        ("advisory_for_delivery", "Tell of each message that arrived.", "off"),
        ("advisory_for_dispatched", "Tell of each message given to a consumer.", "off"),
        ("advisory_for_discarding_messages", "Tell of messages dropped for slow subscribers.", "off"),
        ("advisory_for_fast_producers", "Tell of producers that have to wait.", "off"),
        ("advisory_for_slow_consumers", "Tell of consumers that do not keep up.", "off"),
        ("advisory_when_full", "Tell when a limit is reached.", "off"),
        ("send_advisory_if_no_consumers", "Tell of messages to topics that nobody hears.", "off"),
        ("include_body_for_advisory", "Such messages carry the body of the one they tell of.", "off"),
    ),
)

#: Fields of a PolicyEntry that hold a record of their own: their title, the record, the kinds it comes in.
NESTED: dict[str, tuple[str, type, dict[str, str]]] = {
    "dead_letter": (
        "Dead letters",
        DeadLetterStrategy,
        {
            "shared": "One queue for all",
            "individual": "A queue for each destination",
            "discarding": "Failed messages are dropped",
        },
    ),
    "recovery": (
        "What topics remember",
        RecoveryPolicy,
        {
            "none": "Nothing",
            "lastImage": "The last message",
            "fixedCount": "The last messages, by number",
            "fixedSized": "The last messages, by bytes",
            "timed": "The messages of a span of time",
        },
    ),
    "pending_message_limit": (
        "How many messages may wait for a subscriber of a topic",
        PendingMessageLimit,
        {"constant": "A constant number", "prefetchRate": "A multiple of its prefetch"},
    ),
    "message_eviction": (
        "Which of them go when there are more",
        MessageEviction,
        {
            "oldest": "The oldest",
            "lowestPriority": "The oldest of the lowest priority",
            "uniqueProperty": "Those another one with the same value of a property follows",
        },
    ),
    "slow_consumer": (
        "Slow consumers are cut off",
        SlowConsumerStrategy,
        {
            "abortSlowConsumer": "When they cannot be given what waits for them",
            "abortSlowAckConsumer": "When they have not acknowledged for a while",
        },
    ),
    "network_bridge_filter": (
        "What bridges to other brokers may take from a queue",
        NetworkBridgeFilter,
        {"conditional": "By these conditions"},
    ),
}

_NAMES_OF_INDIVIDUAL = (
    "queue_prefix", "topic_prefix", "queue_suffix", "topic_suffix", "use_queue_for_queue_messages",
    "use_queue_for_topic_messages", "destination_per_durable_subscriber",
)  # fmt: skip
#: Fields of nested records that only some of their kinds have.
ONLY_FOR: dict[tuple[str, str], tuple[str, ...]] = {
    ("dead_letter", "dead_letter_queue"): ("shared",),
    **{("dead_letter", name): ("individual",) for name in _NAMES_OF_INDIVIDUAL},
    ("recovery", "maximum_size"): ("fixedCount", "fixedSized"),
    ("recovery", "recover_duration"): ("timed",),
    ("pending_message_limit", "limit"): ("constant",),
    ("pending_message_limit", "multiplier"): ("prefetchRate",),
    ("message_eviction", "property_name"): ("uniqueProperty",),
    ("slow_consumer", "max_time_since_last_ack"): ("abortSlowAckConsumer",),
    ("slow_consumer", "ignore_idle_consumers"): ("abortSlowAckConsumer",),
}

_NESTED_ROWS: dict[str, tuple[PolicyOption, ...]] = {
    "dead_letter": _section(
        "",
        ("dead_letter_queue", "The queue all failed messages go to.", "ActiveMQ.DLQ"),
        ("queue_prefix", "Stands before the name of a queue whose messages failed.", "ActiveMQ.DLQ.Queue."),
        ("queue_suffix", "Stands behind it."),
        ("topic_prefix", "Stands before the name of a topic whose messages failed.", "ActiveMQ.DLQ.Topic."),
        ("topic_suffix", "Stands behind it."),
        ("use_queue_for_queue_messages", "Failed messages of queues are kept in a queue.", "on"),
        ("use_queue_for_topic_messages", "Failed messages of topics are kept in a queue.", "on"),
        ("destination_per_durable_subscriber", "Durable subscriptions have dead-letter queues of their own.", "off"),
        ("process_expired", "Expired messages are dead letters too. Off: they are dropped.", "on"),
        ("process_non_persistent", "Non-persistent messages are dead letters too. Off: they are dropped.", "off"),
        ("enable_audit", "A message is kept once in its dead-letter queue, however often it fails.", "on"),
        ("expiration", "Dead letters expire after so long; 0: never.", "0", "ms"),
    ),
    "recovery": _section(
        "",
        ("maximum_size", "Messages, or bytes, that are remembered.", "100 messages, 6553600 bytes", "", 1),
        ("recover_duration", "How far back they go.", "60000", "ms", 1),
    ),
    "pending_message_limit": _section(
        "",
        ("limit", "Messages that may wait; below 0: as many as the broker allows at all.", "-1", "messages"),
        ("multiplier", "Times the prefetch of the subscriber.", "0.5"),
    ),
    "message_eviction": _section(
        "",
        ("property_name", "The property whose values are compared."),
        ("evict_expired_messages_high_watermark", "When so many wait, expired ones go first.", "1000", "messages"),
    ),
    "slow_consumer": _section(
        "",
        ("check_period", "Between two looks.", "30000", "ms"),
        ("max_slow_count", "Cut off when seen slow so many times; not above 0: does not count.", "-1", "times"),
        ("max_slow_duration", "Cut off when slow for so long; not above 0: does not count.", "30000", "ms"),
        ("abort_connection", "The whole connection ends, not the subscription only.", "off"),
        ("ignore_network_consumers", "Bridges to other brokers are left alone.", "on"),
        ("max_time_since_last_ack", "Slow is who has not acknowledged for so long.", "30000", "ms"),
        ("ignore_idle_consumers", "Those that hold nothing to acknowledge are not slow.", "on"),
    ),
    "network_bridge_filter": _section(
        "",
        (
            "replay_when_no_consumers",
            "Messages may go back to the broker they came from when nobody consumes them here any more.",
            "off",
        ),
        ("selector_aware", "Consumers whose selector does not take a message do not keep it here.", "off"),
        ("replay_delay", "They go back when they were here for so long.", "0", "ms", 0),
        ("rate_limit", "Messages a bridge takes in one span of time; 0: any number.", "0", "messages", 0),
        ("rate_duration", "The span of time.", "1000", "ms", 1),
    ),
}

REDELIVERY_ROWS = _section(
    "Redelivery",
    ("maximum_redeliveries", "After so many a message that fails again is given up; -1: never.", "6", "times"),
    ("initial_redelivery_delay", "Before the first one.", "1000", "ms"),
    ("redelivery_delay", "Before each further one.", "1000", "ms"),
    ("use_exponential_back_off", "Each delay is the one before, multiplied.", "off"),
    ("back_off_multiplier", "By this.", "5.0"),
    ("maximum_redelivery_delay", "No delay is longer; -1: no limit.", "-1", "ms"),
    ("use_collision_avoidance", "Delays differ at random, so that messages do not come back all at once.", "off"),
    ("collision_avoidance_percent", "By up to so much.", "15", "percent"),
)

SWITCH_ROWS = _section(
    "Messages that are given up",
    ("send_to_dlq_if_max_retries_exceeded", "They are dead letters. Off: they are dropped.", "on"),
    ("fallback_to_dead_letter", "What fails where no policy matches is a dead letter. Off: it is dropped.", "on"),
)

#: Of each record, its rows by field.
_ROWS: dict[type, dict[str, PolicyOption]] = {
    PolicyEntry: {each.field: each for each in _POLICY_ROWS},
    RedeliveryPolicy: {each.field: each for each in REDELIVERY_ROWS},
    RedeliverySettings: {each.field: each for each in SWITCH_ROWS},
    **{NESTED[name][1]: {each.field: each for each in rows} for name, rows in _NESTED_ROWS.items()},
}
#: Fields that are no options: what the policy is for, and what has a form of its own.
_NOT_OPTIONS = frozenset({"destination", "options", "kind", "policies", *NESTED})


def options_of(record: type) -> list[PolicyOption]:
    """The options of a record in the order of its table, those without a row last, by their names."""
    rows = _ROWS[record]
    known = {each.name: each for each in fields(record) if each.name not in _NOT_OPTIONS}
    rest = [
        PolicyOption(name, "", _default_text(each.default), section="Others")
        for name, each in known.items()
        if name not in rows
    ]
    return [row for name, row in rows.items() if name in known] + rest


def _default_text(value: Any) -> str:
    if value is MISSING or value is None:
        return ""
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
