"""Order work that concerns families of logs: each piece begins when all that was asked before of its families is done.

Pure. A piece of work that takes long keeps its families until it says that it is done; others are done as they begin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Set
from typing import Generic, TypeVar

T = TypeVar("T")


class Work(Generic[T]):
    """A piece of work. `begin` is called with it in its turn, and returns whether it is done with that."""

    __slots__ = ("begin", "families", "has_begun", "is_over", "left", "subject")

    def __init__(self, families: Set[str], begin: Callable[[Work[T]], bool], subject: T | None = None) -> None:
        self.families, self.begin, self.subject = families, begin, subject
        self.left = 0  #: families in which others are ahead of it
        self.has_begun = self.is_over = False


class OrderedWork(Generic[T]):
    """Work that is under way or waits, in order for each family."""

    def __init__(self) -> None:
        self._rows: dict[str, deque[Work[T]]] = {}  # by family: what is under way, or the first that may be, in front

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __iter__(self) -> Iterator[Work[T]]:
        """Yield all work, once each."""
        return iter({id(work): work for row in self._rows.values() for work in row}.values())

    @property
    def families(self) -> frozenset[str]:
        """Return the families that some work concerns."""
        return frozenset(self._rows)

    def concerns(self, families: Set[str]) -> bool:
        """Return whether any work concerns one of these families."""
        return not self._rows.keys().isdisjoint(families)

    def add(self, work: Work[T]) -> None:
        """Begin work now, or in its turn."""
        for family in work.families:
            row = self._rows.setdefault(family, deque())
            work.left += bool(row)
            row.append(work)
        if not work.left:
            self._begin(deque((work,)))

    def end(self, work: Work[T]) -> None:
        """Go on with what waits for work that is done, or is not to be done, if it is not over yet."""
        if not work.is_over:
            self._begin(self._remove(work))

    def _begin(self, ready: deque[Work[T]]) -> None:
        while ready:
            work = ready.popleft()
            work.has_begun = True
            if work.begin(work):
                ready += self._remove(work)

    def _remove(self, work: Work[T]) -> deque[Work[T]]:
        """Remove work; return what may begin now."""
        work.is_over = True
        ready: deque[Work[T]] = deque()
        for family in work.families:
            row = self._rows[family]
            was_first = row[0] is work
            row.remove(work)
            if not row:
                del self._rows[family]
            elif was_first:
                row[0].left -= 1
                if not (row[0].left or row[0].has_begun):
                    ready.append(row[0])
        return ready
