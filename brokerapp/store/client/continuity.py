"""Continuity: what this process knows of a store's history, and whether a server still holds it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.errors import ConfigurationRefused

#: The format of what is stored: raised when an older version could not use it any more. The store of the version
#: before this number was kept has none, and is of format 1.
FORMAT = 1
#: The oldest format that this version can use.
OLDEST_FORMAT = 1


def check_format(found: int) -> None:
    """Raise ConfigurationRefused for a store whose format this version of Sluice cannot use."""
    if found > FORMAT:
        raise ConfigurationRefused(
            f"the store has format {found}, and this version of Sluice supports formats up to {FORMAT}: "
            "use the newer version that wrote it"
        )
    if found < OLDEST_FORMAT:
        raise ConfigurationRefused(
            f"the store has format {found}, and this version of Sluice supports formats from {OLDEST_FORMAT}: "
            "start an earlier version on it first, which upgrades it"
        )


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A point of the history: the life of the server it was seen in, changes made until then, and the last number."""

    life: str = ""
    changes: int = 0
    seq: int = 0


class Continuity:
    """The furthest point that answers of the store told of. What they told is durable, or the store was rolled back."""

    def __init__(self) -> None:
        self.latest = HistoryPoint()

    def advance(self, changes: int = 0, seq: int = 0) -> None:
        """The store answered that so many changes are made, or that a message has this number."""
        known = self.latest
        if changes > known.changes or seq > known.seq:
            self.latest = HistoryPoint(known.life, max(known.changes, changes), max(known.seq, seq))

    def enter_life(self, life: str) -> None:
        """A server in this life holds all that was known when it was asked."""
        if life != self.latest.life:
            self.latest = HistoryPoint(life, self.latest.changes, self.latest.seq)

    def reset(self) -> None:
        """Know nothing any more."""
        self.latest = HistoryPoint()


def is_behind(known: HistoryPoint, changes: int, seq: int) -> bool:
    """Whether a server that holds this much of a known history lacks a part of it."""
    return changes < known.changes or seq < known.seq
