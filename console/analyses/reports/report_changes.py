"""Find, save, run, switch and delete reports for pages and the API: with permission checks and audit entries."""

from __future__ import annotations

from datetime import datetime

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone

from console.access.permissions import require
from console.access.roles import Permission
from console.analyses.reports import editions
from console.analyses.reports.content import scope_of_report
from console.analyses.reports.delivery import is_readable_by
from console.analyses.reports.forms import ReportForm
from console.analyses.reports.models import Edition, Report
from console.analyses.reports.presentation import audit_fields
from console.analyses.sql import report_queries
from console.audit import trail


def get_report_or_404(request: HttpRequest, report_id: int) -> Report:
    """Return a report that the user may read. Raises Http404 for others, which the user must not know of."""
    report = get_object_or_404(Report, pk=report_id)
    if not is_readable_by(request.user, report):
        raise Http404("Report not found.")
    return report


def get_changeable_report(request: HttpRequest, report_id: int) -> Report:
    """Return a report that the user may change. Raises Http404, PermissionDenied."""
    report = get_report_or_404(request, report_id)
    _require_schedule(request, report)
    return report


def _require_schedule(request: HttpRequest, report: Report) -> None:
    """Raise PermissionDenied unless the user may schedule reports on all that this one is about."""
    if report_queries.runs_sql(report.questions):
        require(request, Permission.SCHEDULE)
        require(request, Permission.SQL)
        report_queries.require_own_access(request.user)
    for place in scope_of_report(report):
        require(request, Permission.SCHEDULE, place)
        require(request, Permission.SEE, place)


def save(request: HttpRequest, form: ReportForm, existing: Report | None, is_on: bool | None = None) -> Report:
    """Create the report of a valid form, or change the existing one; `is_on` enables or disables it."""
    before = audit_fields(Report.objects.get(pk=existing.pk)) if existing else None
    report = form.save(request.user.get_username())
    report.is_on = report.is_on if is_on is None else is_on
    _require_schedule(request, report)
    with trail.recording(request, "change report" if existing else "create report", report.name, before) as change:
        editions.set_due(report, timezone.now())
        report.save()
        change.after = audit_fields(report)
    return report


def run(request: HttpRequest, report: Report, until: datetime | None = None) -> Edition:
    """Start an edition of a report now, with time ranges that end now or at a past moment. Raises RequestRefused."""
    with trail.recording(request, "run report", report.name, before=audit_fields(report)) as change:
        if until is not None:
            change.after = {"until": until.isoformat()}
        return editions.start_edition_now(report, request.user.get_username(), until)


def switch(request: HttpRequest, report: Report) -> None:
    """Enable or disable the schedule of a report."""
    with trail.recording(request, "switch report", report.name, before=audit_fields(report)):
        report.is_on = not report.is_on
        editions.set_due(report, timezone.now())
        report.save(update_fields=["is_on", "due", "changed"])


def delete(request: HttpRequest, report: Report) -> None:
    """Delete a report with all its editions."""
    with trail.recording(request, "delete report", report.name, before=audit_fields(report)):
        editions.delete_report(report)
