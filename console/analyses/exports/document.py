"""Build the document that is exported: the content of the page, formatted as there, without its controls.

Permissions are those of the page: views and the API check them before they build a document.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from console.analyses import result_tables, run_service
from console.analyses.charts import describe_chart
from console.analyses.models import AnalysisRun
from console.analyses.questions import describe_parameters
from console.analyses.result_tables import ResultCell
from console.analyses.tables import levels_of
from console.ui.formatting import number_format, time_format
from console.ui.formatting.absolute_urls import absolute_url

#: Rows of each table: as many as a stored result has for its page. CSV and Parquet have all.
MAX_ROWS = 1_000
#: Width of a chart in CSS pixels, and the limits of its height: bars take as much as there are names.
CHART_WIDTH, CHART_HEIGHT, MAX_CHART_HEIGHT = 760, 300, 760


@dataclass(frozen=True, slots=True)
class ExportChart:
    """A chart as an image."""

    title: str
    words: str  #: its description, for readers who do not see it
    png: bytes
    width: int  #: in CSS pixels
    height: int

    @property
    def as_data(self) -> str:
        """Return the image as a data URL."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table with the rows that are exported."""

    title: str
    heads: list[tuple[str, str, bool]]  #: label, unit, and whether its values are numbers
    rows: list[list[ResultCell]]
    total: int

    @property
    def omitted(self) -> str:
        """Describe the rows that are left out; "" for none."""
        if self.total <= len(self.rows):
            return ""
        shown, total = map(number_format.format_integer, (len(self.rows), self.total))
        return f"The first {shown} of {total} rows. The page and the CSV file have all rows."


@dataclass(frozen=True, slots=True)
class ExportSection:
    """One analysis."""

    title: str
    sentence: str
    parameters: str
    facts: list[tuple[str, str]]  #: label and value
    headline: list[tuple[str, str]]
    warnings: list[str]
    charts: list[ExportChart]
    tables: list[ExportTable]
    url: str
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class ExportDocument:
    """What is exported: a title and one analysis, or several."""

    title: str
    lines: list[str]  #: below the title
    sections: list[ExportSection]
    warnings: list[str]
    url: str  #: of the page
    zone: str
    file_name: str  #: without its ending

    @property
    def footer(self) -> str:
        """Return the line at the end: the broker, the time zone, and when the file was created."""
        with timezone.override(self.zone):
            created = time_format.format_time(timezone.now())
        return f"{settings.SLUICE.broker_name} · times in {self.zone} · created by Sluice, {created}"


def document_of_run(run: AnalysisRun, result: Mapping[str, Any], zone: str, max_rows: int = MAX_ROWS) -> ExportDocument:
    """Build the document of a finished run, with times in the zone."""
    with timezone.override(zone):
        created = time_format.format_time(run.created)
        return ExportDocument(
            title=run.title,
            lines=[f"{describe_parameters(run.kind, run.request)}. Requested by {run.asked_by}, {created}."],
            sections=[section_of(run, result, zone, max_rows)],
            warnings=[],
            url=absolute_url(reverse("run", args=[run.id])),
            zone=zone,
            file_name=f"{run.kind}-{run.created:%Y%m%dT%H%M}",
        )


def section_of(run: AnalysisRun, result: Mapping[str, Any] | None, zone: str, max_rows: int) -> ExportSection:
    """Build the section of a run, with times in the zone; without a result it says why there is none."""
    with timezone.override(zone):
        parameters, url = describe_parameters(run.kind, run.request), absolute_url(reverse("run", args=[run.id]))
        if result is None:
            reason = run.reason or ("The result was deleted or is hidden." if run.is_final else "In progress.")
            return ExportSection(run.title, reason, parameters, [], [], [], [], [], url, is_failed=True)
        return ExportSection(
            title=run.title,
            sentence=result["sentence"],
            parameters=parameters,
            facts=list(_facts(result)),
            headline=[
                (each["label"], number_format.format_value(each["value"], each["unit"]))
                for each in result.get("headline", ())
            ],
            warnings=list(_warnings(result)),
            charts=[drawn for each in result["charts"] if (drawn := _chart(each, zone))],
            tables=[_table(each, result["window"], max_rows) for each in result["tables"]],
            url=url,
        )


def _facts(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Time range", time_format.format_period(*run_service.window_of(dict(result)))
    if began := run_service.recording_start_of(dict(result)):
        yield "Recorded since", time_format.format_exact_time(began)
    yield "Rows read", number_format.format_integer(result["rows_read"])
    yield "Recorded up to", time_format.format_exact_time(_fresh(result)) or "unknown"
    if levels := levels_of(result):
        yield "Read from", levels
    if completeness := run_service.completeness_of(dict(result)):
        yield "Recorded events", completeness
    yield "Analysis", f"version {result.get('definition') or 1}"
    yield "Duration", number_format.format_duration(result["seconds"])


def _fresh(result: Mapping[str, Any]) -> datetime | None:
    us = result.get("freshness_us")
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)


def _warnings(result: Mapping[str, Any]) -> Iterator[str]:
    fresh = _fresh(result)
    if fresh is not None and result["freshness_us"] < result["window"]["until_us"]:
        yield f"Data after {time_format.format_exact_time(fresh)} was not archived yet and is not included."
    if missing := run_service.missing_events_of(dict(result)):
        yield f"This result is incomplete. {missing}"
    yield from result.get("notes", ())


def _chart(chart: Mapping[str, Any], zone: str) -> ExportChart | None:
    from analytics.results import (
        chart_images,  # takes a second to load and much memory: only who draws needs it
    )

    figure = chart["figure"]
    wanted = figure.get("layout", {}).get("height") or CHART_HEIGHT
    size = CHART_WIDTH, int(min(max(wanted, CHART_HEIGHT // 2), MAX_CHART_HEIGHT))
    drawn = chart_images.png(figure, zone, size)
    return drawn and ExportChart(chart["title"], describe_chart(figure), drawn, *size)


def _table(table: Mapping[str, Any], window: Mapping[str, int], max_rows: int) -> ExportTable:
    columns: Sequence[Mapping[str, str]] = table["columns"]
    return ExportTable(
        title=table["title"],
        heads=[
            (each["label"], result_tables.UNITS.get(each["unit"], ""), each["unit"] not in ("", "time"))
            for each in columns
        ],
        rows=[result_tables.cells(row, columns, window) for row in table["rows"][:max_rows]],
        total=table["total_rows"],
    )
