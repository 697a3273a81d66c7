"""Log histograms: how durations are counted so that counts of any split add up, and percentiles are read off them.

A duration in microseconds is counted in a bucket; buckets grow by 2 ** (1 / STEPS). A percentile is the middle, by
factor, of the bucket that holds it. The exact percentile (nearest rank) is in the same bucket: the error is at most
2.2 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

#: Buckets in which a duration doubles.
STEPS = 16
#: How far a percentile may be from the exact one, as a part of it.
ERROR = 2 ** (1 / (2 * STEPS)) - 1
#: What columns of percentiles are called, and which part of all is below.
PERCENTILES = {"p50_us": 0.50, "p95_us": 0.95, "p99_us": 0.99}


def percentile(histogram: Sequence[tuple[int, int]], part: float) -> float:
    """Microseconds up to which that part lies, of pairs of bucket and count in the order of buckets."""
    wanted, below = part * sum(count for _, count in histogram), 0
    for bucket, count in histogram:
        below += count
        if below >= wanted:
            return 2 ** ((bucket + 0.5) / STEPS)
    raise ValueError("a histogram of nothing has no percentiles")


def percentiles(
    rows: pa.Table, by: Sequence[str], parts: Mapping[str, float] = PERCENTILES, count: str = "messages"
) -> pa.Table:
    """A row for each value of `by` of rows with a bucket and a count: the sum of counts, and the percentiles."""
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
