"""Audit: who did what, and who was not let."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Verb, needs
from console.models import AuditEntry

PAGE_SIZE = 50


@require_GET
@needs(Verb.AUDIT)
def audit(request: HttpRequest) -> HttpResponse:
    """Entries, newest first; `q` is part of a name, an action or an object, `outcome` one of the four."""
    text, outcome = request.GET.get("q", "").strip(), request.GET.get("outcome", "")
    entries = AuditEntry.objects.all()
    if text:
        entries = entries.filter(Q(who__icontains=text) | Q(action__icontains=text) | Q(object__icontains=text))
    if outcome in AuditEntry.Outcome.values:
        entries = entries.filter(outcome=outcome)
    page = Paginator(entries, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"page": page, "text": text, "outcome": outcome, "outcomes": AuditEntry.Outcome.values}
    return render(request, "console/audit.html", context)
