"""Find the topics that feed a queue, by the definitions that copy from them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.definitions import CompositeDestination, Definitions, VirtualTopic
from brokerapp.model.destination import Destination


@lru_cache(maxsize=256)
def _consumer_queue(prefix: str, postfix: str) -> re.Pattern[str]:
    elements = re.escape(prefix).replace(r"\*", "[^.]+")
    return re.compile(f"{elements}(.+){re.escape(postfix)}")


def topic_behind(definition: VirtualTopic, queue: str) -> str | None:
    """The topic whose messages this virtual topic copies to a queue of this name; None when it is no consumer queue."""
    found = _consumer_queue(definition.prefix, definition.postfix).fullmatch(queue)
    return found[1] if found and matches(definition.name, found[1]) else None


def is_consumer_queue(definitions: Definitions, queue: str) -> bool:
    """Return whether some virtual topic copies messages to a queue literally so named."""
    return any(
        isinstance(each, VirtualTopic) and topic_behind(each, queue) is not None
        for each in definitions.virtual_destinations
    )


def topics_behind(definitions: Definitions, queue: Destination) -> Iterator[Destination]:
    """The topics that keep what they get beside copying it to this queue."""
    for each in definitions.virtual_destinations:
        match each:
            case VirtualTopic():
                if topic := topic_behind(each, queue.name):
                    yield Destination.topic(topic)
            case CompositeDestination(forward_only=False) if not each.destination.is_queue:
                if any(leg.destination == queue for leg in each.legs):
                    yield each.destination


def virtual_destinations_behind(definitions: Definitions, target: Destination) -> Iterator[Destination]:
    """Yield the destinations from which definitions copy messages to this queue, topic or pattern."""
    for each in definitions.virtual_destinations:
        match each:
            case VirtualTopic() if target.is_queue:
                if topic := topic_behind(each, target.name):
                    yield Destination.topic(topic)
            case CompositeDestination():
                if any(_is_at(leg.destination, target) for leg in each.legs):
                    yield each.destination


def _is_at(leg: Destination, target: Destination) -> bool:
    return leg.kind is target.kind and matches(target.name, leg.name)
