"""Loops among definitions: those that would send a message round for ever.

A composite forwards to its legs; a virtual topic copies to its consumer queues; a mirror copies each queue to a topic.
What is reached may be a composite again, by a wildcard too. Selectors are not looked into: a filtered leg counts like
any other.
"""

from __future__ import annotations

from collections.abc import Iterator

from brokerapp.engine.routing.destination_trie import DestinationTrie, matches
from brokerapp.model.definitions import CompositeDestination, Definitions, MirroredQueue, VirtualTopic
from brokerapp.model.destination import ANY_REST, Destination, DestinationKind

#: Destinations in a row without a composite after which a way is given up: virtual topics and mirrors can feed each
#: other ever longer names, which no queue has.
_REACH = 16

#: A composite that a message comes to, or a destination that is none, perhaps as a pattern.
ForwardNode = CompositeDestination | Destination


def find_cycle(definitions: Definitions) -> list[Destination] | None:
    """The destinations of one loop, the first again at the end; None when there is no loop."""
    ways = _ForwardGraph(definitions)
    finished: set[ForwardNode] = set()
    for start in ways.starts:
        path: list[ForwardNode] = [start]
        branches = [ways.after(start)]
        while path:
            following = next(branches[-1], None)
            if following is None:
                finished.add(path.pop())
                branches.pop()
            elif following in path:
                return [_destination_of(each) for each in (*path[path.index(following) :], following)]
            elif following not in finished and not _is_endless(path):
                path.append(following)
                branches.append(ways.after(following))
    return None


def _is_endless(path: list[ForwardNode]) -> bool:
    return len(path) > _REACH and not any(isinstance(each, CompositeDestination) for each in path[-_REACH:])


def _destination_of(step: ForwardNode) -> Destination:
    return step.destination if isinstance(step, CompositeDestination) else step


class _ForwardGraph:
    """Where a message comes to next."""

    def __init__(self, definitions: Definitions) -> None:
        every = definitions.virtual_destinations
        self._composites: dict[DestinationKind, DestinationTrie[CompositeDestination]] = {
            kind: DestinationTrie() for kind in DestinationKind
        }
        self._virtual_topics: DestinationTrie[VirtualTopic] = DestinationTrie()
        self._mirrors = [each for each in every if isinstance(each, MirroredQueue)]
        self.starts: list[ForwardNode] = [each for each in every if isinstance(each, CompositeDestination)]
        for each in every:
            if isinstance(each, CompositeDestination):
                self._composites[each.destination.kind].add(each.destination.name, each)
            elif isinstance(each, VirtualTopic):
                self._virtual_topics.add(each.name, each)
        if self._mirrors:
            self.starts.append(Destination.queue(ANY_REST))

    def after(self, step: ForwardNode) -> Iterator[ForwardNode]:
        """Yield the destinations and definitions that follow a step."""
        if isinstance(step, Destination):
            yield from self._copies(step)
            return
        for leg in step.legs:
            yield from self._reached(leg.destination)
        if step.send_when_not_matched or not step.forward_only:
            yield from self._copies(step.destination)

    def _copies(self, destination: Destination) -> Iterator[ForwardNode]:
        """Yield the destinations that get a copy of messages to a destination."""
        if destination.is_queue:
            for each in self._mirrors:
                yield from self._reached(Destination.topic(f"{each.prefix}{destination.name}{each.postfix}"))
        else:
            for topic in self._virtual_topics.find(destination.name):
                yield from self._reached(Destination.queue(f"{topic.prefix}{destination.name}{topic.postfix}"))

    def _reached(self, destination: Destination) -> Iterator[ForwardNode]:
        """The composites it is, or may be; and itself where it can be more than a composite."""
        composites = self._composites[destination.kind].find(destination.name)
        yield from composites
        if not destination.is_queue or not any(_covers(each, destination) for each in composites):
            yield destination


def _covers(composite: CompositeDestination, destination: Destination) -> bool:
    return not destination.is_pattern and matches(composite.destination.name, destination.name)
