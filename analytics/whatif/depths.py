"""Depths: what would wait at a target, bucket by bucket, when so much arrives and consumers go on as they did. Pure.

The model is a queue that is served at a constant rate: depth = max(0, depth before + arrivals - served), Lindley's
recursion, here in its closed form.
"""

from __future__ import annotations

import numpy as np

#: Of the buckets in which anything was acknowledged, the part that had no more: single bursts are not what consumers
#: can do for long, and buckets in which little came say nothing about what they could have done.
BUSY = 0.95


def service(acked: np.ndarray) -> float:
    """Messages that consumers acknowledged in a bucket when they had work; 0 when they never did."""
    busy = acked[acked > 0]
    return float(np.quantile(busy, BUSY, method="higher")) if len(busy) else 0.0


def predicted(arrived: np.ndarray, served: float, waiting: float = 0.0) -> np.ndarray:
    """What waits at the end of each bucket, when `waiting` did at the beginning of the first."""
    surplus = np.cumsum(arrived - served) + waiting
    return surplus - np.minimum(0.0, np.minimum.accumulate(surplus))
