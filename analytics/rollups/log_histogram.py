"""Count durations in log histograms, whose counts can be added, and compute percentiles from them.

A duration in microseconds is counted in a bucket; buckets grow by 2 ** (1 / STEPS). A percentile is the geometric
middle of the bucket that contains it. The exact percentile (nearest rank) is in the same bucket: the error is at most
2.2 %. Rollups and analyses both use these buckets and percentiles.

A negative duration is due to two clocks: one node stamped the beginning, another the end. It is counted in a negative
bucket and does not count for percentiles (`negative_durations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa

#: Number of buckets over which a duration doubles.
STEPS = 16
#: Maximum relative error of a percentile.
ERROR = 2 ** (1 / (2 * STEPS)) - 1
#: Name of a column of percentiles -> the share of durations below it.
PERCENTILES = {"p50_us": 0.50, "p95_us": 0.95, "p99_us": 0.99}


def buckets_of(us: np.ndarray) -> np.ndarray:
    """Return the bucket of each duration."""
    size = np.floor(np.log2(np.maximum(np.abs(us), 1)) * STEPS).astype(np.int64)
    return np.where(us < 0, -1 - size, size)


def percentile(histogram: Iterable[tuple[int, int]], part: float) -> float | None:
    """Return a percentile in microseconds, of pairs of bucket and count; None without non-negative durations."""
    timed = sorted(each for each in histogram if each[0] >= 0)
    wanted, below = part * sum(count for _, count in timed), 0
    for bucket, count in timed:
        below += count
        if below >= wanted:
            return 2 ** ((bucket + 0.5) / STEPS)
    return None


@dataclass(frozen=True, slots=True)
class NegativeDurations:
    """Durations that ended before they began, by the clocks of two nodes."""

    count: int
    most_us: float  #: the largest, as a positive number, within ERROR


def negative_durations(histogram: Iterable[tuple[int, int]]) -> NegativeDurations:
    """Count the negative durations of a histogram, pairs of bucket and count."""
    below = [each for each in histogram if each[0] < 0]
    most = max((-1 - bucket for bucket, _ in below), default=None)
    return NegativeDurations(sum(count for _, count in below), 0.0 if most is None else 2 ** ((most + 0.5) / STEPS))


def percentiles(
    rows: pa.Table, by: Sequence[str], parts: Mapping[str, float] = PERCENTILES, count: str = "messages"
) -> pa.Table:
    """Sum rows with a bucket and a count by the columns `by`, and compute the percentiles of each group.

    A percentile is null where all durations are below zero.
    """
    summed = rows.group_by([*by, "bucket"]).aggregate([(count, "sum")])
    ordered = summed.sort_by([(name, "ascending") for name in (*by, "bucket")])
    columns = [ordered[name].to_pylist() for name in (*by, "bucket", f"{count}_sum")]
    found: dict[str, list] = {name: [] for name in (*by, count, *parts)}
    for key, group in groupby(zip(*columns, strict=True), key=itemgetter(slice(len(by)))):
        histogram = [each[len(by) :] for each in group]
        for name, value in zip(by, key, strict=True):
            found[name].append(value)
        found[count].append(sum(each for _, each in histogram))
        for name, part in parts.items():
            found[name].append(percentile(histogram, part))
    types = {name: rows.schema.field(name).type for name in by} | {count: pa.int64()}
    return pa.table({name: pa.array(values, types.get(name, pa.float64())) for name, values in found.items()})
