"""Reads and writes `<destinationPolicy>`: policy entries with their dead-letter strategies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from lxml import etree

from brokerapp.config.elements.group_maps import TAG as GROUP_MAP
from brokerapp.config.elements.group_maps import read_group_map
from brokerapp.config.elements.recovery import TAG as RECOVERY
from brokerapp.config.elements.recovery import read_recovery, write_recovery
from brokerapp.config.elements.strategies import NESTED, read_strategies, write_strategies
from brokerapp.config.elements.virtual_destinations import destinations, entry_targets, read_destination
from brokerapp.config.parsing.attributes import FIELD_TYPES, read_fields, write_fields
from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.config.parsing.unsupported import MEMORY_LIMIT_OF_QUEUE, option_remark
from brokerapp.engine.dispatch.message_groups import parse_group_map
from brokerapp.errors import DefinitionRefused
from brokerapp.model.definitions import MOST_ONE_IN, VM_CURSOR, DeadLetterStrategy, PolicyEntry
from brokerapp.model.destination import ANY_REST, NAMED_KINDS, Destination, DestinationKind

#: Attributes that have a field of their own: whatever a PolicyEntry holds that fits into one.
_FIELDS = tuple(each.name for each in fields(PolicyEntry) if each.type in FIELD_TYPES and each.name != "queue_cursor")

#: ActiveMQ's other attributes of a policyEntry: kept as options under these names.
_OPTIONS = frozenset((
    "cursorMemoryHighWaterMark", "doOptimzeMessageStorage", "enableAudit",
    "gcWithNetworkConsumers", "lazyDispatch", "maxAuditDepth", "maxBrowsePageSize",
    "maxPageSize", "maxProducersToAudit", "maxQueueAuditDepth",
    "minimumMessageSize", "optimizeMessageStoreInFlightLimit", "optimizedDispatch",
    "persistJMSRedelivered",
    "reduceMemoryFootprint", "sendDuplicateFromStoreToDLQ",
    "storeUsageHighWaterMark",
    "useCache", "usePrefetchExtension", "useTopicSubscriptionInflightStats",
))  # fmt: skip

#: What a pendingQueuePolicy may be; another one is kept as it is written.
_CURSORS = (VM_CURSOR, "fileQueueCursor", "storeCursor")

#: What a policyEntry may hold besides its dead letter strategy: kept as options, each as the XML it is.
_NESTED = frozenset((
    "dispatchPolicy", "pendingDurableSubscriberPolicy",
    "pendingQueuePolicy", "pendingSubscriberPolicy",
))  # fmt: skip

#: What says that an entry is for all temporary destinations of a kind.
_TEMPORARY = {"tempQueue": DestinationKind.TEMP_QUEUE, "tempTopic": DestinationKind.TEMP_TOPIC}

_DEAD_LETTER_COMMON = ("process_expired", "process_non_persistent", "enable_audit", "expiration")
_DEAD_LETTER_NAMES = (
    "queue_prefix", "topic_prefix", "queue_suffix", "topic_suffix",
    "use_queue_for_queue_messages", "use_queue_for_topic_messages",
    "destination_per_durable_subscriber",
)  # fmt: skip

#: Element -> kind of strategy, and the fields it has.
_STRATEGIES = {
    "sharedDeadLetterStrategy": ("shared", _DEAD_LETTER_COMMON),
    "individualDeadLetterStrategy": ("individual", _DEAD_LETTER_COMMON + _DEAD_LETTER_NAMES),
    "discarding": ("discarding", _DEAD_LETTER_COMMON),
}


# -- reading


def read_policies(element: Element) -> tuple[PolicyEntry, ...]:
    """Read the policy entries in `<destinationPolicy>`; of several for one destination, the last applies."""
    found: dict[Destination, PolicyEntry] = {}
    for policy_map in element.named("policyMap"):
        for child in policy_map.children:
            match child.tag:
                case "policyEntries":
                    for entry in child.children:
                        for policy in _entries(entry):
                            if policy.destination in found:
                                entry.note(
                                    ImportOutcome.ADAPTED, f"replaces the previous entry for {policy.destination}"
                                )
                            found[policy.destination] = policy
                case "defaultEntry":
                    found = {each.destination: each for each in _default_entry(child)} | found
                case _:
                    child.note(
                        ImportOutcome.UNKNOWN, "unknown element: only policyEntries and defaultEntry are supported"
                    )
    return tuple(found.values())


def _default_entry(element: Element) -> Iterator[PolicyEntry]:
    for entry in element.children:
        entry.note(ImportOutcome.ADAPTED, "the default entry is imported as one for all queues and one for all topics")
        policy = _policy(entry, Destination.queue(ANY_REST))
        yield policy
        yield replace(policy, destination=Destination.topic(ANY_REST))


def _entries(element: Element) -> Iterator[PolicyEntry]:
    """Yield the policies of one policyEntry, one for each destination it names."""
    if element.tag != "policyEntry":
        raise element.refused("policyEntries may contain only policyEntry")
    targets = entry_targets(element)
    targets += [Destination(kind, ANY_REST) for name, kind in _TEMPORARY.items() if element.take_boolean(name)]
    if not targets:
        raise element.refused("queue or topic is required")
    first, *others = targets
    policy = _policy(element, first)
    yield policy
    yield from (replace(policy, destination=other) for other in others)


def _policy(element: Element, destination: Destination) -> PolicyEntry:
    values = read_fields(element, PolicyEntry, _FIELDS)
    if (factory := element.child(GROUP_MAP)) is not None and (text := read_group_map(factory)) is not None:
        values["message_group_map_factory_type"] = text
    try:
        parse_group_map(values.get("message_group_map_factory_type"))
    except DefinitionRefused as error:
        raise element.refused(str(error)) from error
    if not 0 <= values.get("record_one_in", 1) <= MOST_ONE_IN:
        raise element.refused(f"recordOneIn must be a number from 0 to {MOST_ONE_IN:,}")
    element.note(ImportOutcome.TAKEN, str(destination))
    values["queue_cursor"] = cursor = _queue_cursor(element)
    flow_controlled = values.get("memory_limit") and values.get("producer_flow_control") is not False
    if flow_controlled and destination.is_queue and cursor != VM_CURSOR:
        element.note(ImportOutcome.IGNORED, MEMORY_LIMIT_OF_QUEUE, "memoryLimit")
    strategy, recovery = element.child("deadLetterStrategy"), element.child(RECOVERY)
    return PolicyEntry(
        destination,
        dead_letter=None if strategy is None else _dead_letter_strategy(strategy),
        recovery=None if recovery is None else read_recovery(recovery),
        options=tuple(_options(element)),
        **read_strategies(element),
        **values,
    )


def _options(element: Element) -> Iterator[tuple[str, str]]:
    for name, value in element.rest():
        if name in _OPTIONS:
            why = option_remark(name)
            element.note(ImportOutcome.IGNORED if why else ImportOutcome.TAKEN, why or value, name)
            yield name, value
        else:
            element.note(ImportOutcome.UNKNOWN, "unknown attribute", name)
    for child in element.children:
        if child.tag == "pendingQueuePolicy" and _queue_cursor(element) is not None:
            child.note(ImportOutcome.TAKEN, child.children[0].tag)
        elif child.tag in _NESTED:
            why = option_remark(child.tag)
            child.note(ImportOutcome.IGNORED if why else ImportOutcome.TAKEN, why or "imported unchanged")
            yield child.tag, "".join(each.source() for each in child.children)
        elif child.tag not in ("deadLetterStrategy", "destination", GROUP_MAP, RECOVERY, *NESTED):
            child.note(ImportOutcome.UNKNOWN, "unknown element")


def _queue_cursor(element: Element) -> str | None:
    """Return the cursor that its pendingQueuePolicy names, if that is one of ActiveMQ's."""
    policy = element.child("pendingQueuePolicy")
    tags = [child.tag for child in policy.children] if policy is not None else []
    return tags[0] if len(tags) == 1 and tags[0] in _CURSORS else None


