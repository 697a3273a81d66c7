"""Log histograms: how durations are counted so that counts of any split add up, and percentiles are read off them.

A duration in microseconds is counted in a bucket; buckets grow by 2 ** (1 / STEPS). A percentile is the middle, by
factor, of the bucket that holds it. The exact percentile (nearest rank) is in the same bucket: the error is at most
2.2 %. The one home of buckets and percentiles, for rollups and analyses.

A duration below zero is one that two clocks make: a node stamped the beginning, another the end. It is counted in a
bucket below zero, by how much it is below, and no percentile is read off it: see `early`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa

#: Buckets in which a duration doubles.
STEPS = 16
#: How far a percentile may be from the exact one, as a part of it.
ERROR = 2 ** (1 / (2 * STEPS)) - 1
#: What columns of percentiles are called, and which part of all is below.
PERCENTILES = {"p50_us": 0.50, "p95_us": 0.95, "p99_us": 0.99}


def buckets_of(us: np.ndarray) -> np.ndarray:
    """Return the bucket of each duration."""
    size = np.floor(np.log2(np.maximum(np.abs(us), 1)) * STEPS).astype(np.int64)
    return np.where(us < 0, -1 - size, size)


def percentile(histogram: Iterable[tuple[int, int]], part: float) -> float | None:
    """Microseconds up to which that part lies, of pairs of bucket and count; None when nothing took any time."""
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
    most_us: float  #: by how much at most, within ERROR


def negative_durations(histogram: Iterable[tuple[int, int]]) -> NegativeDurations:
    """Count the negative durations of a histogram, pairs of bucket and count."""
    below = [each for each in histogram if each[0] < 0]
    most = max((-1 - bucket for bucket, _ in below), default=None)
    return NegativeDurations(sum(count for _, count in below), 0.0 if most is None else 2 ** ((most + 0.5) / STEPS))


def percentiles(
    rows: pa.Table, by: Sequence[str], parts: Mapping[str, float] = PERCENTILES, count: str = "messages"
) -> pa.Table:
    """Return a row for each value of `by` of rows with a bucket and a count: the sum of counts, and the percentiles.

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
