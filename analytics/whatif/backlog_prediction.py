"""Predict the backlog of a target, bucket by bucket, if other messages arrive at the same rate of consumption. Pure.

The recorded backlog is not predicted. To it the difference is added that other arrivals make in a model: a queue that
is served at a constant rate, depth = max(0, depth before + arrivals - served), Lindley's recursion in its closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Quantile of the removals in busy buckets that counts as the rate of consumption: consumers do not sustain single
#: bursts, and buckets with few arrivals do not show what consumers can do.
BUSY_QUANTILE = 0.95
#: Minimum of the seconds over which a rate is computed: a few messages at once show no rate.
MIN_BUSY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class BacklogSeries:
    """Backlog of a target before the window and at the end of each bucket, and arrivals in each bucket."""

    before: int
    depths: np.ndarray
    enqueued: np.ndarray
    known: np.ndarray  #: of each bucket, whether anything was recorded (recording_gaps.py)

    def __add__(self, other: BacklogSeries) -> BacklogSeries:
        known = self.known & other.known
        return BacklogSeries(
            self.before + other.before, self.depths + other.depths, self.enqueued + other.enqueued, known
        )


def continuous_rate(left: np.ndarray, busy: np.ndarray, seconds: int) -> np.ndarray:
    """Extrapolate the messages that left in each bucket, from the `busy` seconds between the first and the last."""
    return left * (seconds / np.clip(busy, min(MIN_BUSY_SECONDS, seconds), seconds))


def service_rate(left: np.ndarray) -> float:
    """Return the messages that leave in a bucket while consumers have work; 0 if none ever left."""
    busy = left[left > 0]
    return float(np.quantile(busy, BUSY_QUANTILE, method="higher")) if len(busy) else 0.0


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
    there = np.maximum(recorded.depths, recorded.before + np.cumsum(recorded.enqueued)) + np.cumsum(instead - arrived)
    return np.clip(recorded.depths + model, 0.0, np.maximum(0.0, there))
