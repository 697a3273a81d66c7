"""Read stored tables of results, as CSV for downloads and as rows for comparisons."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analytics.results.storage import to_plain

#: Rows read at a time.
BATCH = 5000


def csv_lines(path: Path) -> Iterator[str]:
    """Yield a stored table as CSV, in chunks of lines, the header first."""
    with pq.ParquetFile(path) as stored:
        yield _lines([stored.schema_arrow.names])
        for batch in stored.iter_batches(BATCH):
            columns = [map(_cell, column.to_pylist()) for column in batch.columns]
            yield _lines(zip(*columns, strict=True))


def rows(path: Path, columns: list[str], most: int) -> Iterator[tuple[Any, ...]]:
    """Yield at most `most` rows of a stored table, as the values of these columns."""
    left = most
    with pq.ParquetFile(path) as stored:
        for batch in stored.iter_batches(BATCH, columns=columns):
            taken = batch.slice(0, left)
            left -= taken.num_rows
            yield from zip(*([to_plain(value) for value in taken[name].to_pylist()] for name in columns), strict=True)
            if not left:
                return


def _lines(found: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(found)
    return text.getvalue()


def _cell(value: Any) -> Any:
    value = to_plain(value)
    # Spreadsheets would evaluate a text that begins like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
