"""Stats: the numbers of every destination, and which of them changed since the last snapshot. No I/O."""

from __future__ import annotations

from brokerapp.destination import Destination
from brokerapp.snapshot import DestinationStats


class Stats:
    """Numbers by destination. Whoever counts also says so with `touch`."""

    def __init__(self) -> None:
        self._by_destination: dict[Destination, DestinationStats] = {}
        self._changed: set[Destination] = set()
        self._gone: set[Destination] = set()

    def of(self, destination: Destination) -> DestinationStats:
        """The numbers of a destination, from zero for a new one."""
        stats = self._by_destination.get(destination)
        if stats is None:
            stats = self._by_destination[destination] = DestinationStats(destination)
            self._gone.discard(destination)
            self._changed.add(destination)
        return stats

    def touch(self, destination: Destination) -> None:
        """Its numbers changed, or may have."""
        self._changed.add(destination)

    def forget(self, destination: Destination) -> None:
        """The destination is deleted."""
        self._by_destination.pop(destination, None)
        self._changed.discard(destination)
        self._gone.add(destination)

    def known(self) -> list[Destination]:
        """All destinations that have numbers."""
        return list(self._by_destination)

    def take_changes(self) -> tuple[list[DestinationStats], list[Destination]]:
        """What changed and what is gone since the last call."""
        changed = [self._by_destination[each] for each in self._changed if each in self._by_destination]
        gone = list(self._gone)
        self._changed, self._gone = set(), set()
        return changed, gone
