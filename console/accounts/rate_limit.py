"""Limit requests with a token bucket for each client.

Counted by each process for itself: a limit is there to keep a process answering.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

#: Askers remembered; then those are forgotten whose buckets are full again.
MAX_CLIENTS = 10_000


@dataclass(slots=True)
class RateLimit:
    """Allow so many requests per second on average, and at most `burst` at once."""

    per_second: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)  # asker -> requests left, at this time
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acquire(self, asker: str, weight: int = 1) -> int:
        """Take a request out of the bucket and return 0, or return the seconds until the request is allowed.

        A request may weigh as much as several, up to `burst`.
        """
        now = self.clock()
        with self._lock:
            left, at = self._buckets.get(asker, (float(self.burst), now))
            left = min(float(self.burst), left + (now - at) * self.per_second)
            if left < weight:
                self._buckets[asker] = (left, now)
                return max(1, math.ceil((weight - left) / self.per_second))
            if len(self._buckets) >= MAX_CLIENTS:
                self._drop_full_buckets(now)
            self._buckets[asker] = (left - weight, now)
            return 0

    def _drop_full_buckets(self, now: float) -> None:
        full = self.burst / self.per_second
        self._buckets = {asker: (left, at) for asker, (left, at) in self._buckets.items() if now - at < full}
