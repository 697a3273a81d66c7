"""Reads and writes the strategies in a policyEntry by one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from brokerapp.config.parsing.attributes import read_fields, write_fields
from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.policy_strategies import (
    MessageEviction,
    NetworkBridgeFilter,
    PendingMessageLimit,
    SlowConsumerStrategy,
)


@dataclass(frozen=True, slots=True)
class NestedStrategy:
    """An element of a policyEntry: its field, its record, and of each tag the record's kind and fields."""

    field: str
    record: type
    kinds: Mapping[str, tuple[str, tuple[str, ...]]]


_WATERMARK = "evict_expired_messages_high_watermark"
_ABORT = ("check_period", "max_slow_count", "max_slow_duration", "abort_connection", "ignore_network_consumers")

NESTED = {
    "pendingMessageLimitStrategy": NestedStrategy("pending_message_limit", PendingMessageLimit, {
        "constantPendingMessageLimitStrategy": ("constant", ("limit",)),
        "prefetchRatePendingMessageLimitStrategy": ("prefetchRate", ("multiplier",)),
    }),
    "messageEvictionStrategy": NestedStrategy("message_eviction", MessageEviction, {
        "oldestMessageEvictionStrategy": ("oldest", (_WATERMARK,)),
        "oldestMessageWithLowestPriorityEvictionStrategy": ("lowestPriority", (_WATERMARK,)),
        "uniquePropertyMessageEvictionStrategy": ("uniqueProperty", (_WATERMARK, "property_name")),
    }),
    "slowConsumerStrategy": NestedStrategy("slow_consumer", SlowConsumerStrategy, {
        "abortSlowConsumerStrategy": ("abortSlowConsumer", _ABORT),
        "abortSlowAckConsumerStrategy": (
            "abortSlowAckConsumer", (*_ABORT, "max_time_since_last_ack", "ignore_idle_consumers"),
        ),
    }),
    "networkBridgeFilterFactory": NestedStrategy("network_bridge_filter", NetworkBridgeFilter, {
        "conditionalNetworkBridgeFilterFactory": (
            "conditional",
            ("replay_when_no_consumers", "selector_aware", "replay_delay", "rate_limit", "rate_duration"),
        ),
    }),
}  # fmt: skip


def read_strategies(element: Element) -> dict[str, Any]:
    """Return the strategies in a policyEntry by their fields; unknown ones are reported."""
    values = {}
    for tag, nested in NESTED.items():
        for child in element.named(tag):
            for strategy in child.children:
                if strategy.tag not in nested.kinds:
                    strategy.note(ImportOutcome.UNKNOWN, f"unknown type: only {', '.join(nested.kinds)} are supported")
                    continue
                kind, names = nested.kinds[strategy.tag]
                values[nested.field] = nested.record(kind=kind, **read_fields(strategy, nested.record, names))
                strategy.note(ImportOutcome.TAKEN, kind)
                if strategy.take("name") is not None:
                    strategy.note(
                        ImportOutcome.IGNORED, "JMX is replaced by the console and the Jolokia endpoint", "name"
                    )
                strategy.note_rest()
    return values


def write_strategies(policy: PolicyEntry) -> Iterator[etree._Element]:
    """Yield the strategies of a policyEntry as XML elements."""
    for tag, nested in NESTED.items():
        record = getattr(policy, nested.field)
        if record is not None:
            inner, names = next((inner, names) for inner, (kind, names) in nested.kinds.items() if kind == record.kind)
            element = etree.Element(tag)
            etree.SubElement(element, inner, write_fields(record, names))
            yield element
