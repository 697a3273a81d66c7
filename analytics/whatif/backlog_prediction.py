"""Depths: what would wait at a target, bucket by bucket, when something else arrives and consumers go on as they did.

What waited is not predicted: it is on record. A draft changes it by as much as the model says that other arrivals make
of it. The model is a queue that is served at a constant rate: depth = max(0, depth before + arrivals - served),
Lindley's recursion, here in its closed form. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Of the buckets in which anything left, the part that had no more: single bursts are not what consumers
#: can do for long, and buckets in which little came say nothing about what they could have done.
BUSY = 0.95
#: Seconds over which messages leave at least: a few that leave at once say nothing of a rate.
SHORTEST = 60


@dataclass(frozen=True, slots=True)
class BacklogSeries:
    """Backlog of a target before the window and at the end of each bucket, and arrivals in each bucket."""

    before: int
    depths: np.ndarray
    came: np.ndarray
    known: np.ndarray  #: of each bucket, whether anything was recorded (recording_gaps.py)

    def __add__(self, other: BacklogSeries) -> BacklogSeries:
        known = self.known & other.known
        return BacklogSeries(self.before + other.before, self.depths + other.depths, self.came + other.came, known)


def continuous_rate(left: np.ndarray, busy: np.ndarray, seconds: int) -> np.ndarray:
    """Messages that would have left in each bucket of so many seconds, had they left all the time as they did in the
    `busy` seconds from the first to the last.
    """
    return left * (seconds / np.clip(busy, min(SHORTEST, seconds), seconds))


def service_rate(left: np.ndarray) -> float:
    """Messages that leave in a bucket when consumers have work, acknowledged or given up; 0 when none ever did."""
    busy = left[left > 0]
    return float(np.quantile(busy, BUSY, method="higher")) if len(busy) else 0.0


def predict_backlog(arrived: np.ndarray, served: float | np.ndarray, waiting: float = 0.0) -> np.ndarray:
    """Predict the backlog at the end of each bucket, from arrivals, service rate and the backlog at the beginning."""
    surplus = np.cumsum(arrived - served) + waiting
    return surplus - np.minimum(0.0, np.minimum.accumulate(surplus))


def predict_change(recorded: BacklogSeries, arrived: np.ndarray, instead: np.ndarray, served: float) -> np.ndarray:
    """Predict the backlog at the end of each bucket if `instead` had arrived and not `arrived`.

    The result never exceeds the messages that were there. While nothing was recorded, nothing is served.
    """
    rate = served * recorded.known
    model = predict_backlog(instead, rate, recorded.before) - predict_backlog(arrived, rate, recorded.before)
    there = np.maximum(recorded.depths, recorded.before + np.cumsum(recorded.came)) + np.cumsum(instead - arrived)
    return np.clip(recorded.depths + model, 0.0, np.maximum(0.0, there))
