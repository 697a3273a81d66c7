"""RemoteEntry: a message in a queue of another broker of the cluster, given to a consumer of this one.

It has no place in any log here: what becomes of it is told to the broker that keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from brokerapp.engine.entries.log_entry import LogEntry

#: What the logs of such entries are called, before the name of their broker and the destination.
REMOTE_LOG_PREFIX = "elsewhere://"


class EntryOwner(Protocol):
    """The broker that keeps it."""

    def accept(self, entry: RemoteLogEntry) -> None:
        """Its consumer has acknowledged it."""

    def reject(self, entry: RemoteLogEntry) -> None:
        """Its consumer cannot use it."""

    def expire(self, entry: RemoteLogEntry) -> None:
        """Its time was over before its consumer had it."""


@dataclass(slots=True, eq=False)
class RemoteLogEntry(LogEntry):
    """An entry that is kept elsewhere, where it is acknowledged by `ack_id`."""

    owner: EntryOwner = field(kw_only=True)
    ack_id: str = ""


def accept_remote(entries: Iterable[LogEntry]) -> None:
    """Tell the brokers that keep these entries that their consumer is done with them."""
    for entry in entries:
        if isinstance(entry, RemoteLogEntry):
            entry.owner.accept(entry)
