"""Reads and writes `<redeliveryPlugin>`: redelivery policies, and the treatment of messages without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lxml import etree

from brokerapp.config.elements.virtual_destinations import entry_targets
from brokerapp.config.parsing.attributes import attribute_name, read_fields, write_fields
from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.model.definitions import RedeliveryPolicy, RedeliverySettings
from brokerapp.model.destination import ANY_REST, NAMED_KINDS, Destination

PLUGIN = "redeliveryPlugin"
_FIELDS = (
    "maximum_redeliveries", "initial_redelivery_delay", "redelivery_delay", "use_exponential_back_off",
    "back_off_multiplier", "maximum_redelivery_delay", "use_collision_avoidance", "collision_avoidance_percent",
)  # fmt: skip
_PLUGIN_FIELDS = ("send_to_dlq_if_max_retries_exceeded", "fallback_to_dead_letter")
#: The policies stand in `<redeliveryPolicyMap>`, which ActiveMQ's schema wants twice, one in the other.
_MAP = "redeliveryPolicyMap"
#: Fields that count from -1 (no limit), and those that count from 0.
_FROM_MINUS_ONE = ("maximum_redeliveries", "maximum_redelivery_delay")
_FROM_ZERO = ("initial_redelivery_delay", "redelivery_delay", "back_off_multiplier", "collision_avoidance_percent")


def read_redelivery(element: Element) -> RedeliverySettings:
    """Return the plugin's settings; of several policies for one destination the last counts."""
    values = read_fields(element, RedeliverySettings, _PLUGIN_FIELDS)
    element.note_rest(_MAP)
    found: dict[Destination, RedeliveryPolicy] = {}
    for policy_map in (inner for outer in element.named(_MAP) for inner in outer.named(_MAP)):
        policy_map.note_rest("redeliveryPolicyEntries", "defaultEntry")
        for child in policy_map.children:
            for entry in child.children:
                policies = list(_default(entry) if child.tag == "defaultEntry" else _policies(entry))
                if child.tag == "defaultEntry":
                    found = {each.destination: each for each in policies} | found
                else:
                    found |= {each.destination: each for each in policies}
    element.note(ImportOutcome.TAKEN, f"{len(found)} redelivery policies imported")
    return RedeliverySettings(tuple(found.values()), **values)


def _default(element: Element) -> Iterator[RedeliveryPolicy]:
    element.note(ImportOutcome.ADAPTED, "the default entry is imported as one for all queues and one for all topics")
    values = _values(element)
    yield from (RedeliveryPolicy(Destination(kind, ANY_REST), **values) for kind in NAMED_KINDS)


def _policies(element: Element) -> Iterator[RedeliveryPolicy]:
    targets = entry_targets(element)
    values = _values(element)
    if not targets:
        raise element.refused("queue or topic is required")
    yield from (RedeliveryPolicy(each, **values) for each in targets)


def _values(element: Element) -> dict[str, Any]:
    if element.tag != "redeliveryPolicy":
        raise element.refused("unknown element: only redeliveryPolicy is supported")
    values = read_fields(element, RedeliveryPolicy, _FIELDS)
    for name, value in values.items():
        least = -1 if name in _FROM_MINUS_ONE else 0
        if not isinstance(value, bool) and value < least:
            raise element.refused(f"{attribute_name(name)} is {value}, less than {least}")
    for name, _ in element.rest():
        element.note(ImportOutcome.IGNORED, "no effect: it configures redelivery by the client", name)
    return values


def write_redelivery(redelivery: RedeliverySettings) -> etree._Element:
    """Write `<redeliveryPlugin>`."""
    plugin = etree.Element(PLUGIN, write_fields(redelivery, _PLUGIN_FIELDS))
    inner = etree.SubElement(etree.SubElement(plugin, _MAP), _MAP)
    entries = etree.SubElement(inner, "redeliveryPolicyEntries")
    for policy in redelivery.policies:
        named = {policy.destination.kind.value: policy.destination.name}
        etree.SubElement(entries, "redeliveryPolicy", named | write_fields(policy, _FIELDS))
    return plugin
