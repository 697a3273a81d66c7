"""Tables of results as pages leaf through them: sorted by any column, a page at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.results.storage import to_plain


def read_page(path: Path, columns: list[str], sort: str, start: int, count: int) -> tuple[list[list[Any]], int]:
    """Rows of a stored table from `start` on, as the values of these columns, and how many rows there are.

    `sort` is a column, downwards after a hyphen; "" leaves the rows as they were found. What has no value comes last.
    Raises OSError or pyarrow.ArrowInvalid when the file is gone or damaged.
    """
    rows = pq.read_table(path, columns=columns, partitioning=None)
    if sort:
        order = "descending" if sort.startswith("-") else "ascending"
        rows = rows.sort_by([(sort.removeprefix("-"), order)])
    shown = rows.slice(start, count)
    values = [[to_plain(each) for each in shown[name].to_pylist()] for name in columns]
    return [list(row) for row in zip(*values, strict=True)], rows.num_rows


#: What `page` raises when there is nothing to read.
UNREADABLE = (OSError, pa.ArrowInvalid)
