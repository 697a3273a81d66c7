"""Serve the audit log as a page and as files."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from console.access.permissions import Permission, permission_required
from console.audit import trail
from console.audit.models import OUTCOME_LABELS
from console.audit.search.change_descriptions import changes_of
from console.audit.search.queries import FORMATS, AuditQuery
from console.ui.downloads import in_blocks
from console.ui.preferences import timezones


@require_GET
@permission_required(Permission.AUDIT)
def audit(request: HttpRequest) -> HttpResponse:
    """Show matching entries, newest first; see AuditQuery for the query string."""
    query = AuditQuery.read(request.GET)
    page = query.page()
    context = {
        "query": query,
        "wrong": query.wrong,
        "since": timezones.display_moment(query.since, query.zone),
        "until": timezones.display_moment(query.until, query.zone),
        "outcomes": [(label, query.url(outcome=each), each == query.outcome) for each, label in OUTCOME_LABELS.items()],
        "all_outcomes": query.url(outcome=""),
        "rows": [(entry, changes_of(entry)) for entry in page.entries],
        "newer": query.url(after=str(page.entries[0].id)) if page.has_newer and page.entries else "",
        "older": query.url(before=str(page.entries[-1].id)) if page.has_older and page.entries else "",
        "newest": query.url() if page.has_newer else "",
        "export": query.url(),
    }
    return render(request, "audit/trail.html", context)


@require_GET
@permission_required(Permission.AUDIT)
def export(request: HttpRequest, format: str) -> StreamingHttpResponse:
    """Export all matching entries as a file."""
    if format not in FORMATS:
        raise Http404(f"{format} is not one of {', '.join(FORMATS)}")
    query = AuditQuery.read(request.GET)
    with trail.recording(request, "export audit", "audit trail") as change:
        change.after = {"format": format, **query.filters}
    lines, media_type = FORMATS[format]
    name = f"audit-{timezone.now():%Y%m%dT%H%M%S}.{format}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    content = in_blocks(lines(query.entries()))
    return StreamingHttpResponse(content, content_type=f"{media_type}; charset=utf-8", headers=headers)
