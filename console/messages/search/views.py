"""Pages of a search: started from the short search's result, watched while it runs, cancelled."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, permission_required
from console.messages.search import search_service
from console.messages.search.models import MessageSearch

#: Badge class of each state.
TONES = {"done": "good", "failed": "act", "cancelled": "look"}


@require_POST
@permission_required(Permission.BROWSE)
def start(request: HttpRequest) -> HttpResponse:
    """Start a background search and show it."""
    text = request.POST.get("q", "")
    try:
        search = search_service.start(request, text)
    except RequestRefused as error:
        messages.error(request, f"{error}.")
        return redirect(f"{reverse('find')}?{urlencode({'q': text})}")
    return redirect("search", search_id=search.id)


@require_GET
@permission_required(Permission.BROWSE)
def detail(request: HttpRequest, search_id: UUID) -> HttpResponse:
    """Show a search with its progress and results; only that part for htmx."""
    search = search_service.get_search(request, search_id)
    context = {"search": search, "hits": search_service.hits(request, search), "tone": TONES.get(search.state, "")}
    part = "messages/search/search_progress.html" if request.htmx else "messages/search/search.html"
    return render(request, part, context)


@require_POST
@permission_required(Permission.BROWSE)
def cancel(request: HttpRequest, search_id: UUID) -> HttpResponse:
    """Cancel a search; its results are kept."""
    search = search_service.get_search(request, search_id)
    search_service.cancel(search)
    if search.state == MessageSearch.State.CANCELLED:
        messages.success(request, "Search cancelled.")
    return redirect("search", search_id=search.id)
