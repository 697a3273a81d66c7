"""Find unused, shadowed or ineffective routing definitions, each with the next step. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.engine.routing.destination_trie import DestinationTrie, covers, matches
from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, VirtualTopic
from brokerapp.model.destination import ANY_ELEMENT, SEPARATOR, Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.selectors import compile_selector
from brokerapp.selectors.tree import And, Compare, Literal, PropertyRef, SelectorNode
from console.routing.definitions.destination_matches import matching_topics
from console.routing.definitions.policy_coverage import Policy, policy_rows
from console.routing.map.graph import consumer_queues_by_topic
from console.ui.formatting.number_format import pluralize_count

Stats = Mapping[Destination, DestinationStats]


class RoutingFindingKind(StrEnum):
    """Kinds of routing issues; the value is the title of the group."""

    UNREAD = "Consumer queues without consumers"
    STRAY = "Consumer queues without a virtual topic"
    NO_QUEUES = "Virtual topics without consumer queues"
    SHADOWED = "Shadowed targets and definitions"
    NEVER = "Definitions that never match"
    DEAD_TARGET = "Targets without consumers"


@dataclass(frozen=True, slots=True)
class RoutingFinding:
    """One issue with the definition to edit or the destination to open."""

    kind: RoutingFindingKind
    title: str
    sentence: str
    definition: str = ""
    destination: Destination | None = None
    is_urgent: bool = field(default=False)  #: messages accumulate or are lost because of it


def find_routing_issues(definitions: Definitions, stats: Stats) -> list[RoutingFinding]:
    """Return all issues by kind, urgent ones first."""
    found = [
        *_virtual_topic_findings(definitions, stats),
        *_stray_queue_findings(definitions, stats),
        *_composite_findings(definitions, stats),
        *_policy_findings(definitions.policies, stats),
        *_policy_findings(definitions.redelivery.policies, stats),
    ]
    order = list(RoutingFindingKind)
    return sorted(found, key=lambda each: (order.index(each.kind), not each.is_urgent, each.title))


# -- virtual topics


def _virtual_topic_findings(definitions: Definitions, stats: Stats) -> Iterator[RoutingFinding]:
    every = [each for each in definitions.virtual_destinations if isinstance(each, VirtualTopic)]
    unread: set[str] = set()
    for each in every:
        by_topic = consumer_queues_by_topic(each, sorted(stats))
        existing = {topic.name for topic in matching_topics(each.name, stats)}
        for topic, queues in by_topic.items():
            if not queues and topic in existing and not _has_composite(definitions, topic):
                yield RoutingFinding(
                    RoutingFindingKind.NO_QUEUES, topic,
                    f"{each.name} covers the topic, but no queue {each.prefix}{topic}{each.postfix} exists. Messages"
                    " reach subscribers only. The first consumer creates a queue.",
                    each.id, Destination.topic(topic),
                )  # fmt: skip
            unread.update(queues)
        if is_advisory(Destination.topic(each.name)):
            yield RoutingFinding(RoutingFindingKind.NEVER, each.name, "Virtual topics never copy advisories.", each.id)
        yield from _shadowed_virtual_topic_findings(each, every)
    for name in sorted(unread):
        queue = Destination.queue(name)
        numbers = stats[queue]
        if numbers.ConsumerCount == 0:
            depth = f"Depth: {_depth_words(numbers.QueueSize)}" if numbers.QueueSize else "Empty"
            yield RoutingFinding(
                RoutingFindingKind.UNREAD, name,
                f"{depth}. Every message to its topic adds a copy. Start a consumer or delete the queue.",
                destination=queue, is_urgent=bool(numbers.QueueSize),
            )  # fmt: skip


def _depth_words(count: int) -> str:
    return pluralize_count(count, "message")


def _has_composite(definitions: Definitions, topic: str) -> bool:
    return any(
        isinstance(each, CompositeDestination) and each.destination == Destination.topic(topic)
        for each in definitions.virtual_destinations
    )


def _shadowed_virtual_topic_findings(each: VirtualTopic, every: list[VirtualTopic]) -> Iterator[RoutingFinding]:
    for other in every:
        same = (each.prefix, each.postfix, _effects(each)) == (other.prefix, other.postfix, _effects(other))
        if other is not each and same and covers(other.name, each.name):
            yield RoutingFinding(
                RoutingFindingKind.SHADOWED, each.name,
                f"{other.name} does the same for all topics that it matches.",
                each.id,
            )  # fmt: skip


def _effects(each: VirtualTopic) -> tuple[bool, ...]:
    return each.selector_aware, each.local, each.drop_on_resource_limit, each.set_original_destination


def _stray_queue_findings(definitions: Definitions, stats: Stats) -> Iterator[RoutingFinding]:
    """Find queues named as consumer queues whose topic no virtual topic covers."""
    every = [each for each in definitions.virtual_destinations if isinstance(each, VirtualTopic)]
    families = {each.prefix for each in every if ANY_ELEMENT in each.prefix and each.prefix.endswith(SEPARATOR)}
    for queue in sorted(stats):
        if queue.kind is not DestinationKind.QUEUE:
            continue
        for prefix in families:
            depth = prefix.count(SEPARATOR)
            elements = queue.name.split(SEPARATOR)
            head = SEPARATOR.join(elements[:depth])
            topic = SEPARATOR.join(elements[depth:])
            if not topic or not matches(prefix.rstrip(SEPARATOR), head):
                continue
            if not any(each.prefix == prefix and matches(each.name, topic) for each in every):
                yield RoutingFinding(
                    RoutingFindingKind.STRAY, queue.name,
                    f"Named as a consumer queue of the topic {topic}, but no virtual topic with the prefix"
                    f" {prefix} covers it. Create one or rename the queue.",
                    destination=queue,
                )  # fmt: skip


# -- composites


def _composite_findings(definitions: Definitions, stats: Stats) -> Iterator[RoutingFinding]:
    forwarding: DestinationTrie[bool] = DestinationTrie()
    virtual: DestinationTrie[bool] = DestinationTrie()
    for each in definitions.virtual_destinations:
        match each:
            case CompositeDestination():
                forwarding.add(str(each.destination), True)
            case VirtualTopic():
                virtual.add(each.name, True)
    for each in definitions.virtual_destinations:
        if not isinstance(each, CompositeDestination):
            continue
        title, targets = each.destination.name, {leg.destination for leg in each.legs}
        for leg in each.legs:
            yield from _forward_target_findings(each, leg, title)
        for target in sorted(targets):
            goes_on = bool(forwarding.find(str(target))) or (not target.is_queue and bool(virtual.find(target.name)))
            yield from _unread_target_findings(each, target, stats.get(target), title, goes_on)
        present = stats.get(each.destination)
        if each.forward_only and not each.send_when_not_matched and present is not None and present.ConsumerCount:
            yield RoutingFinding(
                RoutingFindingKind.SHADOWED, title,
                f"{pluralize_count(present.ConsumerCount, 'consumer')} without messages:"
                " forwardOnly keeps no local copy.", each.id, each.destination, is_urgent=True,
            )  # fmt: skip


def _forward_target_findings(
    composite: CompositeDestination, leg: ForwardTarget, title: str
) -> Iterator[RoutingFinding]:
    name = f"{title} → {leg.destination.name}"
    if leg.selector and not can_match(leg.selector):
        yield RoutingFinding(RoutingFindingKind.NEVER, name, f"No message matches {leg.selector}", composite.id)
    others = [each for each in composite.legs if each is not leg and each.destination == leg.destination]
    if leg.selector and any(each.selector is None for each in others):
        yield RoutingFinding(
            RoutingFindingKind.SHADOWED, name,
            f"The same target has no selector, too: messages that match {leg.selector} are forwarded twice.",
            composite.id,
        )  # fmt: skip
    elif any(each.selector == leg.selector for each in others) and leg is not composite.legs[0]:
        yield RoutingFinding(
            RoutingFindingKind.SHADOWED, name, "Duplicate target: each message is forwarded twice.", composite.id
        )


def _unread_target_findings(
    composite: CompositeDestination, target: Destination, present: DestinationStats | None, title: str, goes_on: bool
) -> Iterator[RoutingFinding]:
    if goes_on or (present is not None and present.ConsumerCount):
        return
    name = f"{title} → {target.name}"
    if target.is_queue:
        held = present.QueueSize if present is not None else 0
        sentence = f"Depth: {_depth_words(held)}" if held else "No messages yet"
        yield RoutingFinding(
            RoutingFindingKind.DEAD_TARGET, name,
            f"{sentence}, no consumers. Start a consumer or remove the target.",
            composite.id, target if present is not None else None, is_urgent=bool(held),
        )  # fmt: skip
    else:
        yield RoutingFinding(
            RoutingFindingKind.DEAD_TARGET, name,
            "The topic has no subscribers: forwarded messages are discarded.",
            composite.id, target if present is not None else None, is_urgent=True,
        )  # fmt: skip


def can_match(selector: str) -> bool:
    """Return whether a selector can match any message, as far as the selector alone shows."""
    try:
        compiled = compile_selector(selector)
    except RequestRefused:
        return False
    if not compiled.properties and "XPATH" not in selector.upper():
        return compiled.evaluate({}) is True
    return not _contradicts(compiled.tree)


def _contradicts(node: SelectorNode) -> bool:
    """Return whether a conjunction compares a property with two different constants."""
    if not isinstance(node, And):
        return False
    wanted: dict[str, object] = {}
    for each in node.operands:
        match each:
            case Compare("=", PropertyRef(name), Literal(value)) | Compare("=", Literal(value), PropertyRef(name)):
                if wanted.setdefault(name, value) != value:
                    return True
    return False


# -- policies


def _policy_findings(policies: tuple[Policy, ...], stats: Stats) -> Iterator[RoutingFinding]:
    """Find policies whose matching destinations all have a more specific policy."""
    for row in policy_rows(policies, list(stats)):
        if row.matching_count and not row.applied_count:
            yield RoutingFinding(
                RoutingFindingKind.SHADOWED, str(row.policy.destination),
                f"{pluralize_count(row.matching_count, 'destination')} match, but each has a more specific"
                " policy. This one never applies.", row.policy.id,
            )  # fmt: skip
