"""Serve the search page: destinations by name, then messages by id and indexed properties."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from brokerapp.model.destination import NAMED_KINDS, QUALIFIER
from console.access.masking import mask_message
from console.access.permissions import Permission, has_permission, permission_required, visible
from console.broker.mirror import mirror
from console.messages.search.lookup import search

MAX_RESULTS = 50


@require_GET
@permission_required(Permission.SEE)
def find(request: HttpRequest) -> HttpResponse:
    """Show queues and topics whose name contains the text; redirect to a single or exact match.

    Messages are searched by a second request, which may take longer.
    """
    text = request.GET.get("q", "").strip()
    sees = visible(request.user, Permission.SEE)
    everything = sorted(each for each in mirror().current().stats if each.kind in NAMED_KINDS and sees(each))
    name = text.partition(QUALIFIER)[2] or text  # of a fully qualified name, the queue's
    found = [each for each in everything if name.lower() in each.name.lower()]
    exact = [each for each in found if each.name == name]
    if text and (len(found) == 1 or len(exact) == 1):
        one = (exact or found)[0]
        return redirect(one.kind, name=one.name)
    context = {
        "text": text, "found": found[:MAX_RESULTS], "total": len(found),
        "may_browse": has_permission(request.user, Permission.BROWSE),
    }  # fmt: skip
    return render(request, "messages/search/global_search.html", context)


@require_GET
@permission_required(Permission.BROWSE)
def messages(request: HttpRequest) -> HttpResponse:
    """Search visible messages by id, correlation id or value of an indexed property."""
    text = request.GET.get("q", "").strip()[:300]
    stats = list(mirror().current().stats.values())
    found = None
    if text:
        sees = visible(request.user, Permission.BROWSE)
        found = search(text, stats, sees, lambda message, place: mask_message(request.user, message, place))
    return render(request, "messages/search/global_search_result.html", {"text": text, "found": found})
