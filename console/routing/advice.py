"""What an operator should know before saving a definition: nothing here is wrong, but some of it surprises. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from brokerapp.definitions import Composite, Definitions, MirroredQueue, VirtualDestination, VirtualTopic
from brokerapp.destination import Destination, Kind
from brokerapp.engine.destination_map import DestinationMap, matches
from brokerapp.snapshot import DestinationStats


def overlap(one: str, other: str) -> bool:
    """Whether two patterns have a name in common."""
    trie: DestinationMap[bool] = DestinationMap()
    trie.add(one, True)
    return bool(trie.find(other))


def advice(new: VirtualDestination, others: Definitions, stats: Mapping[Destination, DestinationStats]) -> list[str]:
    """Sentences about the new definition, beside the other ones and over the destinations that exist."""
    rest = [each for each in others.virtual_destinations if each.id != new.id]
    match new:
        case VirtualTopic():
            return list(_about_virtual_topic(new, rest, stats))
        case Composite():
            return list(_about_composite(new, rest, stats))
    return list(_about_mirror(new, rest))


def _about_virtual_topic(
    new: VirtualTopic, rest: list[VirtualDestination], stats: Mapping[Destination, DestinationStats]
) -> Iterator[str]:
    for other in rest:
        if isinstance(other, VirtualTopic) and overlap(new.name, other.name):
            is_same = (new.prefix, new.postfix) == (other.prefix, other.postfix)
            once, too = "those get each message once", "its consumer queues get a copy too"
            yield f"{other.name} covers some of the same topics" + (
                f" with the same consumer queues: {once}." if is_same else f": {too}."
            )
    if not new.set_original_destination:
        yield (
            "Without setOriginalDestination, a retry from the dead-letter queue goes to the topic and fans out to every"
            " consumer again."
        )
    if new.selector_aware:
        yield "With selectorAware, a consumer queue whose consumers are all away gets nothing and misses messages."
    topics = [each.name for each in stats if each.kind is Kind.TOPIC and matches(new.name, each.name)]
    if not topics:
        yield "No topic that exists matches yet. It works as soon as somebody sends to one."


def _about_composite(
    new: Composite, rest: list[VirtualDestination], stats: Mapping[Destination, DestinationStats]
) -> Iterator[str]:
    name, present = new.destination.name, stats.get(new.destination)
    if new.forward_only and present is not None and present.ConsumerCount:
        yield f"{present.ConsumerCount} consume from {name} now. With forwardOnly nothing arrives there any more."
    if new.forward_only and present is not None and present.QueueSize:
        yield f"{present.QueueSize:,} messages are in {name} now. They stay there; only new ones are forwarded."
    if all(leg.selector for leg in new.legs) and new.forward_only and not new.send_when_not_matched:
        yield "Every target has a selector. What none of them matches is gone; sendWhenNotMatched would keep it."
    if new.send_when_not_matched and any(leg.selector is None for leg in new.legs):
        yield "A target without a selector matches everything, so sendWhenNotMatched never keeps anything."
    targets = [leg.destination for leg in new.legs]
    for twice in sorted({each for each in targets if targets.count(each) > 1}):
        yield f"{twice.name} is a target more than once: a message that matches both gets there twice."
    for other in rest:
        if isinstance(other, VirtualTopic) and new.destination.kind is Kind.TOPIC and matches(other.name, name):
            yield f"{name} is also a virtual topic ({other.name}): its consumer queues get a copy beside the targets."


def _about_mirror(new: MirroredQueue, rest: list[VirtualDestination]) -> Iterator[str]:
    yield "Every message of every queue is published once more, whether or not anybody subscribes."
    mirrors = f"{new.prefix}>" if new.prefix.endswith(".") else new.prefix
    for other in rest:
        if isinstance(other, VirtualTopic) and overlap(other.name, mirrors):
            yield f"The mirror topics are virtual topics too ({other.name}): consumer queues can be built on them."
