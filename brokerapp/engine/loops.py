"""Loops among definitions: composites that would send a message round for ever.

A message to a composite goes to its legs; a leg may be a composite again, also by way of a virtual topic's consumer
queue or of a mirrored queue's topic. Selectors are not looked into: a filtered leg counts like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from brokerapp.definitions import Composite, Definitions, MirroredQueue, VirtualTopic
from brokerapp.destination import ANY_ELEMENT, ANY_REST, SEPARATOR, Destination

#: Destinations looked at behind one leg: virtual topics and mirrors can feed each other names without end.
_REACH = 16


def find_loop(definitions: Definitions) -> list[Destination] | None:
    """The destinations of one loop, the first again at the end; None when there is no loop."""
    graph = _Graph.of(definitions)
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


@dataclass(frozen=True, slots=True)
class _Graph:
    composites: tuple[Composite, ...]
    virtual_topics: tuple[VirtualTopic, ...]
    mirrors: tuple[MirroredQueue, ...]

    @staticmethod
    def of(definitions: Definitions) -> _Graph:
        every = definitions.virtual_destinations
        return _Graph(
            tuple(each for each in every if isinstance(each, Composite)),
            tuple(each for each in every if isinstance(each, VirtualTopic)),
            tuple(each for each in every if isinstance(each, MirroredQueue)),
        )

    def next(self, composite: Composite) -> Iterator[Composite]:
        """The composites a message to this one comes to next."""
        for leg in composite.legs:
            for destination in self.reached(leg.destination):
                for other in self.composites:
                    if other.destination.kind is destination.kind and _meet(other.destination.name, destination.name):
                        yield other

    def reached(self, destination: Destination) -> list[Destination]:
        """Where a message to a destination comes to without a composite; consumer queues as patterns."""
        found = [destination]
        for each in found:
            if len(found) >= _REACH:
                break
            found += (other for other in self.copies(each) if other not in found)
        return found

    def copies(self, destination: Destination) -> Iterator[Destination]:
        name = destination.name
        if destination.is_queue:
            for each in self.mirrors:
                yield Destination.topic(f"{each.prefix}{name}{each.postfix}")
        else:
            for each in self.virtual_topics:
                if _meet(each.name, name):
                    yield Destination.queue(f"{each.prefix}{name}{each.postfix}")


def _meet(one: str, other: str) -> bool:
    """Whether some name matches both patterns."""
    left, right = one.split(SEPARATOR), other.split(SEPARATOR)
    for a, b in zip(left, right, strict=False):
        if ANY_REST in (a, b):
            return True
        if a != b and ANY_ELEMENT not in (a, b):
            return False
    shorter = min(len(left), len(right))
    return all(rest[:1] in ([], [ANY_REST]) for rest in (left[shorter:], right[shorter:]))
