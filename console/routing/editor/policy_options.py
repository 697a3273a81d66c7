"""The options of policies: one table with the explanation, unit and default of each. Pure.

Forms, lists and diffs are generated from it. An option without a row is shown by its name.
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
    """An option: its section, explanation, unit and default."""

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
        """Return ActiveMQ's name of the option."""
        return xml_spelling(self.field)


def _section(title: str, *rows: tuple) -> tuple[PolicyOption, ...]:
    return tuple(PolicyOption(field, words, *rest, section=title) for field, words, *rest in rows)


_POLICY_ROWS: tuple[PolicyOption, ...] = (
    *_section(
        "Consumers",
        ("queue_prefetch", "Prefetch of queue consumers: maximum messages in flight.", "1000", "messages"),
        ("topic_prefetch", "Prefetch of topic subscribers.", "32767", "messages"),
        ("durable_topic_prefetch", "Prefetch of durable subscriptions.", "100", "messages"),
        ("queue_browser_prefetch", "Prefetch of queue browsers.", "500", "messages"),
        ("use_consumer_priority", "Dispatch to consumers with a higher priority first.", "on"),
        (
            "all_consumers_exclusive_by_default",
            "Dispatch to one consumer only; others take over when it disconnects.",
            "off",
        ),
        ("strict_order_dispatch", "Fill the prefetch of one consumer before the next, instead of round robin.", "off"),
        (
            "consumers_before_dispatch_starts",
            "Number of consumers required before dispatch starts.",
            "0",
            "consumers",
        ),
        ("time_before_dispatch_starts", "Delay of dispatch after the first consumer connects.", "0", "ms"),
    ),
    *_section(
        "Order and groups",
        ("prioritized_messages", "Dispatch messages with a higher priority first.", "off"),
        (
            "message_group_map_factory_type",
            "Map of message groups to consumers: cached, bucket?bucketCount=64 or simple.",
            "cached",
        ),
    ),
    *_section(
        "Limits and flow control",
        (
            "memory_limit",
            "Memory limit of a topic, or of a queue with vmQueueCursor.",
            "unlimited",
            "bytes",
        ),
        (
            "store_limit",
            "Store limit of each queue and subscription. Producers are blocked at the limit.",
            "unlimited",
            "bytes",
        ),
        (
            "queue_cursor",
            "With vmQueueCursor, memoryLimit applies to the whole queue; not with other cursors.",
            "none",
            "",
            None,
            ("vmQueueCursor", "fileQueueCursor", "storeCursor"),
        ),
        ("producer_flow_control", "Block producers of a full queue. Off: the queue has no limit of its own.", "on"),
        ("send_fail_if_no_space", "Reject messages to a full queue immediately instead of blocking.", "off"),
        ("send_fail_if_no_space_after_timeout", "Time to block before the error.", "unlimited", "ms"),
        ("blocked_producer_warning_interval", "Interval between two warnings about blocked producers.", "30000", "ms"),
        ("max_destinations", "Maximum destinations of this pattern. Below 0: unlimited.", "unlimited", "destinations"),
    ),
    *_section(
        "Persistence",
        (
            "force_persistency",
            "Store messages as persistent (on) or non-persistent (off), regardless of the producer.",
            "as sent",
        ),
    ),
    *_section(
        "Expiration and cleanup",
        ("expire_messages_period", "Interval of scans for expired messages. 0: no scans.", "30000", "ms"),
        ("max_expire_page_size", "Maximum messages per scan.", "400", "messages"),
        ("gc_inactive_destinations", "Delete unused destinations.", "off"),
        ("inactive_timeout_before_gc", "Idle time before deletion.", "60000", "ms"),
        ("auto_create", "Clients create destinations by using them. Off: operators only.", "on"),
    ),
    *_section(
        "Trace recording",
        (
            "record_one_in",
            "Record one of this number of messages, with all its events. 1: all, 0: none.",
            "1",
            "messages",
            0,
            (),
            MOST_ONE_IN,
        ),
        ("record_properties", "Properties to record, separated by commas. Bodies are never recorded.", "all"),
    ),
    *_section(
        "Topics",
        ("always_retroactive", "Send retained messages to every new subscriber.", "off"),
    ),
    *_section(
        "Advisories",
        ("advisory_for_consumed", "Send an advisory for each acknowledged message.", "off"),
        ("advisory_for_delivery", "Send an advisory for each enqueued message.", "off"),
        ("advisory_for_dispatched", "Send an advisory for each dispatched message.", "off"),
        ("advisory_for_discarding_messages", "Send an advisory for messages discarded for slow subscribers.", "off"),
        ("advisory_for_fast_producers", "Send an advisory for blocked producers.", "off"),
        ("advisory_for_slow_consumers", "Send an advisory for slow consumers.", "off"),
        ("advisory_when_full", "Send an advisory when a limit is reached.", "off"),
        ("send_advisory_if_no_consumers", "Send an advisory for messages to topics without consumers.", "off"),
        ("include_body_for_advisory", "Include the body of the message in advisories.", "off"),
    ),
)

