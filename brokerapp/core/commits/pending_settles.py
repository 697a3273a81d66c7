"""Hold what clients acknowledged until a commit removes it from the store."""

from __future__ import annotations

from collections.abc import Sequence

from brokerapp.engine.entries.log_entry import UNCOMMITTED
from brokerapp.store import PendingWrite, SettledEntry


class PendingSettles:
    """Entries to remove, in the order of their acknowledgement. True while some of them can be.

    A message that was dispatched while the store commits it can be acknowledged before it is stored. Its entry is kept
    until it is.
    """

    def __init__(self) -> None:
        self._entries: list[SettledEntry] = []
        self._uncommitted: list[SettledEntry] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, entries: Sequence[SettledEntry]) -> bool:
        """Hold these entries, too; return whether they are the first."""
        are_first = bool(entries) and not self._entries
        self._entries += entries
        return are_first

    def take(self) -> list[SettledEntry]:
        """Return those that the store has, which are then held no longer."""
        entries, self._entries = self._entries, []
        return self.keep_uncommitted(entries)

    def keep_uncommitted(self, entries: Sequence[SettledEntry]) -> list[SettledEntry]:
        """Return those of these entries that the store has; hold the others until it has them."""
        stored = [entry for entry in entries if 0 < entry.seq < UNCOMMITTED]
        if len(stored) < len(entries):
            self._uncommitted += [entry for entry in entries if entry.seq == UNCOMMITTED]
        return stored

    def on_committed(self) -> None:
        """Go on with those that the store has by now; what it will never have is forgotten."""
        if self._uncommitted:
            self._entries += [entry for entry in self._uncommitted if 0 < entry.seq < UNCOMMITTED]
            self._uncommitted = [entry for entry in self._uncommitted if entry.seq == UNCOMMITTED]


def settles_uncommitted(unit: PendingWrite) -> bool:
    """Return whether a write settles what is on its way to the store."""
    return bool(unit.settles) and any(entry.seq == UNCOMMITTED for entry in unit.settles)
