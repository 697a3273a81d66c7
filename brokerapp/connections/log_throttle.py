"""Limit how often the log reports the same thing. Pure: the caller says what time it is."""

from __future__ import annotations

from collections.abc import Hashable

#: Seconds after which the log reports the same again: many clients try to connect again at once, and without end.
REPORT_INTERVAL_SECONDS = 60.0
#: Keys that are remembered for that; all further ones count as one: clients choose what the keys are made of.
MAX_REMEMBERED = 100


class LogThrottle:
    """Decides which occurrences are reported, and counts those that are not."""

    def __init__(self) -> None:
        self._at: dict[Hashable, float] = {}  # when it was reported last
        self._unreported: dict[Hashable, int] = {}

    def count_to_report(self, key: Hashable, now: float) -> int:
        """Return how many occurrences to report now, this one and those not reported before; 0: none yet."""
        if key not in self._at and len(self._at) >= MAX_REMEMBERED:
            self._forget_old(now)
            if len(self._at) >= MAX_REMEMBERED:
                key = None
        last = self._at.get(key)
        if last is not None and now - last < REPORT_INTERVAL_SECONDS:
            self._unreported[key] = self._unreported.get(key, 0) + 1
            return 0
        self._at[key] = now
        return self._unreported.pop(key, 0) + 1

    def _forget_old(self, now: float) -> None:
        for key, at in list(self._at.items()):
            if now - at >= REPORT_INTERVAL_SECONDS:
                del self._at[key]
                self._unreported.pop(key, None)
