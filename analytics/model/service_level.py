"""Judge how many messages were acknowledged in time: attainment, error budget and burn rate of an objective. Pure.

A message counts when it is acknowledged or fails (FAILURES of model/measures.py), and while it waits longer than the
objective allows. It was in time if it was acknowledged within that time, measured from its arrival at the broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

MINUTE, HOUR, DAY = 60, 3600, 86400
#: Widths of cells, the widest first.
WIDTHS = (DAY, HOUR, MINUTE)
#: Pairs of windows in seconds. Both of a pair must burn fast: the long one says that it matters, the short one that it
#: still happens. 14.4 over the first spends 2% of the budget of 30 days in an hour, 6 over the second 5% in six hours.
FAST, SLOW = (HOUR, 5 * MINUTE), (6 * HOUR, 30 * MINUTE)
FAST_THRESHOLD, SLOW_THRESHOLD = 14.4, 6


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Messages by what became of them in a time range."""

    within: int = 0  #: acknowledged in time
    late: int = 0  #: acknowledged later
    failed: int = 0  #: dead-lettered, expired or dropped
    overdue: int = 0  #: not acknowledged yet, and already late; at least so many

    @property
    def missed(self) -> int:
        """Return how many messages missed the objective."""
        return self.late + self.failed + self.overdue

    @property
    def total(self) -> int:
        """Return how many messages count."""
        return self.within + self.missed

    def plus(self, other: Outcomes) -> Outcomes:
        """Return the sum of both."""
        return Outcomes(
            self.within + other.within,
            self.late + other.late,
            self.failed + other.failed,
            self.overdue + other.overdue,
        )

    @property
    def attainment(self) -> float | None:
        """Return the share of messages in time; None without messages."""
        return self.within / self.total if self.total else None


def is_met(found: Outcomes, percent: float) -> bool | None:
    """Return whether the share of messages in time is as high as demanded; None without messages."""
    return Fraction(100 * found.within, found.total) >= Fraction(str(percent)) if found.total else None


def burn_rate(found: Outcomes, percent: float) -> float:
    """Return how fast the error budget is spent: 1 spends all of it by the end of the period, 0 none."""
    # Shares have few decimals: 100 - 99.9 is 0.1 here, so that a budget that is just spent is not exceeded.
    return 100 * found.missed / found.total / round(100 - percent, 9) if found.total else 0.0


def budget_left(found: Outcomes, percent: float) -> float:
    """Return the share of the error budget that is left; below 0 if more was spent."""
    return 1 - burn_rate(found, percent)


def cells_between(start: int, end: int, minutes_since: int) -> Mapping[int, Sequence[int]]:
    """Return the starts of the widest cells that cover a time range, by their width, all in seconds.

    The range begins at a full minute, before `minutes_since` at a full hour, and includes the cell that contains `end`.
    """
    found: dict[int, list[int]] = {width: [] for width in WIDTHS}
    at = start // HOUR * HOUR if start < minutes_since else start // MINUTE * MINUTE
    while at < end:
        width = next(each for each in WIDTHS if at % each == 0 and (at + each <= end or each == MINUTE))
        if width == MINUTE and at < minutes_since:
            width = HOUR  # no cells of minutes are kept for that time
        found[width].append(at)
        at += width
    return found


def overdue(depth: int, arrived: int) -> int:
    """Return how many messages wait longer than allowed, at least: those that did not arrive since."""
    return max(0, depth - arrived)
