"""Decide whether and when a node that had to end starts again. Pure.

One that others took for dead begins at once, unless that happens to it again and again: each time all logs move. It
waits for a store that is away. One that stepped back, as it and
another node did not reach each other, would be in the others' way again until it is reached: it waits, longer each
time.
"""

from __future__ import annotations

from brokerapp.errors import NodeIsolated, StoreUnavailable

#: Seconds until the first attempt after it stepped back, and the most between two.
FIRST_ISOLATED_PAUSE, LONGEST_ISOLATED_PAUSE = 30.0, 600.0
#: Seconds between two where the store was away. A first start ends with that: its URL may be wrong.
STORE_UNAVAILABLE_PAUSE = 1.0
#: The same of one that others took for dead again before it had run for that long; the first begins at once.
FIRST_EXPELLED_PAUSE, LONGEST_EXPELLED_PAUSE = 1.0, 60.0
#: Seconds after which a run was no short one.
STABLE_SECONDS = 60.0


class RestartBackoff:
    """Pauses between the runs of one node."""

    def __init__(self) -> None:
        self._next_isolated_pause, self._next_expelled_pause = FIRST_ISOLATED_PAUSE, 0.0
        self._has_run = False

    def delay(self, error: BaseException, expelled: bool, lasted: float) -> float | None:
        """Return seconds until the node starts again after a run of `lasted` seconds; None: it does not."""
        if isinstance(error, StoreUnavailable):
            return STORE_UNAVAILABLE_PAUSE if self._has_run else None
        self._has_run = True
        if expelled:
            rest = 0.0 if lasted > STABLE_SECONDS else self._next_expelled_pause
            self._next_expelled_pause = min(2 * rest or FIRST_EXPELLED_PAUSE, LONGEST_EXPELLED_PAUSE)
            return rest
        if not isinstance(error, NodeIsolated):
            return None
        if lasted > LONGEST_ISOLATED_PAUSE:  # it was reached for long
            self._next_isolated_pause = FIRST_ISOLATED_PAUSE
        pause, self._next_isolated_pause = (
            self._next_isolated_pause,
            min(2 * self._next_isolated_pause, LONGEST_ISOLATED_PAUSE),
        )
        return pause