#: Fields of a PolicyEntry with nested records: title, record, kinds.
NESTED: dict[str, tuple[str, type, dict[str, str]]] = {
    "dead_letter": (
        "Dead letters",
        DeadLetterStrategy,
        {
            "shared": "Shared queue",
            "individual": "Individual queues",
            "discarding": "Discard failed messages",
        },
    ),
    "recovery": (
        "Subscription recovery",
        RecoveryPolicy,
        {
            "none": "None",
            "lastImage": "Last message",
            "fixedCount": "Last messages, by count",
            "fixedSized": "Last messages, by size",
            "timed": "Messages of a time range",
        },
    ),
    "pending_message_limit": (
        "Pending messages of topic subscribers",
        PendingMessageLimit,
        {"constant": "Constant", "prefetchRate": "Multiple of the prefetch"},
    ),
    "message_eviction": (
        "Eviction of pending messages",
        MessageEviction,
        {
            "oldest": "Oldest",
            "lowestPriority": "Oldest of the lowest priority",
            "uniqueProperty": "Older ones with the same value of a property",
        },
    ),
    "slow_consumer": (
        "Slow consumers",
        SlowConsumerStrategy,
        {
            "abortSlowConsumer": "Abort when their prefetch is exhausted",
            "abortSlowAckConsumer": "Abort when they have not acknowledged for a time",
        },
    ),
    "network_bridge_filter": (
        "Network bridge filter",
        NetworkBridgeFilter,
        {"conditional": "Conditional"},
    ),
}

