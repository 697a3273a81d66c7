"""Connections and subscribers: who is connected to which node, and what is kept for whom."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Verb, permission_required, require, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.destinations.clients.clients import (
    CONNECTIONS,
    STATES,
    SUBSCRIBERS,
    Subscriber,
    peers_now,
    seen_by,
    subscribers_now,
)
from console.destinations.clients.close_connection import close, known_peer, require_all
from console.ui.formatting.number_format import pluralize_count
from console.ui.preferences.favourites import favourites_of
from console.ui.saved_views import views_menu


@require_GET
@permission_required(Verb.SEE)
def connections(request: HttpRequest) -> HttpResponse:
    """All STOMP connections, a page at a time."""
    picture, trouble = mirror().current(), ""
    try:
        peers = seen_by(peers_now(), visible(request.user))
    except BrokerError as error:
        peers, trouble = [], str(error)
    page = CONNECTIONS.page(peers, request.GET, favourites_of(request.user))
    context = {
        "page": page,
        "menu": views_menu(request.user, "connections", request.GET),
        "nodes": picture.nodes,
        "trouble": trouble,
        "part": "destinations/connection_rows.html",
        "stomp_host": settings.SLUICE.bind,
        "stomp_port": settings.SLUICE.stomp_port,
    }
    return _rendered(request, "destinations/connections.html", context)


@require_GET
@permission_required(Verb.SEE)
def connection(request: HttpRequest, connection_id: str) -> HttpResponse:
    """One connection: what it said of itself, what it consumes, where it sends."""
    peer = known_peer(request.user, connection_id)
    context = {"peer": peer, "sees": visible(request.user), "is_starred": peer.subject in favourites_of(request.user)}
    return render(request, "destinations/connection.html", context)


@require_http_methods(["GET", "POST"])
@permission_required(Verb.CLOSE)
def close_connection(request: HttpRequest, connection_id: str) -> HttpResponse:
    """End a connection, after a look at what it does; its client is told, and what it held goes back."""
    peer = known_peer(request.user, connection_id)
    require_all(request, peer)
    if request.method == "GET":
        return render(request, "destinations/connection_close.html", {"peer": peer})
    close(request, peer)
    messages.success(
        request, f"The connection of {peer.name} is closed. A client that reconnects by itself comes back."
    )
    return redirect("connections")


@require_GET
@permission_required(Verb.SEE)
def subscribers(request: HttpRequest) -> HttpResponse:
    """All subscribers of topics: durable ones, active and offline, and those that are there only while connected."""
    sees = visible(request.user)
    seen = [replace(each, topics=tuple(filter(sees, each.topics))) for each in _subscribers(request)]
    page = SUBSCRIBERS.page(seen, request.GET, favourites_of(request.user))
    context = {
        "page": page,
        "menu": views_menu(request.user, "subscribers", request.GET),
        "states": STATES,
        "part": "destinations/subscriber_rows.html",
    }
    return _rendered(request, "destinations/subscribers.html", context)


def _subscribers(request: HttpRequest) -> list[Subscriber]:
    sees = visible(request.user)
    found = subscribers_now(mirror().current().subscriptions)
    return [each for each in found if any(map(sees, each.topics))]


@require_http_methods(["GET", "POST"])
@permission_required(Verb.CLOSE)
def delete_subscription(request: HttpRequest, log: str) -> HttpResponse:
    """Remove a durable subscription with what it keeps, after its name was typed."""
    kept = Destination(DestinationKind.SUBSCRIPTION, log)
    subscriber = next((each for each in _subscribers(request) if each.log == str(kept)), None)
    if subscriber is None:
        raise Http404(f"There is no subscription {log}.")
    for topic in subscriber.topics:
        require(request, Verb.CLOSE, topic)
    error = ""
    if request.method == "POST":
        if request.POST.get("name") == subscriber.name:
            with trail.recording(
                request, "delete subscription", kept, before={"pending": subscriber.pending}
            ) as change:
                count = gateway().delete(kept)
                change.after = {"removed": count}
            mirror().settle(lambda picture: kept not in picture.subscriptions)
            messages.success(
                request, f"The subscription {log} is gone, and {pluralize_count(count, 'message')} with it."
            )
            return redirect("subscribers")
        error = f"{request.POST.get('name', '')!r} is not {subscriber.name!r}."
    context = {"each": subscriber, "log": kept, "error": error}
    return render(request, "destinations/subscription_delete.html", context, status=400 if error else 200)


def _rendered(request: HttpRequest, template: str, context: dict) -> HttpResponse:
    """The page, or of it only the list where that is asked for."""
    only_list = request.htmx and not request.htmx.boosted
    return render(request, "components/table.html" if only_list else template, context)
