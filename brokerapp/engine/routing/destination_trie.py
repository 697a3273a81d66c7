"""DestinationTrie: values filed under names or patterns, found by name or pattern without looking at all of them.

A trie of name elements. `*` stands for one element, `>` as the last one for any number, none included. Wildcards count
on both sides: a value under `A.>` is found by `A.B`, a value under `A.B` by `A.*`, and `A.B.>` is found by `A.B`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from brokerapp.model.destination import ANY_ELEMENT, ANY_REST, SEPARATOR

V = TypeVar("V")


class _TrieNode(Generic[V]):
    __slots__ = ("children", "values")

    def __init__(self) -> None:
        self.children: dict[str, _TrieNode[V]] = {}
        self.values: list[V] = []


class DestinationTrie(Generic[V]):
    """Values by name or pattern. A value may be filed under several, and several under one."""

    def __init__(self) -> None:
        self._root: _TrieNode[V] = _TrieNode()

    def add(self, name: str, value: V) -> None:
        """File a value under a name or pattern."""
        node = self._root
        for element in _elements(name):
            node = node.children.setdefault(element, _TrieNode())
        node.values.append(value)

    def remove(self, name: str, value: V) -> None:
        """Take one value away; raises KeyError or ValueError when it is not there."""
        path = [self._root]
        elements = _elements(name)
        for element in elements:
            path.append(path[-1].children[element])
        path[-1].values.remove(value)
        for parent, element, node in zip(reversed(path[:-1]), reversed(elements), reversed(path[1:]), strict=True):
            if node.values or node.children:
                break
            del parent.children[element]

    def find(self, name: str) -> list[V]:
        """All values whose name or pattern matches this name or pattern, each once a filing."""
        nodes: dict[int, _TrieNode[V]] = {}
        _collect(self._root, _elements(name), 0, nodes)
        return [value for node in nodes.values() for value in node.values]


def _elements(name: str) -> list[str]:
    """The elements of a name or pattern; `A.>.>` is `A.>`."""
    elements = name.split(SEPARATOR)
    while elements[-2:] == [ANY_REST, ANY_REST]:
        elements.pop()
    return elements


def _collect(node: _TrieNode[V], elements: list[str], at: int, found: dict[int, _TrieNode[V]]) -> None:
    rest = node.children.get(ANY_REST)
    if rest is not None and rest.values:
        found[id(rest)] = rest
    if at == len(elements):
        if node.values:
            found[id(node)] = node
        return
    element, is_last = elements[at], at == len(elements) - 1
    if element == ANY_REST and is_last:
        for each in _below(node):
            found[id(each)] = each
        return
    if element == ANY_ELEMENT:
        for child in list(node.children.values()):
            _collect(child, elements, at + 1, found)
        return
    for key in (element, ANY_ELEMENT):
        named = node.children.get(key)
        if named is not None:
            _collect(named, elements, at + 1, found)


def _below(node: _TrieNode[V]) -> Iterator[_TrieNode[V]]:
    stack = [node]
    while stack:
        each = stack.pop()
        if each.values:
            yield each
        stack += each.children.values()


def matches(pattern: str, name: str) -> bool:
    """Whether a single pattern matches a concrete name."""
    wanted, elements = _elements(pattern), name.split(SEPARATOR)
    if wanted[-1] == ANY_REST:
        wanted.pop()
        if len(elements) < len(wanted):
            return False
        elements = elements[: len(wanted)]
    return len(wanted) == len(elements) and all(
        want in (ANY_ELEMENT, element) for want, element in zip(wanted, elements, strict=True)
    )


def covers(pattern: str, other: str) -> bool:
    """Whether a pattern matches every name that the other pattern (or name) matches."""
    wanted, elements = _elements(pattern), _elements(other)
    if wanted[-1] == ANY_REST:
        wanted.pop()
        elements = elements[: len(wanted)]
    return len(wanted) == len(elements) and all(
        want == element or (want == ANY_ELEMENT and element != ANY_REST)
        for want, element in zip(wanted, elements, strict=True)
    )


def overlap(pattern: str, other: str) -> bool:
    """Whether some name is matched by both patterns (or is the name, where one of them is none)."""
    ours, theirs = _elements(pattern), _elements(other)
    for mine, its in zip(ours, theirs, strict=False):
        if ANY_REST in (mine, its):
            return True
        if mine != its and ANY_ELEMENT not in (mine, its):
            return False
    longer = max(ours, theirs, key=len)
    return longer[min(len(ours), len(theirs)) :] in ([], [ANY_REST])


def intersection(pattern: str, other: str) -> str | None:
    """The pattern (or name) of the names that both patterns match; None: there is none."""
    (ours, our_rest), (theirs, their_rest) = _split(pattern), _split(other)
    if (len(ours) < len(theirs) and not our_rest) or (len(theirs) < len(ours) and not their_rest):
        return None
    common = []
    for one, another in zip(ours, theirs, strict=False):
        if one != another and ANY_ELEMENT not in (one, another):
            return None
        common.append(another if one == ANY_ELEMENT else one)
    longer = max(ours, theirs, key=len)
    return SEPARATOR.join([*common, *longer[len(common) :], *([ANY_REST] if our_rest and their_rest else [])])


def _split(pattern: str) -> tuple[list[str], bool]:
    """The elements before a final `>`, and whether there is one."""
    elements = _elements(pattern)
    return (elements[:-1], True) if elements[-1] == ANY_REST else (elements, False)


def specificity(pattern: str) -> tuple[int, ...]:
    """Sort key of patterns, the most specific last: judged element by element, a name above `*` above `>`."""
    return tuple(0 if each == ANY_REST else 1 if each == ANY_ELEMENT else 2 for each in pattern.split(SEPARATOR))
