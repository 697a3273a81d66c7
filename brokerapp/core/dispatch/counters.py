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
    """Nobody does anything about it."""


def _ignore(_destination: Destination) -> None:
    """Nobody wants to know."""


class DestinationCounters:
    """Numbers by destination."""

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
        """The numbers of a destination, from zero for a new one."""
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
        """The numbers of a destination that has some."""
        return self._by_destination.get(destination)

    def remove(self, destination: Destination) -> None:
        """The destination is deleted."""
        stats = self._by_destination.pop(destination, None)
        if stats is not None:
            self.changed.discard(stats)
            self._on_removed(destination)
        self._removed.add(destination)

    def destinations(self) -> list[Destination]:
        """All destinations that have numbers."""
        return list(self._by_destination)

    def restore_changes(self, changed: list[DestinationStats], gone: list[Destination]) -> None:
        """Changes that were taken but could not be told."""
        self.changed.update(each for each in changed if self._by_destination.get(each.destination) is each)
        self._removed.update(each for each in gone if each not in self._by_destination)

    def note_removals_published(self, gone: Iterable[Destination], snapshot: int) -> None:
        """The end of these was told with this snapshot."""
        self._published_removals.update((each, snapshot) for each in gone if each not in self._by_destination)

    def removals_published_before(self, snapshot: int) -> list[Destination]:
        """Those whose end was told so long before this snapshot that nobody needs to be told any more."""
        last = snapshot - REMOVALS_KEPT_FOR
        return [
            each for each, told in itertools.takewhile(lambda item: item[1] <= last, self._published_removals.items())
        ]

    def forget_removals(self, destinations: Iterable[Destination]) -> None:
        """Nobody is told of the end of these any more."""
        for each in destinations:
            self._published_removals.pop(each, None)

    def take_changes(self) -> tuple[list[DestinationStats], list[Destination]]:
        """What changed and what is gone since the last call: of very much what is new, and was told of longest ago."""
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
    """Numbers of a new destination, and what the options behind its name say about it."""
    options = destination.options
    text = "&".join(f"{name}={value}" for name, value in options.items())
    is_dead = destination.is_queue and DEAD_LETTER_QUEUES.fullmatch(destination.name) is not None
    return DestinationStats(destination, Options=text, DLQ=is_dead or options.get("isDLQ") == "true")
