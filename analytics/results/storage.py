"""Define the results of analyses, and store them atomically in `results/<run id>/`.

result.json is what a page shows; each table is stored beside it in full as Parquet, under the table's name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.requests.request import TimeWindow
from analytics.results import charts
from brokerapp.system import atomic_files

RESULT = "result.json"
#: Rows of a table in result.json; the Parquet file has all.
SHOWN_ROWS = 1000


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result's table.

    `unit` is how its values are formatted: messages, bytes, ms, seconds, rate (per second), part (of 1), change (a
    signed part), times, count, time (a date and time), or "" for text. `about` is what its texts name, so that a page
    links them: destination, client, message.
    """

    name: str
    label: str
    unit: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows of a result, the most important first."""

    name: str
    title: str
    columns: tuple[ResultColumn, ...]
    rows: pa.Table

    def to_json(self) -> dict[str, Any]:
        """Return the table as a page shows it."""
        shown = self.rows.select([column.name for column in self.columns]).slice(0, SHOWN_ROWS)
        columns = [[to_plain(value) for value in column.to_pylist()] for column in shown.columns]
        return {
            "title": self.title,
            "columns": [
                {"name": each.name, "label": each.label, "unit": each.unit, "about": each.about}
                for each in self.columns
            ],
            "rows": [list(row) for row in zip(*columns, strict=True)],
            "total_rows": self.rows.num_rows,
            "file": f"{self.name}.parquet",
        }


@dataclass(frozen=True, slots=True)
class HeadlineFigure:
    """One of the few most important figures of a result; `unit` as in ResultColumn."""

    label: str
    value: float | None
    unit: str = "count"


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job: sentence, headline figures, charts, tables and notes."""

    sentence: str
    rows_read: int
    charts: tuple[tuple[str, dict[str, Any]], ...] = ()  #: title and Plotly figure
    tables: tuple[ResultTable, ...] = ()
    notes: tuple[str, ...] = ()  #: limitations of the result
    about: Mapping[str, Any] = field(default_factory=dict)  #: the definitions of a what-if analysis, as plain values
    headline: tuple[HeadlineFigure, ...] = ()  #: figures at the top of a mail


def result_path(run_id: str) -> str:
    """Return the path of a run's result, relative to the folder of results."""
    return f"{run_id}/{RESULT}"


def load_result(root: Path, run_id: str) -> dict[str, Any] | None:
    """Return the result of a run; None when there is none yet."""
    try:
        return json.loads((root / result_path(run_id)).read_bytes())
    except FileNotFoundError:
        return None


def save_result(
    root: Path,
    run_id: str,
    findings: JobResult,
    *,
    window: TimeWindow,
    fresh_until_us: int | None,
    seconds: float,
    definition: int = 1,
    began_us: int | None = None,
    completeness: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Store the result of a run and return it.

    `fresh_until_us`: the time up to which all traffic was recorded. `definition`: the version of the analysis.
    `began_us`: when recording began. `completeness`: what could not be read (completeness.py). `levels`: numbers of
    days and hours that were read from tables, and seconds of raw events.
    """
    charts.assign_colours([figure for _, figure in findings.charts])
    result = {
        "sentence": findings.sentence,
        "window": {"since_us": window.since_us, "until_us": window.until_us},
        "headline": [asdict(each) for each in findings.headline],
        "notes": list(findings.notes),
        "about": dict(findings.about),
        "rows_read": findings.rows_read,
        "freshness_us": fresh_until_us,
        "began_us": began_us,
        "completeness": completeness and dict(completeness),
        "levels": levels and dict(levels),
        "definition": definition,
        "charts": [{"title": title, "figure": figure} for title, figure in findings.charts],
        "tables": [table.to_json() for table in findings.tables],
        "seconds": round(seconds, 3),
    }
    atomic_files.make_folder(root)
    staged = root / f".{run_id}.{os.getpid()}.tmp"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    try:
        for table in findings.tables:
            pq.write_table(table.rows, staged / f"{table.name}.parquet", compression="zstd")
        atomic_files.replace(staged / RESULT, json.dumps(result).encode())
        if not (root / run_id).exists():  # else another worker has executed the same run
            staged.rename(root / run_id)
            atomic_files.sync(root)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return result


def to_plain(value: Any) -> Any:
    """Convert a value for JSON: dates and times to ISO 8601."""
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value
