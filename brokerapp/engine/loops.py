"""Loops among definitions: composites that would send a message round for ever.

A message to a composite goes to its legs; a leg may be a composite again, also by way of a virtual topic's consumer
queue or of a mirrored queue's topic. Selectors are not looked into: a filtered leg counts like any other.
"""

from __future__ import annotations

from collections.abc import Iterator

from brokerapp.definitions import Composite, Definitions, MirroredQueue, VirtualTopic
from brokerapp.destination import Destination, Kind
from brokerapp.engine.destination_map import DestinationMap

#: Destinations looked at behind one leg: virtual topics and mirrors can feed each other names without end.
_REACH = 16


def find_loop(definitions: Definitions) -> list[Destination] | None:
    """The destinations of one loop, the first again at the end; None when there is no loop."""
    graph = _Graph(definitions)
    finished: set[Composite] = set()
    for start in graph.composites:
        path = [start]
        branches = [graph.next(start)]
        while path:
            following = next(branches[-1], None)
            if following is None:
                finished.add(path.pop())
                branches.pop()
            elif following in path:
                return [each.destination for each in (*path[path.index(following) :], following)]
            elif following not in finished:
                path.append(following)
                branches.append(graph.next(following))
    return None


class _Graph:
    """Which composite leads to which, found by name instead of by looking at all: definitions may be thousands."""

    def __init__(self, definitions: Definitions) -> None:
        self.composites = [each for each in definitions.virtual_destinations if isinstance(each, Composite)]
        self._mirrors = [each for each in definitions.virtual_destinations if isinstance(each, MirroredQueue)]
        self._by_name: dict[Kind, DestinationMap[int]] = {kind: DestinationMap() for kind in Kind}
        for number, composite in enumerate(self.composites):
            self._by_name[composite.destination.kind].add(composite.destination.name, number)
        self._virtual_topics: DestinationMap[VirtualTopic] = DestinationMap()
        for each in definitions.virtual_destinations:
            if isinstance(each, VirtualTopic):
                self._virtual_topics.add(each.name, each)

    def next(self, composite: Composite) -> Iterator[Composite]:
        """The composites a message to this one comes to next, in the order defined."""
        for leg in composite.legs:
            for destination in self._reached(leg.destination):
                for number in sorted(self._by_name[destination.kind].find(destination.name)):
                    yield self.composites[number]

    def _reached(self, destination: Destination) -> list[Destination]:
        """Where a message to a destination comes to without a composite; consumer queues as patterns."""
        found = [destination]
        for each in found:
            if len(found) >= _REACH:
                break
            found += (other for other in self._copies(each) if other not in found)
        return found

    def _copies(self, destination: Destination) -> Iterator[Destination]:
        name = destination.name
        if destination.is_queue:
            for each in self._mirrors:
                yield Destination.topic(f"{each.prefix}{name}{each.postfix}")
        else:
            for each in self._virtual_topics.find(name):
                yield Destination.queue(f"{each.prefix}{name}{each.postfix}")
