"""Find the destinations that a definition names, and those that it sends messages to by other names. Pure.

Applying a definition requires the permission at all of them: otherwise a prefix would bypass the scope of a role.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brokerapp.engine.routing.advisory_topics import topic_of
from brokerapp.engine.routing.destination_trie import covers
from brokerapp.errors import InvalidDestination
from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualTopic,
)
from brokerapp.model.destination import ANY_ELEMENT, ANY_REST, SEPARATOR, Destination
from console.access.roles import Scope
from console.routing.definitions.changes import Definition

#: Patterns of all destinations.
_EVERYTHING = Scope(ANY_REST).destinations
#: The default of dead letters: a policy that does not change it adds no destination.
_DEFAULT_STRATEGY = DeadLetterStrategy()


def named_destinations(item: Definition | None) -> tuple[Destination, ...]:
    """Return the destinations (or patterns) that a definition names, sources and targets."""
    match item:
        case VirtualTopic():
            return (Destination.topic(item.name), *map(Destination.queue, _consumer_queues(item)))
        case CompositeDestination():
            return (item.destination, *(leg.destination for leg in item.legs))
        case MirroredQueue():
            return (
                Destination.queue(ANY_REST),
                Destination.topic(widen_pattern(item.prefix + ANY_REST + item.postfix)),
            )
        case PolicyEntry():
            return (item.destination, *_named_dead_letter_queue(item))
        case RedeliveryPolicy():
            return (item.destination,)
        case RedeliverySettings():
            return _EVERYTHING
    return ()


def affected_destinations(item: Definition | None) -> tuple[Destination, ...]:
    """Return all destinations (or patterns) whose messages a definition affects, or that receive any from it."""
    more = (*_new_dead_letter_destinations(item), *_advisory_topics(item)) if isinstance(item, PolicyEntry) else ()
    return tuple(dict.fromkeys((*named_destinations(item), *more)))


def widen_pattern(text: str) -> str:
    """Return a pattern that matches every name which this text may become, whose wildcards may be parts of elements,
    unlike those of patterns."""
    elements: list[str] = []
    for each in text.split(SEPARATOR):
        if ANY_REST in each:  # any number of elements: what follows is unknown
            return SEPARATOR.join((*elements, ANY_REST))
        elements.append(ANY_ELEMENT if ANY_ELEMENT in each else each)
    return SEPARATOR.join(elements)


def _patterns_of_names(prefix: str, pattern: str, suffix: str) -> Iterator[str]:
    """Yield patterns of the names that destinations of a pattern have with a prefix and suffix."""
    whole = widen_pattern(prefix + pattern + suffix)
    yield whole
    shortest = pattern.removesuffix(SEPARATOR + ANY_REST)  # `A.>` matches `A` too, which becomes `Ax`, not `A.x`
    if not covers(whole, alone := widen_pattern(prefix + shortest + suffix)):
        yield alone


def _consumer_queues(definition: VirtualTopic) -> Iterator[str]:
    return _patterns_of_names(definition.prefix, definition.name, definition.postfix)


def _named_dead_letter_queue(policy: PolicyEntry) -> tuple[Destination, ...]:
    strategy = policy.dead_letter
    if (
        strategy is None
        or strategy.kind != _DEFAULT_STRATEGY.kind
        or strategy.dead_letter_queue == _DEFAULT_STRATEGY.dead_letter_queue
    ):
        return ()
    try:
        return (Destination.parse(strategy.dead_letter_queue),)
    except InvalidDestination:  # receives no messages
        return ()


def _new_dead_letter_destinations(policy: PolicyEntry) -> Iterator[Destination]:
    """Yield the individual dead-letter destinations of a policy, without those of the default."""
    strategy = policy.dead_letter
    if strategy is None or strategy.kind != "individual":
        return
    usual = replace(
        _DEFAULT_STRATEGY,
        kind=strategy.kind,
        destination_per_durable_subscriber=strategy.destination_per_durable_subscriber,
    )
    of_default = set(_individual_dead_letter_destinations(usual, policy.destination))
    yield from (
        each for each in _individual_dead_letter_destinations(strategy, policy.destination) if each not in of_default
    )


def _individual_dead_letter_destinations(strategy: DeadLetterStrategy, source: Destination) -> Iterator[Destination]:
    if source.is_queue:
        prefix, suffix, as_queue = strategy.queue_prefix, strategy.queue_suffix, strategy.use_queue_for_queue_messages
        patterns = [source.name]
    else:
        prefix, suffix, as_queue = strategy.topic_prefix, strategy.topic_suffix, strategy.use_queue_for_topic_messages
        of_subscribers = [source.name + SEPARATOR + ANY_REST] if strategy.destination_per_durable_subscriber else []
        patterns = [source.name, *of_subscribers]
    for pattern in patterns:
        for name in _patterns_of_names(prefix, pattern, suffix):
            yield Destination.queue(name) if as_queue else Destination.topic(name)


def _advisory_topics(policy: PolicyEntry) -> tuple[Destination, ...]:
    """Return the advisory topics that receive whole messages; without bodies advisories report events only."""
    if not policy.include_body_for_advisory:
        return ()
    return (Destination.topic(topic_of(ANY_ELEMENT, policy.destination)),)
