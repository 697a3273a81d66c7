"""Represent the logs that one append of a message goes to.

The store numbers what it appends and keeps a message once for all logs of an append, so none may be in it twice: a
way that leads to one queue twice has two groups. All logs of a group are in one shard.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.model.message import RoutedCopy


class AppendGroup:
    """Queues that get a copy of the same message, each once: as the broker, the store and the recorder name them."""

    __slots__ = ("droppable", "logs", "names", "place", "rows", "shared")

    def __init__(self, place: Hashable = None) -> None:
        self.place = place  #: of all of them, where the broker has several shards: the shard, and their family
        self.logs: dict[MessageLog, None] = {}
        self.rows: list[tuple[str, str, str]] = []  #: name, original and shown destination, see PendingWrite
        self.names: list[str] = []
        self.shared = False  #: the store keeps the message once for all of them
        self.droppable: list[tuple[int, int]] = []  #: first and last, from 1, of those that may be

    def add(self, log: MessageLog, copy: RoutedCopy, droppable: bool) -> None:
        """Add a queue."""
        original, shown = (each.stomp if each else "" for each in (copy.original, copy.shown))
        self._add_row(log, (log.name, original, shown), droppable)

    def _add_row(self, log: MessageLog, row: tuple[str, str, str], droppable: bool) -> None:
        self.logs[log] = None
        self.shared = len(self.logs) > 1
        if droppable:
            number = len(self.logs)
            follows = self.droppable and self.droppable[-1][1] == number - 1
            first = self.droppable.pop()[0] if follows else number
            self.droppable.append((first, number))
        self.names.append(log.name)
        self.rows.append(row)

    def divide_by(self, shard_of: Callable[[str], int]) -> list[AppendGroup]:
        """Return groups of those of its queues that are in one shard; itself if all are."""
        if not self.shared or len(set(map(shard_of, self.names))) == 1:
            return [self]
        parts: dict[int, AppendGroup] = {}
        for number, (log, row) in enumerate(zip(self.logs, self.rows, strict=True), start=1):
            part = parts.setdefault(shard_of(log.name), AppendGroup(self.place))
            part._add_row(log, row, any(first <= number <= last for first, last in self.droppable))
        return list(parts.values())

    def without_rows(self, numbers: Collection[int]) -> AppendGroup:
        """Return the group without the rows of these numbers, which count from 1."""
        rest = AppendGroup(self.place)
        rest.shared = self.shared
        remains = [number not in numbers for number in range(1, len(self.rows) + 1)]
        rest.logs = dict.fromkeys(itertools.compress(self.logs, remains))
        rest.rows, rest.names = (
            list(itertools.compress(self.rows, remains)),
            list(itertools.compress(self.names, remains)),
        )
        return rest
