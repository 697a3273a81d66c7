"""Find the logs that belong in one shard, as the copies of one message are stored in them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from brokerapp.engine.routing.destination_trie import DestinationTrie, matches
from brokerapp.engine.sharding.sources import Sources
from brokerapp.model.definitions import CompositeDestination, Definitions
from brokerapp.model.destination import (
    ANY_ELEMENT,
    ANY_REST,
    SEPARATOR,
    TEMPORARY_LOGS,
    Destination,
    DestinationKind,
)

#: Family of the temporary destinations: they come and go with connections, and are not worth a record each.
TEMPORARY_FAMILY = ""
#: Logs whose families are remembered, some 200 bytes each: their names come from clients.
MAX_REMEMBERED = 65_536


class Families:
    """Finds the families of logs by the definitions.

    A family has the name of the destination that its messages are sent to: `topic://VirtualTopic.Orders` for this topic
    and its consumer queues. docs/internals/shards.md says what belongs together.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._sources = Sources(definitions)
        composites = [each for each in definitions.virtual_destinations if isinstance(each, CompositeDestination)]
        #: By patterns of destinations that lead to a composite with a wildcard: the pattern, and the composite's.
        self._patterns: dict[DestinationKind, DestinationTrie[tuple[str, str]]] = {
            kind: DestinationTrie() for kind in DestinationKind
        }
        self._parents: dict[str, str] = {}
        self._add_patterns([each.destination for each in composites if each.destination.is_pattern])
        self._names = self._join(composites)
        self._remembered = lru_cache(maxsize=MAX_REMEMBERED)(self._find)

    def family_of(self, log: str, fed_by: Collection[Destination] = ()) -> str:
        """Return the family of a log, which is named as its destination: `queue://Orders`.

        `fed_by` are the destinations that feed it beside what is defined: the topics of a named subscription, the
        address that a queue is bound to. A subscription of several topics belongs to the first of them by name.
        """
        family = self._remembered(log)
        if not fed_by or family != log:
            return family
        return self._remembered(str(min(fed_by)))

    def _find(self, log: str) -> str:
        if log.startswith(TEMPORARY_LOGS):
            return TEMPORARY_FAMILY
        destination = Destination.parse(log)
        if destination.kind is DestinationKind.SUBSCRIPTION:
            return log  # its name says nothing of its topics
        root = self._root(destination.physical)
        nodes = [self._names[self._parent(each)] for each in self._nodes(root) if each in self._parents]
        return min(nodes, default=str(_static(root)))

    def _root(self, destination: Destination) -> Destination:
        """Return the destination where messages come from that are copied or moved to this one."""
        passed = [destination]
        while (before := self._before(passed[-1])) is not None:
            if before in passed:
                return min(passed[passed.index(before) :])
            passed.append(before)
        return passed[-1]

    def _before(self, destination: Destination) -> Destination | None:
        source = self._sources.copied_from(destination)
        if source is not None or self._matching(destination):
            # a composite that collects dead letters by a wildcard does not join all that may fail
            return source
        return self._sources.failed_at(destination)

    def _nodes(self, root: Destination) -> list[str]:
        """Return what stands for a root among the joined destinations: itself, and patterns that it matches."""
        if root in self._sources.shared:
            return []
        found = self._matching(root)
        if root.is_pattern and not found:
            root = _static(root)
            found = self._matching(root)
        return found if root.is_pattern and found else [str(root), *found]

    def _matching(self, destination: Destination) -> list[str]:
        found = self._patterns[destination.kind].find(destination.name)
        return [composite for pattern, composite in found if matches(pattern, destination.name)]

    def _add_patterns(self, composites: Collection[Destination]) -> None:
        """File each composite with a wildcard under all patterns that lead to it; join those that overlap."""
        for composite in composites:
            self._parents[str(composite)] = str(composite)
            waiting, seen = [composite], {composite}
            while waiting:
                pattern = waiting.pop()
                trie = self._patterns[pattern.kind]
                for _, other in trie.find(pattern.name):
                    self._union(str(composite), other)
                trie.add(pattern.name, (pattern.name, str(composite)))
                new = set(self._sources.copied_from_patterns(pattern)) - seen
                seen |= new
                waiting += new

    def _join(self, composites: Collection[CompositeDestination]) -> dict[str, str]:
        """Join each composite with its targets; return the names of what is joined, by one of each."""
        first, targets = set(), set()
        for each in composites:
            nodes = self._own_nodes(each.destination)
            first |= set(nodes[:1])
            for leg in each.legs:
                found = self._own_nodes(leg.destination)
                targets |= set(found)
                if nodes and found:
                    self._union(nodes[0], found[0])
        members: dict[str, set[str]] = {}
        for node in self._parents:
            members.setdefault(self._parent(node), set()).add(node)
        return {parent: min((found & first) - targets or found) for parent, found in members.items()}

    def _own_nodes(self, destination: Destination) -> list[str]:
        """Return what stands for a composite or a target, joined; nothing where it joins nobody."""
        if destination.is_pattern and str(destination) in self._parents:
            return [str(destination)]
        if destination.is_temporary:
            return []
        nodes = self._nodes(self._root(destination.physical))
        for node in nodes:
            self._parents.setdefault(node, node)
            self._union(nodes[0], node)
        return nodes

    def _parent(self, node: str) -> str:
        while (parent := self._parents[node]) != node:
            self._parents[node] = node = self._parents[parent]
        return node

    def _union(self, one: str, other: str) -> None:
        self._parents[self._parent(other)] = self._parent(one)


def feeds_of(attributes: Mapping[str, Any]) -> tuple[Destination, ...]:
    """Return what feeds a log with these attributes: the topics of a named subscription, the address of a queue."""
    named = attributes.get("topics") or ([f"topic://{attributes['address']}"] if "address" in attributes else ())
    return tuple(map(Destination.parse, named))


def _static(destination: Destination) -> Destination:
    """Return a destination named as a pattern without its elements from the first wildcard on, if any are left."""
    if not destination.is_pattern:
        return destination
    elements = destination.name.split(SEPARATOR)
    end = next(at for at, each in enumerate(elements) if each in (ANY_ELEMENT, ANY_REST))
    return Destination(destination.kind, SEPARATOR.join(elements[:end])) if end else destination
