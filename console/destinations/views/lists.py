"""Pages that list queues and topics, with bulk actions."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from console.access.permissions import Verb, has_permission, permission_message, permission_required, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.live.sparklines import read_sparklines
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot
from console.destinations.lists import PAGE_SIZES, DestinationQuery, columns_for, list_page
from console.ui.formatting.number_format import pluralize_count
from console.ui.preferences.favourites import favourites_of
from console.ui.saved_views import views_menu

#: Bulk actions: required permission, kinds of destinations, and the function that runs one.
BulkAction = Callable[[Destination], object]
BULK: dict[str, tuple[Verb, tuple[DestinationKind, ...], BulkAction]] = {
    "pause": (Verb.PAUSE, (DestinationKind.QUEUE,), lambda queue: gateway().pause(queue, True)),
    "resume": (Verb.PAUSE, (DestinationKind.QUEUE,), lambda queue: gateway().pause(queue, False)),
    "purge": (Verb.REMOVE, (DestinationKind.QUEUE,), lambda queue: gateway().purge(queue)),
    "delete": (Verb.CREATE, NAMED_KINDS, lambda each: gateway().delete(each)),
}
#: Actions that cannot be undone; they are confirmed by typing the number of destinations.
TYPED_CONFIRMATION = frozenset({"purge", "delete"})
PAST_TENSE = {"pause": "paused", "resume": "resumed", "purge": "purged", "delete": "deleted"}
#: Destinations of one bulk action.
MAX_SELECTED = max(PAGE_SIZES)
#: Seconds that a bulk action may take; the rest is reported as skipped.
TIMEOUT_SECONDS = 20.0


@require_GET
@permission_required(Verb.SEE)
def queues(request: HttpRequest) -> HttpResponse:
    """Show a page of the list of queues."""
    return _list(request, DestinationKind.QUEUE)


@require_GET
@permission_required(Verb.SEE)
def topics(request: HttpRequest) -> HttpResponse:
    """Show a page of the list of topics."""
    return _list(request, DestinationKind.TOPIC)


def _list(request: HttpRequest, kind: DestinationKind) -> HttpResponse:
    query, picture = DestinationQuery.read(kind, request.GET), mirror().current()
    starred = favourites_of(request.user)
    page = list_page(picture, query, visible(request.user), starred)
    context = {
        "kind": kind,
        "query": query,
        "page": page,
        "rows": _rows(picture, page.rows, starred),
        "columns": [
            (column, _sort_link(query, column.name), _aria_sort(query, column.name)) for column in columns_for(kind)
        ],
        "name_link": _sort_link(query, "name"),
        "name_sort": _aria_sort(query, "name"),
        "chips": [(label, count, query.url(chip=name), name == query.chip) for name, label, count in page.chips],
        "sizes": [(size, query.url(size=size), size == query.size) for size in PAGE_SIZES],
        "previous": query.url(page=page.page - 1) if page.page > 1 else "",
        "next": query.url(page=page.page + 1) if page.page < page.pages else "",
        "menu": views_menu(request.user, f"{kind}s", request.GET),
        "actions": [
            (name, name.capitalize())
            for name, (verb, kinds, _) in BULK.items()
            if kind in kinds and has_permission(request.user, verb)
        ],
    }
    template = "destinations/list_rows.html" if request.htmx and not request.htmx.boosted else "destinations/list.html"
    return render(request, template, context)


def _rows(picture: BrokerSnapshot, rows: list, starred: frozenset[str]) -> list[tuple]:
    """Return rows with sparkline and favorite flag; without sparklines while the store does not respond."""
    try:
        lines = read_sparklines(picture, [row.destination for row in rows])
    except BrokerError:
        lines = {}
    return [(row, lines.get(row.destination, ""), str(row.destination) in starred) for row in rows]


def _sort_link(query: DestinationQuery, name: str) -> str:
    if query.sort == name:
        return query.url(descending=not query.descending)
    return query.url(sort=name, descending=name != "name")  # numbers: the largest first


def _aria_sort(query: DestinationQuery, name: str) -> str:
    if query.sort != name:
        return "none"
    return "descending" if query.descending else "ascending"


# -- several at once


@require_POST
@permission_required(Verb.SEE)
def bulk(request: HttpRequest, kind: str) -> HttpResponse:
    """Run an action on all selected destinations. Each is checked for permission and gets its own audit entry."""
    action, names = request.POST.get("action", ""), request.POST.getlist("name")[:MAX_SELECTED]
    back = (
        _list_url(kind)
        + DestinationQuery.read(DestinationKind(kind), QueryDict(request.POST.get("query", "").lstrip("?"))).url()
    )
    if action not in BULK or DestinationKind(kind) not in BULK[action][1] or not names:
        messages.error(request, "Select at least one destination and an action.")
        return redirect(back)
    selected = [Destination(DestinationKind(kind), name) for name in names]
    if action in TYPED_CONFIRMATION and request.POST.get("typed") != str(len(selected)):
        stats, sees = mirror().current().stats, visible(request.user)
        held = sum(stats[each].QueueSize for each in selected if each in stats and sees(each))
        context = {"action": action, "kind": kind, "selected": selected, "held": held, "back": back}
        context |= {"query": request.POST.get("query", ""), "failed": "typed" in request.POST}
        return render(request, "destinations/bulk.html", context)
    _run_bulk(request, action, selected)
    return redirect(back)


def _run_bulk(request: HttpRequest, action: str, selected: list[Destination]) -> None:
    verb, _, act = BULK[action]
    done, trouble, deadline = 0, [], time.monotonic() + TIMEOUT_SECONDS
    for destination in selected:
        if time.monotonic() > deadline:
            left = pluralize_count(len(selected) - done - len(trouble), "other")
            trouble.append(f"{left} skipped: the action exceeded {TIMEOUT_SECONDS:g} s")
            break
        if not has_permission(request.user, verb, destination):
            trail.record_denied(request, verb.name.lower(), destination, permission_message(verb, destination))
            trouble.append(f"{destination.name}: {permission_message(verb, destination)}")
            continue
        try:
            with trail.recording(request, action, destination):
                act(destination)
            done += 1
        except BrokerError as refused:
            trouble.append(f"{destination.name}: {refused}")
    if done:
        messages.success(request, f"{pluralize_count(done, selected[0].kind)} {PAST_TENSE[action]}.")
    for sentence in trouble[:5]:
        messages.error(request, sentence)
    if len(trouble) > 5:
        messages.error(request, f"{len(trouble) - 5} more could not be {PAST_TENSE[action]}")
    _wait_until_listed(action, selected)


def _wait_until_listed(action: str, selected: list[Destination]) -> None:
    """Wait until the snapshot shows the result, for a moment at most."""
    last = selected[-1]
    if action == "delete":
        mirror().wait_until(lambda picture: last not in picture.stats)
    elif action in ("pause", "resume"):
        wanted = action == "pause"
        mirror().wait_until(lambda picture: last not in picture.stats or picture.stats[last].Paused == wanted)


def _list_url(kind: str) -> str:
    return reverse(f"{DestinationKind(kind)}s")
