"""Decide which destinations a connector forwards, and explain why not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from brokerapp.engine.routing.destination_trie import covers, intersection, matches, overlap
from brokerapp.model.broker_path import UNLIMITED
from brokerapp.model.definitions import VirtualDestination, VirtualTopic
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.network.options.options import ConnectorOptions

#: Advisories interpreted by bridges themselves: wanting them is no demand.
_ADVISORY_PREFIX = "ActiveMQ.Advisory."


def is_listed(target: Destination, patterns: Iterable[Destination]) -> bool:
    """Whether one of these patterns matches it."""
    return any(each.kind is target.kind and matches(each.name, target.name) for each in patterns)


def exclusions_within(terms: ConnectorOptions, target: Destination) -> list[str]:
    """Return the names and patterns that are excluded from what a pattern matches."""
    if not target.is_pattern:
        return []
    return [each.name for each in terms.excluded if each.kind is target.kind and overlap(each.name, target.name)]


def exclusion_reason(terms: ConnectorOptions, target: Destination) -> str:
    """Why a consumer of this destination is no demand, as the connector's terms have it; "": it is."""
    if target.name.startswith(_ADVISORY_PREFIX):
        return "advisories for bridges are not forwarded"
    if target.is_temporary:
        return (
            ""
            if terms.bridge_temp_destinations
            else "temporary destinations are not forwarded (bridgeTempDestinations)"
        )
    if is_listed(target, terms.excluded):
        return "it is excluded (excludedDestinations)"
    included = terms.dynamically_included
    if not included or is_listed(target, included) or is_listed(target, terms.statically_included):
        return ""
    return "it is not included (dynamicallyIncludedDestinations)"


def included_part(terms: ConnectorOptions, target: Destination) -> list[Destination]:
    """Return what is forwarded for a consumer of a destination: of a pattern, the included names and patterns.

    What is excluded of these is told to the source (see `excepted`).
    """
    if not target.is_pattern:
        return [] if exclusion_reason(terms, target) else [target]
    if target.is_temporary or target.name.startswith(_ADVISORY_PREFIX):
        return []
    parts = [target.name]
    if terms.dynamically_included:
        included = (*terms.dynamically_included, *terms.statically_included)
        common = (intersection(each.name, target.name) for each in included if each.kind is target.kind)
        parts = [each for each in common if each is not None]
    parts = [part for part in dict.fromkeys(parts) if not _is_covered(part, terms.excluded, target.kind)]
    widest = [each for each in parts if not any(covers(other, each) for other in parts if other != each)]
    return [Destination(target.kind, each) for each in widest]


def _is_covered(name: str, patterns: Iterable[Destination], kind: DestinationKind) -> bool:
    return any(each.kind is kind and covers(each.name, name) for each in patterns)


def queues_held_for(terms: ConnectorOptions, held: Iterable[str], path: Sequence[str]) -> list[str]:
    """Of the queues, by their full names, that hold copies of a topic's message which crossed this path, those whose
    copies are for consumers behind this bridge, too.

    When in doubt a queue is left out: the message may come twice then, and is not lost.
    """
    ttl = terms.consumer_ttl
    if terms.destination_filter is not None or (ttl != UNLIMITED and len(path) >= ttl):
        return []
    queues = [Destination.queue(each) for each in held]
    if terms.static_bridge:
        return [each.name for each in queues if is_listed(each, terms.statically_included)]
    return [each.name for each in queues if not exclusion_reason(terms, each)]


def duplicate_warnings(terms: ConnectorOptions, virtual: Iterable[VirtualDestination]) -> list[str]:
    """Warn of virtual topics that are forwarded together with their consumer queues: a sentence for each.

    A message is then forwarded for the topic, of which the other broker makes copies, and as the copy made here.
    """
    return [
        f"it forwards the virtual topic {each.name} and its consumer queues {each.prefix}{each.name}{each.postfix}: "
        "remote consumers receive messages twice; exclude one of them"
        for each in virtual
        if isinstance(each, VirtualTopic)
        and not each.local
        and _topic_crosses(terms, each)
        and _queues_cross(terms, each)
    ]


def _topic_crosses(terms: ConnectorOptions, virtual: VirtualTopic) -> bool:
    """Whether its topic is demanded without a plain subscriber at the other broker, or named by the connector."""
    topic = Destination.topic(virtual.name)
    if _all_excluded(terms, topic):
        return False
    named = (*terms.dynamically_included, *terms.statically_included)
    if any(each.kind is DestinationKind.TOPIC and overlap(each.name, topic.name) for each in named):
        return True
    return terms.use_virtual_dest_subs and not terms.dynamically_included


def _queues_cross(terms: ConnectorOptions, virtual: VirtualTopic) -> bool:
    queues = Destination.queue(f"{virtual.prefix}{virtual.name}{virtual.postfix}")
    if terms.static_bridge:
        return any(each.is_queue and overlap(each.name, queues.name) for each in terms.statically_included)
    if _all_excluded(terms, queues):
        return False
    included = terms.dynamically_included
    return not included or any(each.is_queue and overlap(each.name, queues.name) for each in included)


def _all_excluded(terms: ConnectorOptions, pattern: Destination) -> bool:
    return _is_covered(pattern.name, terms.excluded, pattern.kind)
