"""What an operator should know before saving a definition: nothing here is wrong, but some of it surprises. Pure."""

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

Stats = Mapping[Destination, DestinationStats]


def advice(new: Definition, others: Definitions, stats: Stats) -> list[str]:
    """Sentences about the new definition, beside the other ones and over the destinations that exist."""
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
                f"{other.destination.name} is also a composite topic: what is sent there goes to its targets, and"
                " to consumer queues as well."
            )
    if not new.set_original_destination:
        yield (
            "Without setOriginalDestination, a retry from the dead-letter queue goes to the topic and fans out to every"
            " consumer again."
        )
    if new.selector_aware:
        yield (
            "With selectorAware, a consumer queue whose consumers are all away gets nothing and misses messages, unless"
            " the broker remembers their selectors (virtualSelectorCacheBrokerPlugin)."
        )
    if not matching_topics(new.name, stats):
        yield "No topic that exists matches yet. It works as soon as somebody sends to one."


def _about_overlap(new: VirtualTopic, other: VirtualTopic) -> Iterator[str]:
    """Both act where they overlap: what that comes to, and whose options win."""
    if (new.prefix, new.postfix) != (other.prefix, other.postfix):
        yield f"{other.name} covers some of the same topics: both act, and its consumer queues get a copy too."
        return
    some = f"{other.name} covers some of the same topics with the same consumer queues"
    if new.set_original_destination != other.set_original_destination:
        yield (
            f"{some}, and says something else about setOriginalDestination: the two copies differ, so those queues get"
            " each message twice."
        )
        return
    yield f"{some}: those get each message once."
    if new.selector_aware != other.selector_aware:
        aware, plain = (new, other) if new.selector_aware else (other, new)
        yield f"{plain.name} wins over the selectorAware of {aware.name} there: the queues get everything."
    if new.drop_on_resource_limit != other.drop_on_resource_limit:
        drops, waits = (new, other) if new.drop_on_resource_limit else (other, new)
        yield f"{waits.name} wins over the dropOnResourceLimit of {drops.name} there: full queues hold producers back."


def _about_composite(new: CompositeDestination, rest: list[VirtualDestination], stats: Stats) -> Iterator[str]:
    name, present = new.destination.name, stats.get(new.destination)
    if new.forward_only and present is not None and present.ConsumerCount:
        consume = f"{present.ConsumerCount:,} consume{'s' if present.ConsumerCount == 1 else ''} from {name} now"
        yield f"{consume}. With forwardOnly nothing arrives there any more."
    if new.forward_only and present is not None and present.QueueSize:
        stay = "message is in {} now. It stays" if present.QueueSize == 1 else "messages are in {} now. They stay"
        yield f"{present.QueueSize:,} {stay.format(name)} there; only new ones are forwarded."
    if all(leg.selector for leg in new.legs) and new.forward_only and not new.send_when_not_matched:
        yield "Every target has a selector. What none of them matches is gone; sendWhenNotMatched would keep it."
    if new.send_when_not_matched and any(leg.selector is None for leg in new.legs):
        yield "A target without a selector matches everything, so sendWhenNotMatched never keeps anything."
    if new.send_when_not_matched and not new.forward_only:
        yield "sendWhenNotMatched decides what stays here; forwardOnly makes no difference beside it."
    targets = [leg.destination for leg in new.legs]
    for twice in sorted({each for each in targets if targets.count(each) > 1}):
        yield f"{twice.name} is a target more than once: a message that matches both gets there twice."
    for other in rest:
        if not isinstance(other, VirtualTopic) or new.destination.is_queue:
            continue
        if matches(other.name, name):
            yield f"{name} is also a virtual topic ({other.name}): its consumer queues get a copy beside the targets."


def _about_mirror(new: MirroredQueue, rest: list[VirtualDestination]) -> Iterator[str]:
    yield "Every message of every queue is published once more, whether or not anybody subscribes."
    mirrors = f"{new.prefix}>" if new.prefix.endswith(".") else new.prefix
    for other in rest:
        if isinstance(other, VirtualTopic) and overlap(other.name, mirrors):
            yield f"The mirror topics are virtual topics too ({other.name}): consumer queues can be built on them."


def _about_policy(
    new: PolicyEntry | RedeliveryPolicy, others: tuple[PolicyEntry | RedeliveryPolicy, ...]
) -> Iterator[str]:
    """Of several policies for a destination the most specific one holds, as a whole."""
    own = new.destination
    for other in others:
        pattern = other.destination.name
        if other.id == new.id or other.destination.kind is not own.kind or not overlap(pattern, own.name):
            continue
        wins = specificity(own.name) > specificity(pattern)
        winner, loser = (own.name, pattern) if wins else (pattern, own.name)
        where = "for all that it matches" if covers(loser, winner) else "where both match"
        yield f"{winner} wins over {loser} {where}: it is more specific, and nothing of {loser} holds there."
