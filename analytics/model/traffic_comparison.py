"""Compare the messages of an hour with the range that was expected. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from analytics.model.wording import pluralize

HOUR = 3600


class ExpectedHour(NamedTuple):
    """The expected range of an hour, in whole messages, and its median."""

    low: int
    middle: int
    high: int


@dataclass(frozen=True, slots=True)
class TrafficHour:
    """The messages that arrived in an hour, and how many were expected."""

    start: int  #: seconds since the epoch
    observed: int
    expected: ExpectedHour
    is_complete: bool = True  #: False: the hour has not ended, and more may arrive

    @property
    def shortfall(self) -> int:
        """Return how many messages are missing to the expected range; 0 until the hour has ended."""
        return max(0, self.expected.low - self.observed) if self.is_complete else 0

    @property
    def excess(self) -> int:
        """Return how many messages are more than the expected range allows for the whole hour."""
        return max(0, self.observed - self.expected.high)

    @property
    def deviation(self) -> int:
        """Return how many messages are outside the expected range, on either side."""
        return max(self.shortfall, self.excess)

    def __str__(self) -> str:
        """Describe the hour: `12 messages from 14:00 to 15:00 UTC, expected 420 to 610 (usually 500)`."""
        low, middle, high = self.expected
        begin, end = (f"{datetime.fromtimestamp(each, UTC):%H:%M}" for each in (self.start, self.start + HOUR))
        span = f"from {begin} to {end} UTC" if self.is_complete else f"since {begin} UTC"
        return (
            f"{pluralize(self.observed, 'message')} {span}, expected {low:,} to {high:,} an hour (usually {middle:,})"
        )


def hour_to_judge(current: TrafficHour | None, last: TrafficHour | None) -> TrafficHour | None:
    """Return the current hour if it has more than expected for all of it, else the last complete one."""
    return current if current is not None and current.excess else last
