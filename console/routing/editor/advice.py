"""Advise on a definition before it is saved: side effects that may surprise an operator. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from brokerapp.engine.routing.destination_trie import covers, matches, overlap, specificity
from brokerapp.model.definitions import (
    CompositeDestination,
    Definitions,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    VirtualDestination,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from console.routing.definitions.changes import Definition, id_of
from console.routing.definitions.destination_matches import matching_topics
from console.ui.formatting.number_format import pluralize_count

Stats = Mapping[Destination, DestinationStats]


def advice(new: Definition, others: Definitions, stats: Stats) -> list[str]:
    """Return advice on the new definition, given the others and the existing destinations."""
    rest = [each for each in others.virtual_destinations if each.id != id_of(new)]
    match new:
        case VirtualTopic():
            return list(_about_virtual_topic(new, rest, stats))
        case CompositeDestination():
            return list(_about_composite(new, rest, stats))
        case MirroredQueue():
            return list(_about_mirror(new, rest))
        case PolicyEntry():
            return list(_about_policy(new, others.policies))
        case RedeliveryPolicy():
            return list(_about_policy(new, others.redelivery.policies))
    return []


def _about_virtual_topic(new: VirtualTopic, rest: list[VirtualDestination], stats: Stats) -> Iterator[str]:
    for other in rest:
        if isinstance(other, VirtualTopic) and overlap(new.name, other.name):
            yield from _about_overlap(new, other)
        if (
            isinstance(other, CompositeDestination)
            and not other.destination.is_queue
            and matches(new.name, other.destination.name)
        ):
            yield (
                f"{other.destination.name} is also a composite topic: its messages go to targets and to consumer"
                " queues."
            )
    if not new.set_original_destination:
        yield (
            "Without setOriginalDestination, a dead letter is resubmitted to the topic and copied to all consumer"
            " queues again."
        )
    if new.selector_aware:
        yield (
            "With selectorAware, a consumer queue without online consumers misses messages, unless the broker caches"
            " their selectors (virtualSelectorCacheBrokerPlugin)."
        )
    if not matching_topics(new.name, stats):
        yield "No existing topic matches. The definition applies as soon as a message is sent to one."


def _about_overlap(new: VirtualTopic, other: VirtualTopic) -> Iterator[str]:
    """Advise on the overlap of two virtual topics: both apply, and which options win."""
    if (new.prefix, new.postfix) != (other.prefix, other.postfix):
        yield f"{other.name} covers some of the same topics: both apply, and its consumer queues get a copy, too."
        return
    some = f"{other.name} covers some of the same topics with the same consumer queues"
    if new.set_original_destination != other.set_original_destination:
        yield (
            f"{some}, but a different setOriginalDestination: the copies differ, so these queues get each message"
            " twice."
        )
        return
    yield f"{some}: these get each message once."
    if new.selector_aware != other.selector_aware:
        aware, plain = (new, other) if new.selector_aware else (other, new)
        yield f"{plain.name} overrides selectorAware of {aware.name} there: the queues get all messages."
    if new.drop_on_resource_limit != other.drop_on_resource_limit:
        drops, waits = (new, other) if new.drop_on_resource_limit else (other, new)
        yield f"{waits.name} overrides dropOnResourceLimit of {drops.name} there: full queues block producers."


def _about_composite(new: CompositeDestination, rest: list[VirtualDestination], stats: Stats) -> Iterator[str]:
    name, present = new.destination.name, stats.get(new.destination)
    if new.forward_only and present is not None and present.ConsumerCount:
        consume = f"{name} has {pluralize_count(present.ConsumerCount, 'consumer')}"
        yield f"{consume}. With forwardOnly they get no more messages."
    if new.forward_only and present is not None and present.QueueSize:
        yield f"Only new messages are forwarded. {name} keeps its {pluralize_count(present.QueueSize, 'message')}."
    if all(leg.selector for leg in new.legs) and new.forward_only and not new.send_when_not_matched:
        yield "Every target has a selector. Unmatched messages are discarded unless sendWhenNotMatched is on."
    if new.send_when_not_matched and any(leg.selector is None for leg in new.legs):
        yield "A target without a selector matches all messages, so sendWhenNotMatched has no effect."
    if new.send_when_not_matched and not new.forward_only:
        yield "With sendWhenNotMatched, forwardOnly has no effect."
    targets = [leg.destination for leg in new.legs]
    for twice in sorted({each for each in targets if targets.count(each) > 1}):
        yield f"{twice.name} is a target more than once: a message that matches both is forwarded twice."
    for other in rest:
        if not isinstance(other, VirtualTopic) or new.destination.is_queue:
            continue
        if matches(other.name, name):
            yield f"{name} is also a virtual topic ({other.name}): its consumer queues get a copy, too."


def _about_mirror(new: MirroredQueue, rest: list[VirtualDestination]) -> Iterator[str]:
    yield "Every message of every queue is published again, even without subscribers."
    mirrors = f"{new.prefix}>" if new.prefix.endswith(".") else new.prefix
    for other in rest:
        if isinstance(other, VirtualTopic) and overlap(other.name, mirrors):
            yield f"The mirror topics are virtual topics, too ({other.name}): they can have consumer queues."


def _about_policy(
    new: PolicyEntry | RedeliveryPolicy, others: tuple[PolicyEntry | RedeliveryPolicy, ...]
) -> Iterator[str]:
    """Advise on overlapping policies: only the most specific one applies."""
    own = new.destination
    for other in others:
        pattern = other.destination.name
        if other.id == new.id or other.destination.kind is not own.kind or not overlap(pattern, own.name):
            continue
        wins = specificity(own.name) > specificity(pattern)
        winner, loser = (own.name, pattern) if wins else (pattern, own.name)
        where = "for all its matches" if covers(loser, winner) else "where both match"
        yield f"{winner} overrides {loser} {where}: it is more specific, and {loser} does not apply there."
