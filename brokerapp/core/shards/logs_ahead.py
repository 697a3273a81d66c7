"""Know which logs something goes to that is on its way by another shard, and who has to wait for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class LogsAhead:
    """Counts writes to several shards whose coordinators have not done their parts, by the other logs that they go to.

    All that go to one log at a time have the same coordinator: it does them in the order in which they were asked, and
    so they come to the log in this order without waiting for each other. All else that goes to the log waits.
    """

    def __init__(self) -> None:
        self._writes: Counter[str] = Counter()
        self._coordinators: dict[str, int] = {}

    def add(self, logs: Iterable[str], coordinator: int) -> None:
        """Know of a write to these logs."""
        for log in logs:
            self._writes[log] += 1
            self._coordinators[log] = coordinator

    def remove(self, logs: Iterable[str]) -> None:
        """Forget a write to these logs."""
        for log in logs:
            self._writes[log] -= 1
            if not self._writes[log]:
                del self._writes[log], self._coordinators[log]

    def hold_up(self, logs: Iterable[str], coordinator: int | None = None) -> bool:
        """Return whether what goes to these logs has to wait. `coordinator`: of a write to several shards."""
        ahead = self._coordinators
        return any(ahead[log] != coordinator for log in logs if log in ahead)
