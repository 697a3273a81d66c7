"""Read pages of stored tables, sorted by any column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.results.storage import to_plain


def read_page(path: Path, columns: list[str], sort: str, start: int, count: int) -> tuple[list[list[Any]], int]:
    """Return `count` rows of a stored table from `start` on, with these columns, and the number of all rows.

    `sort` is a column, descending after a hyphen; "" keeps the stored order. Null values come last. Raises OSError or
    pyarrow.ArrowInvalid if the file is missing or damaged.
    """
    rows = pq.read_table(path, columns=columns, partitioning=None)
    if sort:
        order = "descending" if sort.startswith("-") else "ascending"
        rows = rows.sort_by([(sort.removeprefix("-"), order)])
    shown = rows.slice(start, count)
    values = [[to_plain(each) for each in shown[name].to_pylist()] for name in columns]
    return [list(row) for row in zip(*values, strict=True)], rows.num_rows


#: Errors that read_page raises for a missing or damaged file.
UNREADABLE = (OSError, pa.ArrowInvalid)
