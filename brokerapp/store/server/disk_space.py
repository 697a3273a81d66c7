"""Decides how much may still be written to the disk of an embedded store. Pure.

Messages and acknowledgements both make the append-only file longer, so a full disk would stop both. Messages are
therefore rejected long before it is full; the rest is for acknowledgements. A part of it is allocated to the file in
advance, so that other programs cannot take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

MIB = 1024 * 1024
#: Messages are accepted while so much is free: this share of the file system, and no more than that many bytes.
FREE_SHARE, MOST_FREE = 0.1, 256 * MIB
#: Once below, so many times as much must be free until they are accepted again: it is not to change all the time.
ENOUGH_AGAIN = 1.25
#: Share of that limit that is allocated in advance, when no more than so many times the limit is free.
RESERVE_SHARE, SCARCE = 0.5, 8
#: Shares of the reserve below which nothing is committed any more, and below which the node does not even report: a
#: server that can't write ends, and what it could still do is to be read from.
COMMIT_SHARE, REPORT_SHARE = 1 / 4, 1 / 16


class DiskLevel(IntEnum):
    """Level of free space, which decides what may still be written."""

    ENOUGH = 0  #: everything
    LOW = 1  #: acknowledgements and what moves messages, no new messages
    EXHAUSTED = 2  #: what the node reports of itself
    SPENT = 3  #: nothing


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bytes of the file system in all and free, and those allocated in advance to the append-only file."""

    total: int = 0
    free: int = 0
    reserved: int = 0
    level: DiskLevel = DiskLevel.ENOUGH
    wanted: int = 0  #: bytes of messages that did not fit above the limit when it had not been reached

    @property
    def limit(self) -> int:
        """Bytes that must be free for messages to be accepted."""
        return min(MOST_FREE, int(self.total * FREE_SHARE))

    @property
    def reserve(self) -> int:
        """Bytes to allocate in advance."""
        return int(self.limit * RESERVE_SHARE)

    @property
    def is_scarce(self) -> bool:
        """Whether it is time to allocate them, and to count what is committed between two looks."""
        return self.free < SCARCE * self.limit

    @property
    def is_low(self) -> bool:
        """Whether messages are not accepted."""
        return self.level >= DiskLevel.LOW

    @property
    def may_commit(self) -> bool:
        """Whether there is space for acknowledgements."""
        return self.level < DiskLevel.EXHAUSTED

    @property
    def may_report(self) -> bool:
        """Whether there is space for what the node reports of itself."""
        return self.level < DiskLevel.SPENT

    @property
    def shortage(self) -> str:
        """Why messages are not accepted, where they are not, as a sentence without its end."""
        again = self.limit * ENOUGH_AGAIN + self.wanted
        needed = f"{_mib(self.free)} free, messages are accepted again at {_mib(again)}"
        if self.may_commit:
            return f"the disk of the store is almost full: {needed}"
        return f"the disk of the store is full, and acknowledgements can't be stored either: {needed}"

    def accepts(self, committed: int) -> bool:
        """Return whether messages are accepted after so many bytes were committed since the measurement."""
        return not self.is_low and (not committed or self.free - committed >= self.limit)

    def has_space_for(self, size: int) -> bool:
        """Return whether so many more bytes may be committed."""
        return not self.is_low or self.free + self.reserved - size >= self.reserve * COMMIT_SHARE

    def assess(self, before: DiskLevel, needed: int = 0, wanted: int = 0) -> DiskSpace:
        """Return the same with its level, given the level before and a commit of `needed` bytes that waits for space.

        `wanted`: bytes of messages that did not fit above the limit. Without them a disk with a little more than the
        limit would refuse large messages and never be said to be low, nor be given space by a rewrite.
        """
        left, wanted = self.free + self.reserved, min(wanted, self.limit)

        def is_below(share: float, level: DiskLevel, size: int = 0) -> bool:
            return left - size < self.reserve * share * (2 if before >= level else 1)

        level = DiskLevel.ENOUGH
        if is_below(REPORT_SHARE, DiskLevel.SPENT):
            level = DiskLevel.SPENT
        elif is_below(COMMIT_SHARE, DiskLevel.EXHAUSTED, needed):
            level = DiskLevel.EXHAUSTED
        elif self.free - wanted < self.limit * (ENOUGH_AGAIN if before else 1):
            level = DiskLevel.LOW
        return DiskSpace(self.total, self.free, self.reserved, level, wanted if level else 0)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "level": int(self.level)}

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> DiskSpace:
        """Return the DiskSpace of to_json's values; without values, of a disk that is not watched."""
        return DiskSpace(**{**facts, "level": DiskLevel(facts.get("level", DiskLevel.ENOUGH))})


def _mib(size: float) -> str:
    return f"{size / MIB:,.1f} MiB"
