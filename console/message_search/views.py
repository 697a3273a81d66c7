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
from console.access import Verb, needs
from console.message_search import service
from console.message_search.models import MessageSearch

#: What a badge says of each state, by its color.
TONES = {"done": "good", "failed": "act", "cancelled": "look"}


@require_POST
@needs(Verb.BROWSE)
def start(request: HttpRequest) -> HttpResponse:
    """Search all queues in the background."""
    text = request.POST.get("q", "")
    try:
        search = service.start(request, text)
    except RequestRefused as error:
        messages.error(request, f"{error}.")
        return redirect(f"{reverse('find')}?{urlencode({'q': text})}")
    return redirect("search", search_id=search.id)


@require_GET
@needs(Verb.BROWSE)
def detail(request: HttpRequest, search_id: UUID) -> HttpResponse:
    """A search with its progress and what it found so far; htmx asks for that part alone."""
    search = service.existing(request, search_id)
    context = {"search": search, "hits": service.hits(request, search), "tone": TONES.get(search.state, "")}
    part = "console/parts/search.html" if request.htmx else "console/search.html"
    return render(request, part, context)


@require_POST
@needs(Verb.BROWSE)
def cancel(request: HttpRequest, search_id: UUID) -> HttpResponse:
    """End a search; what it found stays."""
    search = service.existing(request, search_id)
    service.cancel(search)
    if search.state == MessageSearch.State.CANCELLED:
        messages.success(request, "Search cancelled.")
    return redirect("search", search_id=search.id)
