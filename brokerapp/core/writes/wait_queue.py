"""Full places: a queue, topic or named subscription at its bound, or the store, each with those who wait there."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from brokerapp.model.destination import Destination
from brokerapp.store import SHARED

if TYPE_CHECKING:
    from brokerapp.core.writes.client_write import ClientWrite

#: Sends tried at once when a place has room again: a try costs the store a call, whether it succeeds or not.
MAX_AT_ONCE = 256


class BlockedSend:
    """A send at a full place."""

    __slots__ = ("place", "since_ms", "tried", "unit", "until_ms")

    def __init__(self, unit: ClientWrite, place: WaitQueue, since_ms: int, until_ms: int | None) -> None:
        self.unit, self.place, self.since_ms, self.until_ms = unit, place, since_ms, until_ms
        self.tried = False  #: it is on its way to the store once more

    def is_tried(self) -> None:
        """It goes to the store once more."""
        self.tried = True
        self.place.tried += 1

    def was_tried(self) -> None:
        """It is not on its way any more, if it was."""
        if self.tried:
            self.tried = False
            self.place.tried -= 1


class WaitQueue:
    """A queue, a topic, or the store, without room for those who wait."""

    __slots__ = ("at_once", "name", "row", "since_ms", "tried", "tried_ms", "warned_ms")

    def __init__(self, name: str, now_ms: int) -> None:
        self.name, self.since_ms, self.tried_ms, self.warned_ms = name, now_ms, now_ms, 0
        self.row: dict[BlockedSend, None] = {}  # in order
        self.tried = 0  #: of them, on their way to the store
        self.at_once = 1

    def try_more(self) -> None:
        """It went well so far: more at once the next time."""
        self.at_once = min(2 * self.at_once, MAX_AT_ONCE)

    def fitting(self, room: int) -> list[BlockedSend]:
        """The first in the row, as many as are to try at once; no more than what has room, in bytes, and the next."""
        fitting = []
        for each in islice(self.row, self.at_once):
            if room <= 0:
                break
            fitting.append(each)
            room -= each.unit.size
        return fitting

    def blamed(self, unit: ClientWrite) -> Destination:
        """Where the wait is counted: at what is full, else where the message was sent."""
        return unit.placed[0].destination if self.name in SHARED else Destination.parse(self.name)
