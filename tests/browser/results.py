"""Create results of analyses as a worker would store them."""

from __future__ import annotations

import json
import sqlite3
import uuid
from datetime import UTC, datetime
from typing import Any


def _insert(site: Any, table: str, row: dict[str, Any]) -> int:
    """Write a row; its number."""
    with sqlite3.connect(site.environment.data / "console.sqlite3", timeout=10) as database:
        written = database.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values())
        )
    return written.lastrowid


def _now() -> str:
    return datetime.now(UTC).isoformat(sep=" ")


def finished_run(
    site: Any, sentence: str = "It was quiet.", queue: str = "quiet", found: dict[str, Any] | None = None, **more: Any
) -> str:
    """A run of the traffic of a queue that is done, with its result, in which `found` takes the place of the usual."""
    run, now, us = uuid.uuid4(), _now(), int(datetime.now(UTC).timestamp() * 1_000_000)
    folder = site.environment.results / str(run)
    folder.mkdir(parents=True)
    name = f"queue://{queue}"
    times = ["2026-05-01T05:00:00Z", "2026-05-01T06:00:00Z"]
    line = {"type": "scatter", "name": name, "x": times, "y": [3, 4], "mode": "lines+markers", "marker": {"size": 14}}
    figure = {
        "data": [line],
        "layout": {"xaxis": {"type": "date"}, "yaxis": {"title": {"text": "messages"}}},
    }  # fmt: skip
    columns = [
        {"name": "destination", "label": "Destination", "unit": "", "about": "destination"},
        {"name": "arrived", "label": "In", "unit": "messages", "about": ""},
    ]
    result = {
        "sentence": sentence, "window": {"since_us": us - 3_600_000_000, "until_us": us}, "rows_read": 2,
        "freshness_us": us, "charts": [{"title": "Arrivals", "figure": figure}], "seconds": 1.0,
        "headline": [{"label": "Messages in", "value": 7, "unit": "messages"}],
        "tables": [
            {"title": "Traffic", "columns": columns, "rows": [[name, 7]], "total_rows": 1, "file": "traffic.parquet"}
        ],
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(result | (found or {})))
    row = {
        "id": run.hex, "kind": "traffic", "title": "Traffic", "state": "done", "stage": "",
        "request": json.dumps({"kind": "traffic", "window": "1h"}),
        "reason": "", "progress": 1, "sentence": sentence, "asked_by": "ada", "created": now, "changed": now,
        "finished": now, "pinned": 0, "worker": "", "tries": 0, "result": f"{run}/result.json",
    }  # fmt: skip
    _insert(site, "console_analysisrun", row | more)
    return str(run)


def finished_report(site: Any, name: str, **more: Any) -> int:
    """A report with one edition that is done; its number."""
    now = _now()
    report = _insert(site, "console_report", {
        "name": name, "questions": json.dumps([{"kind": "traffic", "window": "1h"}]), "cron": "0 7 * * *",
        "zone": "Europe/Berlin", "is_on": 1, "missed": "once", "roles": "[]", "addresses": "", "attach": 1,
        "document": "", "keep_days": 90, "owner": "admin", "created": now, "changed": now,
    })  # fmt: skip
    edition = _insert(site, "console_edition", {
        "report_id": report, "moment": now, "asked_by": "", "state": "done", "reason": "", "parts": 1, "missed": 0,
        "created": now, "finished": now, "mail": "", "mail_attempts": 0, "mail_detail": "",
    })  # fmt: skip
    finished_run(site, edition_id=edition, **more)
    return report
