"""Build the content of an edition: a section for each analysis, for its page and its mail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from analytics.requests.catalogue import SQL
from brokerapp.model.destination import Destination
from console.access.permissions import AnyUser
from console.analyses import run_service
from console.analyses.models import AnalysisRun
from console.analyses.questions import describe_parameters, is_readable, scope_of
from console.analyses.reports.models import Edition, Report
from console.analyses.tables import levels_of


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One analysis of an edition."""

    run: AnalysisRun
    words: str  #: its parameters
    result: Mapping[str, Any] | None  #: None when it has none

    @property
    def sentence(self) -> str:
        """Return the summary of the result, or why there is no result."""
        if self.result is not None:
            return self.result["sentence"]
        return self.run.reason or ("The result was deleted or is hidden." if self.run.is_final else "In progress.")

    @property
    def fresh(self) -> datetime | None:
        """Return the time up to which traffic was recorded, if the time range ends later."""
        us = (self.result or {}).get("freshness_us")
        if us is None or us >= self.result["window"]["until_us"]:
            return None
        return datetime.fromtimestamp(us / 1e6, UTC)

    @property
    def began(self) -> datetime | None:
        """Return when recording began, if that was in the time range."""
        return None if self.result is None else run_service.recording_start_of(self.result)

    @property
    def missing(self) -> str:
        """Describe the recorded events that the result does not include; "" when it is complete."""
        return "" if self.result is None else run_service.missing_events_of(self.result)

    @property
    def levels(self) -> str:
        """Describe from which levels of tables, or events, the result was read; "" if unknown."""
        return "" if self.result is None else levels_of(self.result)

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """Return the time range of the section."""
        return None if self.result is None else run_service.window_of(self.result)


def sections_of(edition: Edition, user: AnyUser | None = None) -> list[ReportSection]:
    """Return the parts of an edition, in the order of its report.

    For a user without the results that the user may not see: older editions may cover other destinations than the
    report does now, and queries saw what its owner was allowed to see then.
    """
    return [
        ReportSection(
            run,
            describe_parameters(run.kind, run.request),
            run_service.result_of(run) if run.state == AnalysisRun.State.DONE and _may_read(run, user) else None,
        )
        for run in edition.runs.order_by("created")
    ]


def _may_read(run: AnalysisRun, user: AnyUser | None) -> bool:
    return user is None or is_readable(run, user)


def scope_of_report(report: Report) -> list[Destination]:
    """Return the patterns of destinations that the report covers: everything, unless all analyses stay within some.

    Saved queries are left out: they show what their owner may see (report_queries.py).
    """
    asked = (question for question in report.questions if question["kind"] != SQL)
    return [place for question in asked for place in scope_of(question["kind"], question)]
