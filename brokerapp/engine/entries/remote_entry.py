"""Represent a message in a queue of another broker of the cluster, dispatched to a consumer of this one.

It is in no log here: the broker that keeps it is told what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from brokerapp.engine.entries.log_entry import LogEntry

#: What the logs of such entries are called, before the name of their broker and the destination.
REMOTE_LOG_PREFIX = "elsewhere://"


class EntryOwner(Protocol):
    """The broker that keeps an entry and is told what became of it."""

    def accept(self, entry: RemoteLogEntry) -> None:
        """Handle that the consumer acknowledged the entry."""

    def reject(self, entry: RemoteLogEntry) -> None:
        """Handle that the consumer cannot use the entry."""

    def expire(self, entry: RemoteLogEntry) -> None:
        """Handle that the entry expired before its consumer got it."""


@dataclass(slots=True, eq=False)
class RemoteLogEntry(LogEntry):
    """Represent an entry that another broker keeps, where `ack_id` acknowledges it."""

    owner: EntryOwner = field(kw_only=True)
    ack_id: str = ""


def accept_remote(entries: Iterable[LogEntry]) -> None:
    """Tell the brokers that keep these entries that their consumer is done with them."""
    for entry in entries:
        if isinstance(entry, RemoteLogEntry):
            entry.owner.accept(entry)
