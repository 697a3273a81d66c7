"""Save favorites and views of lists."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from console.access.permissions import Permission, permission_required
from console.ui import saved_views
from console.ui.preferences import favourites
from console.ui.preferences.models import SavedView


@require_POST
@permission_required(Permission.SEE)
def toggle_favourite(request: HttpRequest) -> HttpResponse:
    """Add or remove a favorite."""
    subject = request.POST.get("subject", "")
    is_starred = favourites.toggle(request.user, subject)
    if request.htmx:
        context = {"subject": subject, "called": favourites.subject_name(subject), "is_starred": is_starred}
        response = render(request, "components/favourite.html", context)
        return trigger_client_event(response, "starred", {"by": 1 if is_starred else -1})  # the chip counts it
    return redirect(favourites.list_url(subject))


@require_POST
@permission_required(Permission.SEE)
def save_view(request: HttpRequest, page: str) -> HttpResponse:
    """Save a list's view under a name, replacing one of the same name."""
    if page not in saved_views.LISTS:
        raise Http404(f"List {page} not found.")
    name = request.POST.get("name", "").strip()[: SavedView.MAX_NAME]
    query = saved_views.canonical_query(page, QueryDict(request.POST.get("query", "").lstrip("?")))
    if not name:
        messages.error(request, "Enter a view name.")
    elif saved_views.is_full(request.user, page, name):
        messages.error(request, f"You have {SavedView.MOST} views of this list, the maximum. Delete one first.")
    else:
        SavedView.objects.update_or_create(user=request.user, page=page, name=name, defaults={"query": query})
        messages.success(request, f"View “{name}” saved.")
    return redirect(saved_views.url_of(page, query))


@require_POST
@permission_required(Permission.SEE)
def delete_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete a saved view."""
    view = get_object_or_404(SavedView, pk=view_id, user=request.user)
    view.delete()
    messages.success(request, f"View “{view.name}” deleted.")
    return redirect(view.page)
