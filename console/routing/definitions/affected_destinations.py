"""Places: the destinations that a definition is about or names, and those it leads messages to by other names. Pure.

Who may put a definition in force must have the right at all of them: else a scope would end where a prefix begins.
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

#: All there are.
_EVERYTHING = Scope(ANY_REST).destinations
#: What becomes of dead letters where nobody says: what of it a policy leaves as it is, leads nowhere new.
_DEFAULT_STRATEGY = DeadLetterStrategy()


def named_destinations(item: Definition | None) -> tuple[Destination, ...]:
    """The destinations (or patterns) that it is about, and those that it says messages come to."""
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
    """All destinations (or patterns) where it changes what becomes of messages, or to which it leads any."""
    more = (*_new_dead_letter_destinations(item), *_advisory_topics(item)) if isinstance(item, PolicyEntry) else ()
    return tuple(dict.fromkeys((*named_destinations(item), *more)))


def widen_pattern(text: str) -> str:
    """A pattern that matches every name which this text becomes when its wildcards, which need not be whole elements
    as those of patterns are, stand for something."""
    elements: list[str] = []
    for each in text.split(SEPARATOR):
        if ANY_REST in each:  # any number of elements: nothing is known of what follows
            return SEPARATOR.join((*elements, ANY_REST))
        elements.append(ANY_ELEMENT if ANY_ELEMENT in each else each)
    return SEPARATOR.join(elements)


def _patterns_of_names(prefix: str, pattern: str, suffix: str) -> Iterator[str]:
    """Patterns of what destinations that match a pattern are called with something before and behind their names."""
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
    except InvalidDestination:  # nothing comes there
        return ()


def _new_dead_letter_destinations(policy: PolicyEntry) -> Iterator[Destination]:
    """Where dead letters go by what a policy of individual dead-letter queues chooses."""
    strategy = policy.dead_letter
    if strategy is None or strategy.kind != "individual":
        return
    usual = replace(
        _DEFAULT_STRATEGY,
        kind=strategy.kind,
        destination_per_durable_subscriber=strategy.destination_per_durable_subscriber,
    )
    of_nobody = set(_individual_dead_letter_destinations(usual, policy.destination))
    yield from (
        each for each in _individual_dead_letter_destinations(strategy, policy.destination) if each not in of_nobody
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
    """The advisory topics to which it copies whole messages; without their bodies they tell of events alone."""
    if not policy.include_body_for_advisory:
        return ()
    return (Destination.topic(topic_of(ANY_ELEMENT, policy.destination)),)
