"""Schedule callbacks for later, once or repeatedly. Pure: the node's clock asks which are due."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

#: Cancelled timers that may wait until they are due, however few others there are.
MIN_CANCELLED = 100


@dataclass(order=True, slots=True)
class Timer:
    """One thing to be done at `due_ms` (since the epoch); the order of equals is that of their making."""

    due_ms: int
    number: int
    call: Callable[[], None] | None = field(compare=False)  #: None: cancelled
    on_cancelled: Callable[[], None] = field(compare=False)

    def cancel(self) -> None:
        """Cancel the callback, so that it is not called."""
        if self.call is not None:
            self.call = None
            self.on_cancelled()


class Timers:
    """Timers in order of time. `moved` is called when the next one is due earlier than the one before was."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._numbers = itertools.count()
        self._cancelled_count = 0  # in the heap, since it was last cleaned
        self.moved: Callable[[], None] = lambda: None

    def at(self, due_ms: int, call: Callable[[], None]) -> Timer:
        """Do it at this time (milliseconds since the epoch), or at once when that is past."""
        timer = Timer(due_ms, next(self._numbers), call, self._on_cancelled)
        heapq.heappush(self._heap, timer)
        if self._heap[0] is timer:
            self.moved()
        return timer

    def call_every(self, period_ms: int, call: Callable[[], None], now_ms: int) -> None:
        """Do it again and again, first when one period is over."""

        def again() -> None:
            self.at(self._now_ms + period_ms, again)
            call()

        self.at(now_ms + period_ms, again)

    def _on_cancelled(self) -> None:
        """Remove cancelled timers once they are most of all: they may be due in hours."""
        self._cancelled_count += 1
        if self._cancelled_count > max(MIN_CANCELLED, len(self._heap) // 2):
            self._heap = [each for each in self._heap if each.call is not None]
            heapq.heapify(self._heap)
            self._cancelled_count = 0

    @property
    def next_ms(self) -> int | None:
        """When the next one is due; None when there is none."""
        while self._heap and self._heap[0].call is None:
            heapq.heappop(self._heap)
        return self._heap[0].due_ms if self._heap else None

    def run(self, now_ms: int) -> None:
        """Call every timer that is due at this time."""
        self._now_ms = now_ms
        while (due := self.next_ms) is not None and due <= now_ms:
            timer = heapq.heappop(self._heap)
            if timer.call is not None:
                timer.call()
