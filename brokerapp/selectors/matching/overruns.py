"""Tracks conditions that take too long for some messages: they have no result there, and are disabled if it repeats.

The node does nothing else while it evaluates a condition, and every client that may subscribe can send one.
"""

from __future__ import annotations

import logging

logger = logging.getLogger(__name__)

#: How often a condition may take too long. More than once, as one odd message proves little.
MAX_OVERRUNS = 3
#: Seconds that all conditions together may waste so, of which each one that ends in time earns some back. Where that is
#: used up each has but a short moment, still some ten times what is usual: else somebody brought ten thousand of them.
MAX_WASTE = 1.0
EARNED = 0.0005
LEAST_MOMENT = 0.002


class SlowConditionTracker:
    """Counts how often a condition took too long, and disables it."""

    __slots__ = ("_count", "_what")

    _wasted = 0.0  # seconds, by all

    def __init__(self, what: str) -> None:
        self._what, self._count = what, 0

    @property
    def is_disabled(self) -> bool:
        """Whether it is not to be asked any more."""
        return self._count >= MAX_OVERRUNS

    @staticmethod
    def moment(most: float) -> float:
        """Return the seconds that a condition may take now."""
        return max(LEAST_MOMENT, min(most, MAX_WASTE - SlowConditionTracker._wasted))

    def happened(self, seconds: float) -> None:
        """Record that it took too long once more, and how long."""
        self._count += 1
        SlowConditionTracker._wasted = min(MAX_WASTE, SlowConditionTracker._wasted + seconds)
        end = "; it has no result from now on" if self.is_disabled else ""
        logger.warning("%.200s took too long for a message%s", self._what, end)

    @staticmethod
    def record_success() -> None:
        """Record that a condition was evaluated in time."""
        if SlowConditionTracker._wasted:
            SlowConditionTracker._wasted = max(0.0, SlowConditionTracker._wasted - EARNED)
