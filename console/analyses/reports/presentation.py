"""Present reports and their sections on pages and in the audit log."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from console.access.permissions import AnyUser
from console.analyses import result_tables
from console.analyses.charts import plots
from console.analyses.questions import analyse_url
from console.analyses.reports import editions
from console.analyses.reports.content import ReportSection, sections_of
from console.analyses.reports.models import Report

#: Rows of a table in an edition: the rest is a click away, on the run's page.
ROWS = 10


def audit_fields(report: Report) -> dict[str, Any]:
    """Return a report's fields for the audit log."""
    return {
        "questions": report.questions, "schedule": str(report.timing or "none"), "on": report.is_on,
        "missed": report.missed, "roles": report.roles, "addresses": report.addresses, "attached": report.document,
        "keep days": report.keep_days,
    }  # fmt: skip


def row_of(report: Report, user: AnyUser) -> dict[str, Any]:
    """Return a report's row for the list, as the user may see it."""
    good = editions.last_successful(report)
    sentences = [part.sentence for part in sections_of(good, user)] if good else []
    return {
        "report": report, "latest": report.editions.first(), "good": good, "sentences": sentences,
        "is_overdue": report.due is not None and report.due <= timezone.now(),
    }  # fmt: skip


def section_context(number: int, part: ReportSection, zone: str) -> dict[str, Any]:
    """Build the context of a section: its charts and the first rows of its first table, in the report's time zone."""
    result = part.result or {"charts": [], "tables": [], "window": {"since_us": 0, "until_us": 0}}
    with timezone.override(zone):
        tables = [
            (table, [result_tables.cells(row, table["columns"], result["window"]) for row in table["rows"][:ROWS]])
            for table in result["tables"][:1]
        ]
    return {
        "part": part,
        "analyse_url": analyse_url(part.run),
        "plots": plots(result, f"figure-{number}", zone),
        "tables": tables,
    }
