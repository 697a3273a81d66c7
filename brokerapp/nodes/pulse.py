"""Pulse: what a node knows by its own beats: whether it is a member for sure, and whether it may take others for dead.

A member that does not beat may be dead, or the store was away, so that nobody could. Who beat itself meanwhile knows.
Pure; times are seconds of one clock.
"""

from __future__ import annotations

#: How often a node beats, and looks for others that do not, while it may be silent before it is taken for dead.
BEATS = 5
#: Periods that others have to beat again once the store answers: one that found it away tries again within two.
RECOVERY_PERIODS = 3


class Pulse:
    """Of one node. A beat counts from when it was asked, as the store may have kept it since."""

    def __init__(self, timeout: float) -> None:
        self.timeout, self.period = timeout, timeout / BEATS
        self._beat_at = float("-inf")
        self._steady_since = float("inf")  # since when none was missed

    def joined(self, began: float, answered: float, store_up: float) -> None:
        """It became a member, in a store that had been up for so many seconds: before that nobody could beat."""
        self._beat_at = began
        slow = answered - began > self.period
        self._steady_since = answered if slow else answered - store_up

    def beat(self, began: float, answered: float) -> None:
        """The store took a beat."""
        if answered - self._beat_at > self.timeout - self.period:  # others may have been a period earlier
            self._steady_since = answered
        self._beat_at = max(self._beat_at, began)

    def is_late(self, now: float) -> bool:
        """Whether the next beat was to come before now."""
        return now - self._beat_at > 1.5 * self.period

    def is_sure(self, now: float) -> bool:
        """Whether no other node can have taken this one for dead yet."""
        return now - self._beat_at < self.timeout

    def may_judge(self, now: float) -> bool:
        """Whether the others could have beaten again if the store was away."""
        return self.is_sure(now) and now - self._steady_since >= RECOVERY_PERIODS * self.period