def _dead_letter_strategy(element: Element) -> DeadLetterStrategy:
    if len(element.children) != 1 or (strategy := element.children[0]).tag not in _STRATEGIES:
        raise element.refused(f"requires one of {', '.join(_STRATEGIES)}")
    kind, names = _STRATEGIES[strategy.tag]
    values = read_fields(strategy, DeadLetterStrategy, names)
    if kind == "shared" and (queue := _dead_letter_queue(strategy)) is not None:
        values["dead_letter_queue"] = queue
    for name, _ in strategy.rest():
        strategy.note(ImportOutcome.IGNORED, "every dead letter is kept, identified by queue and message id", name)
    return DeadLetterStrategy(kind=kind, **values)


def _dead_letter_queue(strategy: Element) -> str | None:
    if (nested := strategy.child("deadLetterQueue")) is not None:
        found = [each for child in nested.named("queue", "topic") for each in read_destination(child)]
    else:
        text = strategy.take("deadLetterQueue")
        found = list(destinations(strategy, text, DestinationKind.QUEUE)) if text else []
    if not found:
        return None
    if len(found) > 1 or found[0].kind not in NAMED_KINDS:
        raise strategy.refused("dead letters are sent to a single queue or topic")
    return found[0].name if found[0].kind is DestinationKind.QUEUE else str(found[0])


# -- writing


def write_policies(policies: tuple[PolicyEntry, ...]) -> etree._Element:
    """Write `<destinationPolicy>`."""
    element = etree.Element("destinationPolicy")
    entries = etree.SubElement(etree.SubElement(element, "policyMap"), "policyEntries")
    for policy in policies:
        plain = {name: value for name, value in policy.options if name not in _NESTED}
        entry = etree.SubElement(
            entries, "policyEntry",
            {**_written_target(policy.destination), **write_fields(policy, _FIELDS), **plain},
        )  # fmt: skip
        if policy.dead_letter is not None:
            entry.append(_written_strategy(policy.dead_letter))
        entry.extend(write_strategies(policy))
        if policy.queue_cursor is not None:
            etree.SubElement(etree.SubElement(entry, "pendingQueuePolicy"), policy.queue_cursor)
        if policy.recovery is not None:
            entry.append(write_recovery(policy.recovery))
        for name, value in policy.options:
            if name in _NESTED:
                entry.append(etree.fromstring(f"<{name}>{value}</{name}>"))
    return element


def _written_target(destination: Destination) -> dict[str, str]:
    for name, kind in _TEMPORARY.items():
        if destination.kind is kind:
            return {name: "true"}
    return {destination.kind.value: destination.name}


def _written_strategy(strategy: DeadLetterStrategy) -> etree._Element:
    element = etree.Element("deadLetterStrategy")
    tag, names = next((tag, names) for tag, (kind, names) in _STRATEGIES.items() if kind == strategy.kind)
    inner = etree.SubElement(element, tag, write_fields(strategy, names))
    if strategy.kind == "shared" and strategy.dead_letter_queue != DeadLetterStrategy().dead_letter_queue:
        target = Destination.parse(strategy.dead_letter_queue)
        etree.SubElement(etree.SubElement(inner, "deadLetterQueue"), str(target.kind), physicalName=target.name)
    return element