_NAMES_OF_INDIVIDUAL = (
    "queue_prefix", "topic_prefix", "queue_suffix", "topic_suffix", "use_queue_for_queue_messages",
    "use_queue_for_topic_messages", "destination_per_durable_subscriber",
)  # fmt: skip
#: Fields of nested records that only some kinds have.
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
        ("dead_letter_queue", "Dead-letter queue of all destinations.", "ActiveMQ.DLQ"),
        ("queue_prefix", "Prefix of dead-letter queues of queues.", "ActiveMQ.DLQ.Queue."),
        ("queue_suffix", "Suffix of dead-letter queues of queues."),
        ("topic_prefix", "Prefix of dead-letter queues of topics.", "ActiveMQ.DLQ.Topic."),
        ("topic_suffix", "Suffix of dead-letter queues of topics."),
        ("use_queue_for_queue_messages", "Store dead letters of queues in a queue.", "on"),
        ("use_queue_for_topic_messages", "Store dead letters of topics in a queue.", "on"),
        ("destination_per_durable_subscriber", "Use a separate dead-letter queue per durable subscription.", "off"),
        ("process_expired", "Dead-letter expired messages. Off: discard them.", "on"),
        ("process_non_persistent", "Dead-letter non-persistent messages. Off: discard them.", "off"),
        ("enable_audit", "Store a message only once in its dead-letter queue.", "on"),
        ("expiration", "TTL of dead letters. 0: never expires.", "0", "ms"),
    ),
    "recovery": _section(
        "",
        ("maximum_size", "Maximum retained messages or bytes.", "100 messages, 6553600 bytes", "", 1),
        ("recover_duration", "Maximum age of retained messages.", "60000", "ms", 1),
    ),
    "pending_message_limit": _section(
        "",
        ("limit", "Maximum pending messages. Below 0: the broker's limit.", "-1", "messages"),
        ("multiplier", "Factor of the subscriber's prefetch.", "0.5"),
    ),
    "message_eviction": _section(
        "",
        ("property_name", "Property whose values are compared."),
        (
            "evict_expired_messages_high_watermark",
            "Pending messages above which expired ones are discarded first.",
            "1000",
            "messages",
        ),
    ),
    "slow_consumer": _section(
        "",
        ("check_period", "Interval between checks.", "30000", "ms"),
        ("max_slow_count", "Abort after this number of checks as slow. 0 or below: disabled.", "-1", "times"),
        ("max_slow_duration", "Abort after this time as slow. 0 or below: disabled.", "30000", "ms"),
        ("abort_connection", "Close the connection, not only the subscription.", "off"),
        ("ignore_network_consumers", "Ignore network bridges.", "on"),
        ("max_time_since_last_ack", "Time without acknowledgement after which a consumer is slow.", "30000", "ms"),
        ("ignore_idle_consumers", "Ignore consumers without messages in flight.", "on"),
    ),
    "network_bridge_filter": _section(
        "",
        (
            "replay_when_no_consumers",
            "Forward messages back to their origin when there are no consumers left.",
            "off",
        ),
        ("selector_aware", "Ignore consumers whose selector does not match.", "off"),
        ("replay_delay", "Delay before messages are forwarded back.", "0", "ms", 0),
        ("rate_limit", "Maximum messages per bridge and interval. 0: unlimited.", "0", "messages", 0),
        ("rate_duration", "Interval of the rate limit.", "1000", "ms", 1),
    ),
}

REDELIVERY_ROWS = _section(
    "Redelivery",
    ("maximum_redeliveries", "Maximum redeliveries of a failed message. -1: unlimited.", "6", "times"),
    ("initial_redelivery_delay", "Delay before the first redelivery.", "1000", "ms"),
    ("redelivery_delay", "Delay before each further redelivery.", "1000", "ms"),
    ("use_exponential_back_off", "Multiply the delay with each redelivery.", "off"),
    ("back_off_multiplier", "Factor of exponential back-off.", "5.0"),
    ("maximum_redelivery_delay", "Maximum delay. -1: unlimited.", "-1", "ms"),
    ("use_collision_avoidance", "Randomize delays to spread redeliveries.", "off"),
    ("collision_avoidance_percent", "Maximum random deviation.", "15", "percent"),
)

SWITCH_ROWS = _section(
    "Undeliverable messages",
    ("send_to_dlq_if_max_retries_exceeded", "Dead-letter messages after the last redelivery. Off: discard them.", "on"),
    ("fallback_to_dead_letter", "Dead-letter failed messages without a matching policy. Off: discard them.", "on"),
)

#: Rows of each record by field.
_ROWS: dict[type, dict[str, PolicyOption]] = {
    PolicyEntry: {each.field: each for each in _POLICY_ROWS},
    RedeliveryPolicy: {each.field: each for each in REDELIVERY_ROWS},
    RedeliverySettings: {each.field: each for each in SWITCH_ROWS},
    **{NESTED[name][1]: {each.field: each for each in rows} for name, rows in _NESTED_ROWS.items()},
}
#: Fields that are not options: the pattern of the policy, and nested records.
_NOT_OPTIONS = frozenset({"destination", "options", "kind", "policies", *NESTED})


def options_of(record: type) -> list[PolicyOption]:
    """Return the options of a record in the order of its table, those without a row last."""
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
