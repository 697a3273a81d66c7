"""Represent the logs that one append of a message goes to.

The store numbers what it appends and keeps a message once for all logs of an append, so none may be in it twice: a
way that leads to one queue twice has two groups. All logs of a group are of one family, and so in one shard.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.model.message import RoutedCopy


class AppendGroup:
    """Queues that get a copy of the same message, each once: as the broker, the store and the recorder name them."""

    __slots__ = ("droppable", "family", "logs", "names", "rows", "shared")

    def __init__(self, family: str = "") -> None:
        self.family = family  #: of all of them, where the broker has several shards
        self.logs: dict[MessageLog, None] = {}
        self.rows: list[tuple[str, str, str]] = []  #: name, original and shown destination, see PendingWrite
        self.names: list[str] = []
        self.shared = False  #: the store keeps the message once for all of them
        self.droppable: list[tuple[int, int]] = []  #: first and last, from 1, of those that may be

    def add(self, log: MessageLog, copy: RoutedCopy, droppable: bool) -> None:
        """Add a queue."""
        self.logs[log] = None
        self.shared = len(self.logs) > 1
        if droppable:
            number = len(self.logs)
            follows = self.droppable and self.droppable[-1][1] == number - 1
            first = self.droppable.pop()[0] if follows else number
            self.droppable.append((first, number))
        self.names.append(log.name)
        original, shown = (each.stomp if each else "" for each in (copy.original, copy.shown))
        self.rows.append((log.name, original, shown))

    def without_rows(self, numbers: Collection[int]) -> AppendGroup:
        """Return the group without the rows of these numbers, which count from 1."""
        rest = AppendGroup(self.family)
        rest.shared = self.shared
        remains = [number not in numbers for number in range(1, len(self.rows) + 1)]
        rest.logs = dict.fromkeys(itertools.compress(self.logs, remains))
        rest.rows, rest.names = (
            list(itertools.compress(self.rows, remains)),
            list(itertools.compress(self.names, remains)),
        )
        return rest
