"""Pages about connections and topic subscriptions."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Permission, permission_required, require, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.destinations.clients.clients import (
    CONNECTION_TABLE,
    ConnectionView,
    current_connections,
    visible_connections,
)
from console.destinations.clients.close_connection import close, get_connection, require_close
from console.destinations.clients.topic_subscriptions import (
    SUBSCRIPTION_STATES,
    SUBSCRIPTION_TABLE,
    TopicSubscription,
    current_subscriptions,
)
from console.ops.client_addresses import public_addresses
from console.ui.formatting.number_format import pluralize_count
from console.ui.partials import render_list
from console.ui.preferences.favourites import favourites_of
from console.ui.saved_views import views_menu


@require_GET
@permission_required(Permission.SEE)
def connections(request: HttpRequest) -> HttpResponse:
    """Show a page of the list of connections."""
    picture, trouble = mirror().current(), ""
    existing: list[ConnectionView] = []
    try:
        existing = current_connections()
    except BrokerError as error:
        trouble = str(error)
    peers = visible_connections(existing, visible(request.user))
    page = CONNECTION_TABLE.page(peers, request.GET, favourites_of(request.user))
    context = {
        "page": page,
        "hidden": len(existing) - len(peers),
        "menu": views_menu(request.user, "connections", request.GET),
        "nodes": picture.nodes,
        "trouble": trouble,
        "part": "destinations/connection_rows.html",
        "clients": public_addresses(settings.SLUICE),
    }
    return render_list(request, "destinations/connections.html", context)


@require_GET
@permission_required(Permission.SEE)
def connection(request: HttpRequest, connection_id: str) -> HttpResponse:
    """Show one connection with its consumers and the destinations it sends to."""
    peer = get_connection(request.user, connection_id)
    context = {"peer": peer, "sees": visible(request.user), "is_starred": peer.subject in favourites_of(request.user)}
    return render(request, "destinations/connection.html", context)


@require_http_methods(["GET", "POST"])
@permission_required(Permission.CLOSE)
def close_connection(request: HttpRequest, connection_id: str) -> HttpResponse:
    """Ask for confirmation, then close a connection. Its in-flight messages are requeued."""
    peer = get_connection(request.user, connection_id)
    require_close(request, peer)
    if request.method == "GET":
        return render(request, "destinations/connection_close.html", {"peer": peer})
    close(request, peer)
    messages.success(request, f"Connection of {peer.name} closed. The client may reconnect automatically.")
    return redirect("connections")


@require_GET
@permission_required(Permission.SEE)
def subscriptions(request: HttpRequest) -> HttpResponse:
    """Show a page of the list of topic subscriptions, durable and non-durable."""
    sees = visible(request.user)
    existing = current_subscriptions(mirror().current().subscriptions)
    seen = [replace(each, topics=tuple(filter(sees, each.topics))) for each in _visible(existing, request)]
    page = SUBSCRIPTION_TABLE.page(seen, request.GET, favourites_of(request.user))
    context = {
        "page": page,
        "hidden": len(existing) - len(seen),
        "menu": views_menu(request.user, "subscribers", request.GET),
        "states": SUBSCRIPTION_STATES,
        "part": "destinations/subscriber_rows.html",
    }
    return render_list(request, "destinations/subscribers.html", context)


def _visible(found: list[TopicSubscription], request: HttpRequest) -> list[TopicSubscription]:
    sees = visible(request.user)
    return [each for each in found if any(map(sees, each.topics))]


@require_http_methods(["GET", "POST"])
@permission_required(Permission.CLOSE)
def delete_subscription(request: HttpRequest, log: str) -> HttpResponse:
    """Delete a durable subscription and its backlog after its name was typed."""
    kept = Destination(DestinationKind.SUBSCRIPTION, log)
    found = _visible(current_subscriptions(mirror().current().subscriptions), request)
    subscriber = next((each for each in found if each.log == str(kept)), None)
    if subscriber is None:
        raise Http404(f"Subscription {log} not found. It may have been deleted.")
    for topic in subscriber.topics:
        require(request, Permission.CLOSE, topic)
    error = ""
    if request.method == "POST":
        if request.POST.get("name") == subscriber.name:
            with trail.recording(
                request, "delete subscription", kept, before={"pending": subscriber.pending}
            ) as change:
                count = gateway().delete(kept)
                change.after = {"removed": count}
            mirror().wait_until(lambda picture: kept not in picture.subscriptions)
            messages.success(request, f"Subscription {log} deleted ({pluralize_count(count, 'message')}).")
            return redirect("subscribers")
        error = f"{request.POST.get('name', '')!r} does not match {subscriber.name!r}."
    context = {"each": subscriber, "log": kept, "error": error}
    return render(request, "destinations/subscription_delete.html", context, status=400 if error else 200)
