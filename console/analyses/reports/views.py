"""Serve the pages of reports: list, editions, form, actions and mail preview."""

from __future__ import annotations

from csp.decorators import csp_replace, csp_update
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analytics.requests.parameters import SQL_WINDOW
from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, permission_required
from console.analyses import run_queue, run_service
from console.analyses.exports.formats import FORMATS, export_response
from console.analyses.questions import is_readable
from console.analyses.reports import editions, mail, report_changes
from console.analyses.reports.content import sections_of
from console.analyses.reports.delivery import is_readable_by, recipients
from console.analyses.reports.edition_document import document_of_edition
from console.analyses.reports.forms import DOCUMENTS, MISSED_RUN_POLICIES, READERS, SHOWN, ReportForm, TimingForm
from console.analyses.reports.models import Edition, Report
from console.analyses.reports.presentation import row_of
from console.analyses.reports.presentation import section_context as part_shown
from console.analyses.time_range_form import past_moment
from console.ui.preferences import timezones
from console.ui.staticfiles import PLOTLY_STYLES

#: Reports, and older editions, on a page.
PAGE_SIZE, OLDER = 30, 20
#: What a mail may do in a browser: show itself.
MAIL_POLICY = {
    "default-src": "'none'", "script-src": "'none'", "connect-src": "'none'", "style-src": "'unsafe-inline'",
    "img-src": "data:", "sandbox": "allow-popups",
}  # fmt: skip
State = Edition.State


@require_GET
@permission_required(Permission.SEE)
def reports(request: HttpRequest) -> HttpResponse:
    """Return the reports one may read, by name; `q` narrows them."""
    asked = request.GET.get("q", "").strip()
    found = [report for report in Report.objects.filter(name__icontains=asked) if is_readable_by(request.user, report)]
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"page": page, "rows": [row_of(report, request.user) for report in page], "q": asked}
    return render(request, "analyses/reports/list.html", context)


@require_GET
@permission_required(Permission.SEE)
@csp_update({"style-src": PLOTLY_STYLES, "img-src": "blob:"})
def report(request: HttpRequest, report_id: int) -> HttpResponse:
    """Show a report: its latest successful edition, failures since then, and older editions."""
    return _show(request, report_changes.get_report_or_404(request, report_id), None)


@require_GET
@permission_required(Permission.SEE)
@csp_update({"style-src": PLOTLY_STYLES, "img-src": "blob:"})
def edition(request: HttpRequest, report_id: int, edition_id: int) -> HttpResponse:
    """Show one edition of a report."""
    found = report_changes.get_report_or_404(request, report_id)
    return _show(request, found, get_object_or_404(found.editions, pk=edition_id))


def _show(request: HttpRequest, report: Report, shown: Edition | None) -> HttpResponse:
    for each in report.editions.filter(state=State.RUNNING):
        editions.finish_if_complete(each)  # what ended a moment ago
    shown = shown or editions.last_successful(report)
    latest = report.editions.first()
    page = Paginator(report.editions.all(), OLDER).get_page(request.GET.get("page"))
    parts, line = sections_of(shown, request.user) if shown else [], run_queue.waiting_ids()
    context = {
        "report": report, "shown": shown, "latest": latest, "page": page,
        "parts": [part_shown(*each, report.zone) for each in enumerate(parts)],
        "trouble": latest if latest != shown and latest and latest.state in (State.FAILED, State.SKIPPED) else None,
        "under_way": [(edition, [(run, run_service.cells_of(run, line)) for run in edition.runs.order_by("created")])
                      for edition in report.editions.filter(state=State.RUNNING)],
        "has_charts": any(part.result and part.result["charts"] for part in parts),
        "next": report.timing.next(timezone.now(), SHOWN) if report.timing and report.is_on else [],
        "recipients": recipients(report), "formats": FORMATS.values(),
    }  # fmt: skip
    return render(request, "analyses/reports/report.html", context)


