"""Pages that list queues and topics, with bulk actions."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from console.access.permissions import Permission, has_permission, permission_message, permission_required, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.live.sparklines import read_sparklines
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot
from console.destinations.lists import DESTINATION_TABLES, PAGE_SIZES, DestinationRow, visible_rows
from console.destinations.services import consumer_gone_since
from console.ui.formatting.number_format import pluralize_count
from console.ui.partials import render_list
from console.ui.preferences.favourites import favourites_of
from console.ui.saved_views import canonical_query, views_menu

#: Bulk actions: required permission, kinds of destinations, and the function that runs one.
BulkAction = Callable[[Destination], object]
BULK: dict[str, tuple[Permission, tuple[DestinationKind, ...], BulkAction]] = {
    "pause": (Permission.PAUSE, (DestinationKind.QUEUE,), lambda queue: gateway().pause(queue, True)),
    "resume": (Permission.PAUSE, (DestinationKind.QUEUE,), lambda queue: gateway().pause(queue, False)),
    "purge": (Permission.REMOVE, (DestinationKind.QUEUE,), lambda queue: gateway().purge(queue)),
    "delete": (Permission.CREATE, NAMED_KINDS, lambda each: gateway().delete(each)),
}
#: Actions that cannot be undone; they are confirmed by typing the number of destinations.
TYPED_CONFIRMATION = frozenset({"purge", "delete"})
PAST_TENSE = {"pause": "paused", "resume": "resumed", "purge": "purged", "delete": "deleted"}
#: Destinations of one bulk action.
MAX_SELECTED = max(PAGE_SIZES)
#: Seconds that a bulk action may take; the rest is reported as skipped.
TIMEOUT_SECONDS = 20.0


@require_GET
@permission_required(Permission.SEE)
def queues(request: HttpRequest) -> HttpResponse:
    """Show a page of the list of queues."""
    return _list(request, DestinationKind.QUEUE)


@require_GET
@permission_required(Permission.SEE)
def topics(request: HttpRequest) -> HttpResponse:
    """Show a page of the list of topics."""
    return _list(request, DestinationKind.TOPIC)


def _list(request: HttpRequest, kind: DestinationKind) -> HttpResponse:
    picture = mirror().current()
    rows = visible_rows(picture, kind, visible(request.user))
    page = DESTINATION_TABLES[kind].page(rows, request.GET, favourites_of(request.user))
    context = {
        "kind": kind,
        "page": page,
        "hidden": len(picture.of_kind(kind)) - len(rows),
        "channel": f"list:{kind}s",
        "lines": _sparklines(picture, page.rows),
        "gone": consumer_gone_since([row.stats for row in page.rows]),
        "menu": views_menu(request.user, f"{kind}s", request.GET),
        "part": "destinations/list_rows.html",
        "actions": [
            (name, name.capitalize())
            for name, (permission, kinds, _) in BULK.items()
            if kind in kinds and has_permission(request.user, permission)
        ],
    }
    return render_list(request, "destinations/list.html", context)


def _sparklines(picture: BrokerSnapshot, rows: list[DestinationRow]) -> dict[Destination, str]:
    """Return the sparklines of rows; empty ones while the store does not respond."""
    lines = dict.fromkeys((row.destination for row in rows), "")
    with suppress(BrokerError):
        lines |= read_sparklines(picture, list(lines))
    return lines


# -- several at once


@require_POST
@permission_required(Permission.SEE)
def bulk(request: HttpRequest, kind: str) -> HttpResponse:
    """Run an action on all selected destinations. Each is checked for permission and gets its own audit entry."""
    action, names = request.POST.get("action", ""), request.POST.getlist("name")[:MAX_SELECTED]
    back = reverse(f"{kind}s") + canonical_query(f"{kind}s", QueryDict(request.POST.get("query", "").lstrip("?")))
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
    permission, _, act = BULK[action]
    done, trouble, deadline = 0, [], time.monotonic() + TIMEOUT_SECONDS
    for destination in selected:
        if time.monotonic() > deadline:
            left = pluralize_count(len(selected) - done - len(trouble), "other")
            trouble.append(f"{left} skipped: the action exceeded {TIMEOUT_SECONDS:g} s")
            break
        if not has_permission(request.user, permission, destination):
            trail.record_denied(
                request, permission.name.lower(), destination, permission_message(permission, destination)
            )
            trouble.append(f"{destination.name}: {permission_message(permission, destination)}")
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
