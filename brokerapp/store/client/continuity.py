"""Track what this process knows of a store's history, to detect that a server lost some of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.system.formats import SupportedFormats

#: The format of a broker with one store, and that of one with shards, which it gets with the first one that is added:
#: earlier versions know nothing of other shards.
FORMAT_OF_ONE_STORE, FORMAT_OF_SHARDS = 1, 2
#: The formats of what is stored. A number is added when an older version could not use it any more. The store of the
#: version before this number was kept has none, and is of format 1.
FORMATS = SupportedFormats("the store", oldest=FORMAT_OF_ONE_STORE, newest=FORMAT_OF_SHARDS)


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A point in the store's history: the server's life, the changes made until then, and the last sequence number."""

    life: str = ""
    changes: int = 0
    seq: int = 0


class Continuity:
    """Tracks the furthest point of the store's history that answers confirmed; a store behind it was rolled back.

    `waits_for_replicas`: what the primary alone has is not confirmed, and may be lost with it.
    """

    def __init__(self, waits_for_replicas: bool = False) -> None:
        self._waits_for_replicas = waits_for_replicas
        self.latest = HistoryPoint()

    def observe(self, changes: int = 0, seq: int = 0) -> None:
        """Note what the primary says that it has, unless replicas have to confirm it."""
        if not self._waits_for_replicas:
            self.advance(changes, seq)

    def advance(self, changes: int = 0, seq: int = 0) -> None:
        """Note that this many changes are made, or that a message has this sequence number."""
        known = self.latest
        if changes > known.changes or seq > known.seq:
            self.latest = HistoryPoint(known.life, max(known.changes, changes), max(known.seq, seq))

    def enter_life(self, life: str) -> None:
        """Note that a server in this life holds all that was known when it was asked."""
        if life != self.latest.life:
            self.latest = HistoryPoint(life, self.latest.changes, self.latest.seq)

    def reset(self) -> None:
        """Forget what is known of the history."""
        self.latest = HistoryPoint()


def is_behind(known: HistoryPoint, changes: int, seq: int) -> bool:
    """Return whether a server that holds this much lacks a part of a known history."""
    return changes < known.changes or seq < known.seq
