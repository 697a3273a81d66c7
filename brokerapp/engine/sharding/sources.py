"""Find where messages come from that definitions copy or move to a destination, by its name alone. Pure.

A consumer queue gets the messages of its virtual topic, a mirror topic those of its queue, an individual dead-letter
queue those that failed at one queue or topic. The names of all of these hold the name of their source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from brokerapp.engine.policy.dead_letters import DEFAULT_STRATEGY, is_dead_letter_queue
from brokerapp.engine.routing.consumer_queues import topic_behind
from brokerapp.engine.routing.destination_trie import intersection
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.model.definitions import DeadLetterStrategy, Definitions, MirroredQueue, VirtualTopic
from brokerapp.model.destination import ANY_ELEMENT, ANY_REST, NAMED_KINDS, SEPARATOR, Destination


class Sources:
    """Finds the sources of destinations by the definitions of virtual topics, mirrors and dead-letter strategies."""

    def __init__(self, definitions: Definitions) -> None:
        every = definitions.virtual_destinations
        self._virtual_topics = [each for each in every if isinstance(each, VirtualTopic)]
        self._mirrors = [each for each in every if isinstance(each, MirroredQueue)]
        self._policy_of = RoutingTable(replace(definitions, virtual_destinations=()), lambda *_: False).policy_for
        strategies = {each.dead_letter for each in definitions.policies if each.dead_letter} | {DEFAULT_STRATEGY}
        self._individual = [each for each in strategies if each.kind == "individual"]
        #: The dead-letter queues of destinations that have nothing else in common.
        self.shared = frozenset(
            Destination.parse(each.dead_letter_queue) for each in strategies if each.kind == "shared"
        )

    def copied_from(self, destination: Destination) -> Destination | None:
        """Return the destination whose messages are copied to this one; None when there is none.

        Where the names of consumer queues fit several topics it is the topic with the shortest name.
        """
        if destination in self.shared or destination.kind not in NAMED_KINDS:
            return None
        if destination.is_queue:
            topics = (topic_behind(each, destination.name) for each in self._virtual_topics)
            found = [Destination.topic(topic) for topic in topics if topic]
        else:
            queues = (_stripped(destination.name, each.prefix, each.postfix) for each in self._mirrors)
            found = [Destination.queue(queue) for queue in queues if queue]
        return _shortest(found)

    def copied_from_patterns(self, pattern: Destination) -> Iterator[Destination]:
        """Yield patterns of all destinations whose messages are copied to some destination that matches a pattern."""
        if pattern.is_queue:
            for each in self._virtual_topics:
                topics = _stripped_pattern(pattern.name, each.prefix, each.postfix)
                common = intersection(topics, each.name) if topics is not None else None
                if common is not None:
                    yield Destination.topic(common)
        else:
            for mirror in self._mirrors:
                queues = _stripped_pattern(pattern.name, mirror.prefix, mirror.postfix)
                if queues is not None:
                    yield Destination.queue(queues)

    def failed_at(self, destination: Destination) -> Destination | None:
        """Return the destination of which this is the individual dead-letter queue; None when it is none.

        Also of one of its durable subscriptions, whose client-id and name follow the name of the topic: where both
        have several elements, a topic that a policy names without wildcards is preferred, then the longest name.
        """
        if destination in self.shared or destination.kind not in NAMED_KINDS:
            return None
        found: list[Destination] = []
        by_name: dict[str, list[DeadLetterStrategy]] = {}  # strategies by what a name holds beside their prefix
        for strategy in self._individual:
            if destination.is_queue is strategy.use_queue_for_queue_messages:
                name = _stripped(destination.name, strategy.queue_prefix, strategy.queue_suffix)
                if name and self._fails_over(Destination.queue(name), strategy):
                    found.append(Destination.queue(name))
            if destination.is_queue is strategy.use_queue_for_topic_messages:
                name = _stripped(destination.name, strategy.topic_prefix, strategy.topic_suffix)
                if name:
                    by_name.setdefault(name, []).append(strategy)
        found += [topic for name, each in by_name.items() if (topic := self._failed_topic(name, each))]
        return _shortest([each for each in found if each != destination])

    def _failed_topic(self, name: str, strategies: Collection[DeadLetterStrategy]) -> Destination | None:
        """Return the topic in a name that may hold a durable subscription, too."""
        fitting = [
            topic for each in strategies for topic in _possible_topics(name, each) if self._fails_over(topic, each)
        ]
        return max(fitting, key=lambda topic: (self._is_named(topic), len(topic.name)), default=None)

    def _is_named(self, topic: Destination) -> bool:
        """Return whether the policy of a topic names it without wildcards."""
        policy = self._policy_of(topic)
        return policy is not None and not policy.destination.is_pattern

    def _fails_over(self, source: Destination, strategy: DeadLetterStrategy) -> bool:
        """Return whether what fails at a destination goes where this strategy says."""
        policy = self._policy_of(source)
        return bool(policy and policy.dead_letter == strategy) and not is_dead_letter_queue(strategy, source)


def _possible_topics(name: str, strategy: DeadLetterStrategy) -> list[Destination]:
    """Return the topics that may be meant by a name, which may end with a durable subscription."""
    client, colon, _ = name.rpartition(":")
    if not (colon and strategy.destination_per_durable_subscriber):
        return [Destination.topic(name)]
    elements = client.split(SEPARATOR)
    names = (SEPARATOR.join(elements[:end]) for end in range(1, len(elements)))
    return [Destination.topic(each) for each in names if each]


def _shortest(found: list[Destination]) -> Destination | None:
    """Return one of several destinations, the same in whatever order they come."""
    return min(found, key=lambda each: (len(each.name), each), default=None)


def _stripped(name: str, prefix: str, postfix: str) -> str | None:
    """Return a name without its prefix and postfix; None when it has not both, or nothing else."""
    if len(name) <= len(prefix) + len(postfix) or not (name.startswith(prefix) and name.endswith(postfix)):
        return None
    return name[len(prefix) : len(name) - len(postfix)]


def _stripped_pattern(pattern: str, prefix: str, postfix: str) -> str | None:
    """Return a pattern of all names that with this prefix and postfix match a pattern; None when there are none.

    Where no pattern says it exactly it matches some more.
    """
    elements = pattern.split(SEPARATOR)
    has_rest = elements[-1] == ANY_REST
    while elements and elements[-1] == ANY_REST:
        elements.pop()
    *whole_before, begin = prefix.split(SEPARATOR)
    end, *whole_after = postfix.split(SEPARATOR)
    if not has_rest and len(elements) <= len(whole_before) + len(whole_after):
        return None
    if not _may_be_equal(whole_before, elements):
        return None
    elements = elements[len(whole_before) :]
    if has_rest:  # what follows may be of the rest, or be these last elements
        elements = elements[: max(0, len(elements) - len(whole_after) - bool(end))]
    elif whole_after:
        if not _may_be_equal(whole_after, elements[-len(whole_after) :]):
            return None
        elements = elements[: -len(whole_after)]
    return _joined(elements, begin, "" if has_rest else end, has_rest)


def _joined(elements: list[str], begin: str, end: str, has_rest: bool) -> str | None:
    """Return the pattern of these elements, without how the first begins and the last ends; None when they do not."""
    if elements and elements[0] != ANY_ELEMENT:
        if not elements[0].startswith(begin):
            return None
        elements[0] = elements[0].removeprefix(begin) or ANY_ELEMENT
    if elements and elements[-1] != ANY_ELEMENT:
        if not elements[-1].endswith(end):
            return None
        elements[-1] = elements[-1].removesuffix(end) or ANY_ELEMENT
    return SEPARATOR.join([*elements, *([ANY_REST] if has_rest else [])])


def _may_be_equal(ours: list[str], theirs: list[str]) -> bool:
    return all(one == other or ANY_ELEMENT in (one, other) for one, other in zip(ours, theirs, strict=False))
