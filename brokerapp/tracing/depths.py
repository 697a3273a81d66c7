"""Records depths as trace events: of all logs with messages when a node starts, when it stops and at each full hour,
and each minute of those that changed.

So a reader of one hour needs no other one to know the depths in it to the minute. The start of the broker, when no node
ran before, is recorded, too. Each node records its own logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ALL, CHANGED, DEPTH

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US


class DepthEvent:
    """Stands for a count in the place of a message: it has no id, and its size is the count."""

    __slots__ = ("facts",)

    def __init__(self, count: int, now_us: int) -> None:
        self.facts = ("", count, now_us)


class DepthRecorder:
    """Records the depths of one node's logs."""

    def __init__(self, recorder: TraceRecorder) -> None:
        self._recorder = recorder
        self._noted_us = 0  # when that was last done
        self._known: dict[str, int] = {}  # what was noted then of logs that held anything

    def is_due(self, now_us: int) -> bool:
        """Return whether a minute began since depths were recorded, also when the clock was set back."""
        return now_us // MINUTE_US != self._noted_us // MINUTE_US

    def record(self, now_us: int, depths: Mapping[str, int], why: str = "") -> None:
        """Record these depths, after all events so far and before all later ones.

        `why` is the reason for which all that hold anything are noted; "" to do so when an hour began.
        """
        every = why or (ALL if now_us // HOUR_US != self._noted_us // HOUR_US else "")
        holding = {log: depth for log, depth in depths.items() if depth > 0}
        # All that was noted is earlier: a microsecond tells them apart.
        self._recorder.since_us = ts_us = now_us + 1
        for log, depth in holding.items():
            if every:
                self._event(ts_us, log, depth, every)
            elif self._known.get(log) != depth:
                self._event(ts_us, log, depth, CHANGED)
        for log in self._known.keys() - holding.keys():
            self._event(ts_us, log, 0, CHANGED)
        self._noted_us, self._known = now_us, holding

    def forget(self, logs: Iterable[str]) -> None:
        """Forget these logs: another node records their depths."""
        for log in logs:
            self._known.pop(log, None)

    def _event(self, ts_us: int, log: str, depth: int, reason: str) -> None:
        self._recorder.record(DEPTH, ts_us, (DepthEvent(depth, ts_us),), (log,), log, None, reason)
