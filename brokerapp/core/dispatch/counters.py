"""Count messages of every destination, and track which counters changed since the last snapshot. No I/O."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from operator import attrgetter

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats

#: Snapshots for which a destination that is gone is told to those who ask what changed: they ask every few seconds.
REMOVALS_KEPT_FOR = 600
#: Destinations told of at once, which is once a second: telling of one costs more than a message to it.
MAX_CHANGES = 2_000
#: Destinations that have numbers before the idle topics among them are looked for: some 1 KB each. Their names come
#: from clients.
MAX_DESTINATIONS = 100_000

#: Queues that hold dead letters unless a policy names others: so after a restart, too, before the next failure.
DEAD_LETTER_QUEUES = re.compile(r"(ActiveMQ\.)?DLQ(\..*)?")


def _nothing() -> None:
    """Do nothing."""


def _ignore(_destination: Destination) -> None:
    """Do nothing about a destination."""


class DestinationCounters:
    """Hold the counters of all destinations."""

    def __init__(
        self,
        *,
        on_added: Callable[[Destination], None] = _ignore,
        on_removed: Callable[[Destination], None] = _ignore,
        on_too_many: Callable[[], None] = _nothing,
    ) -> None:
        self._by_destination: dict[Destination, DestinationStats] = {}
        self.changed: set[DestinationStats] = set()
        #: To be told of counters that somebody changed.
        self.mark_changed: Callable[[DestinationStats], None] = self.changed.add
        self._removed: set[Destination] = set()
        self._published_removals: dict[Destination, int] = {}  # and with which snapshot, in that order
        self._on_added, self._on_removed = on_added, on_removed
        self._on_too_many = on_too_many  # asked to forget some when there are more than `most`
        self.limit = self.cleanup_threshold = MAX_DESTINATIONS

    def __contains__(self, destination: Destination) -> bool:
        return destination in self._by_destination

    def of(self, destination: Destination) -> DestinationStats:
        """Return the counters of a destination, new ones from zero."""
        stats = self._by_destination.get(destination)
        if stats is None:
            stats = self._by_destination[destination] = _new(destination)
            self._removed.discard(destination)
            self._published_removals.pop(destination, None)
            self.changed.add(stats)
            self._on_added(destination)
            if len(self._by_destination) > self.cleanup_threshold:
                self._on_too_many()
                self.cleanup_threshold = max(self.limit, len(self._by_destination) + self.limit // 10)
        return stats

    def find(self, destination: Destination) -> DestinationStats | None:
        """Return the counters of a destination that has some."""
        return self._by_destination.get(destination)

    def remove(self, destination: Destination) -> None:
        """Remove the counters of a deleted destination."""
        stats = self._by_destination.pop(destination, None)
        if stats is not None:
            self.changed.discard(stats)
            self._on_removed(destination)
        self._removed.add(destination)

    def destinations(self) -> list[Destination]:
        """Return all destinations that have counters."""
        return list(self._by_destination)

    def restore_changes(self, changed: list[DestinationStats], gone: list[Destination]) -> None:
        """Keep changes that could not be published for the next time."""
        self.changed.update(each for each in changed if self._by_destination.get(each.destination) is each)
        self._removed.update(each for each in gone if each not in self._by_destination)

    def note_removals_published(self, gone: Iterable[Destination], snapshot: int) -> None:
        """Note that the end of these destinations was published with this snapshot."""
        self._published_removals.update((each, snapshot) for each in gone if each not in self._by_destination)

    def removals_published_before(self, snapshot: int) -> list[Destination]:
        """Return the destinations whose end was published so long ago that nobody asks any more."""
        last = snapshot - REMOVALS_KEPT_FOR
        return [
            each for each, told in itertools.takewhile(lambda item: item[1] <= last, self._published_removals.items())
        ]

    def forget_removals(self, destinations: Iterable[Destination]) -> None:
        """Forget the end of these destinations."""
        for each in destinations:
            self._published_removals.pop(each, None)

    def take_changes(self) -> tuple[list[DestinationStats], list[Destination]]:
        """Return what changed and what was removed since the last call, the new and the oldest first."""
        # Whoever holds the numbers of a destination may change them after it was deleted: that is no news.
        changed = [each for each in self.changed if self._by_destination.get(each.destination) is each]
        gone = list(self._removed)
        self.changed.clear()
        self._removed.clear()
        if len(changed) <= MAX_CHANGES:
            return changed, gone
        changed.sort(key=attrgetter("version"))
        count = max(MAX_CHANGES, sum([not each.version for each in changed]))
        self.changed.update(changed[count:])
        return changed[:count], gone


def _new(destination: Destination) -> DestinationStats:
    """Make the counters of a new destination; options behind its name say what it is."""
    options = destination.options
    text = "&".join(f"{name}={value}" for name, value in options.items())
    is_dead = destination.is_queue and DEAD_LETTER_QUEUES.fullmatch(destination.name) is not None
    return DestinationStats(destination, Options=text, DLQ=is_dead or options.get("isDLQ") == "true")