@require_http_methods(["GET", "POST"])
@permission_required(Permission.SCHEDULE)
def edit(request: HttpRequest, report_id: int | None = None) -> HttpResponse:
    """Make a report, or change one. A link may say which analysis a new one begins with."""
    existing = report_changes.get_changeable_report(request, report_id) if report_id else None
    question = request.GET.dict() if "kind" in request.GET else {}
    initial = {"question": question, "query": request.GET.get("query", "")}
    form = ReportForm(request.POST or None, existing, initial, request.user)
    if request.method == "POST" and form.is_valid():
        made = report_changes.save(request, form, existing)
        messages.success(request, f"Report “{made.name}” saved.")
        return redirect("report", report_id=made.pk)
    context = {
        **TimingForm.page_context(form), "report": existing, "policies": MISSED_RUN_POLICIES, "documents": DOCUMENTS,
        "readers": READERS, "choices": form.choices(), "queries": form.queries(), "windows": SQL_WINDOW.choices,
    }  # fmt: skip
    return render(request, "analyses/reports/form.html", context, status=400 if request.method == "POST" else 200)


@require_GET
@permission_required(Permission.SCHEDULE)
def timing(request: HttpRequest) -> HttpResponse:
    """Show the schedule of the form: description, crontab expression and next runs."""
    return render(request, "analyses/reports/schedule.html", TimingForm(request.GET).preview())


@require_POST
@permission_required(Permission.SCHEDULE)
def change(request: HttpRequest, report_id: int, action: str) -> HttpResponse:
    """Run a report now, switch it on or off, or delete it with all its editions."""
    report = report_changes.get_changeable_report(request, report_id)
    if action not in _CHANGES:
        raise Http404(f"Unknown action {action}.")
    if action == "delete" and request.POST.get("typed") != report.name:
        messages.error(request, "Not deleted: the typed name does not match the report name.")
        return redirect(_url(report))
    return redirect(_CHANGES[action](request, report))


def _run(request: HttpRequest, report: Report) -> str:
    report_changes.run(request, report)
    messages.success(request, "Report started. Progress is shown below.")
    return _url(report)


def _run_until(request: HttpRequest, report: Report) -> str:
    """Run the report as of a past time, which the form has in the report's time zone."""
    try:
        moment = past_moment(request.POST.get("until", ""), timezones.get_zone(report.zone))
        edition = report_changes.run(request, report, moment)
    except RequestRefused as error:
        messages.error(request, f"{str(error)[:1].upper()}{str(error)[1:]}")
        return _url(report)
    messages.success(request, "Report started. The page of the edition shows the result when it is done.")
    return reverse("edition", args=[report.pk, edition.pk])


def _switch(request: HttpRequest, report: Report) -> str:
    report_changes.switch(request, report)
    messages.success(request, f"Report “{report.name}” {'enabled' if report.is_on else 'disabled'}.")
    return _url(report)


def _delete(request: HttpRequest, report: Report) -> str:
    report_changes.delete(request, report)
    messages.success(request, f"Report “{report.name}” and its editions deleted.")
    return "reports"


_CHANGES = {"run": _run, "run-until": _run_until, "switch": _switch, "delete": _delete}


def _url(report: Report) -> str:
    return reverse("report", args=[report.pk])


@require_GET
@permission_required(Permission.SEE)
def export(request: HttpRequest, report_id: int, edition_id: int, format: str) -> HttpResponse:
    """Return an edition as one file: HTML, PDF or PNG, with times in the report's time zone."""
    found = get_object_or_404(report_changes.get_report_or_404(request, report_id).editions, pk=edition_id)
    if format not in FORMATS or found.state == State.RUNNING:
        raise Http404(f"Export {format} not found.")
    return export_response(format, lambda max_rows: document_of_edition(found, max_rows, request.user))


@require_GET
@permission_required(Permission.SEE)
@csp_replace(MAIL_POLICY)
def preview(request: HttpRequest, report_id: int, edition_id: int) -> HttpResponse:
    """Return the mail of an edition, as mail clients show it."""
    found = report_changes.get_report_or_404(request, report_id)
    edition = get_object_or_404(found.editions, pk=edition_id)
    if not all(is_readable(run, request.user) for run in edition.runs.all()):
        raise PermissionDenied("This edition has results that you may not see.")
    return HttpResponse(mail.preview(edition))
