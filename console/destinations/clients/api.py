"""REST operations on connections and subscriptions."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.subscription_identity import SubscriptionIdentity
from console.access.permissions import require, visible
from console.access.roles import Permission, Sees, everything
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, Paged, page_of
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.destinations.api import RemovedCountOut
from console.destinations.clients import subscription_browser
from console.destinations.clients.clients import visible_connection_ids
from console.destinations.clients.close_connection import close, get_connection
from console.destinations.clients.connection_list import connection_rows
from console.messages.api.messages import BrowsePageOut, BrowseQuery, message_out

router = Router(tags=["clients"])


class ConnectionOut(Schema):
    """The connection of a client and its counters."""

    node: str
    id: str
    client_id: str
    remote_address: str
    user: str
    version: str = Field(description="Version of STOMP; of OpenWire with its name")
    protocol: str = Field(description="`STOMP 1.2`, `OpenWire 12`")
    connected_ms: int
    subscriptions: list[str]
    sent: int
    delivered: int
    slow: bool
    discarded: int
    blocked: bool


class SubscriptionOut(Schema):
    """A named subscription of topics, durable or shared."""

    name: str
    client_id: str
    log: str = Field(description="Destination that stores its messages, in native form")
    href: str = Field(description="URL of the subscription in this API")
    topics: list[str]
    selector: str | None
    durable: bool
    shared: bool
    active: bool
    QueueSize: int
    InFlightCount: int
    EnqueueCount: int
    DequeueCount: int
    DispatchCount: int


class SubscriptionIn(RequestBody):
    """A durable subscription to create."""

    client_id: str
    name: str
    topics: Annotated[list[str], Field(min_length=1)]
    selector: str | None = None


@operation(router, "GET", "/connections", Permission.SEE, response=Page[ConnectionOut])
def list_connections(request: HttpRequest, query: Paged, q: str = "") -> Any:
    """List connections, oldest first."""
    sees = visible(request.user)
    known = None if sees is everything else visible_connection_ids(sees)
    found = [
        {
            "node": each.node, "protocol": each.stats.protocol, **each.stats.to_json(),
            "subscriptions": _visible_only(each.stats.subscriptions, sees),
        }
        for each in connection_rows(mirror().current())
        if (known is None or each.stats.id in known)
        and q.lower() in f"{each.stats.client_id} {each.stats.user} {each.stats.remote_address}".lower()
    ]  # fmt: skip
    return page_of(found, query)


@operation(router, "DELETE", "/connections/{connection_id}", Permission.CLOSE, response={204: None})
def close_connection(request: HttpRequest, connection_id: str) -> Any:
    """Close a connection. Its in-flight messages are requeued."""
    close(request, get_connection(request.user, connection_id))
    return Status(204, None)


@operation(router, "GET", "/subscriptions", Permission.SEE, response=Page[SubscriptionOut])
def list_subscriptions(request: HttpRequest, query: Paged, q: str = "") -> Any:
    """List named subscriptions, durable and shared."""
    sees = visible(request.user)
    found = [
        each
        for each in gateway().run(gateway().admin.subscriptions())
        if any(map(sees, each.subscription.topics))
        and q.lower() in f"{each.subscription.client_id} {each.subscription.name}".lower()
    ]
    found.sort(key=lambda each: each.subscription.key)
    page = page_of(found, query)
    return page | {"items": [_subscription_out(each, sees) for each in page["items"]]}


@operation(router, "POST", "/subscriptions", Permission.CREATE, response={201: dict[str, str]})
def create_subscription(request: HttpRequest, wanted: SubscriptionIn) -> Any:
    """Create a durable subscription before its client connects."""
    topics = tuple(Destination.parse(each, DestinationKind.TOPIC) for each in wanted.topics)
    for each in topics:
        require(request, Permission.CREATE, each)
    subscription = SubscriptionIdentity(wanted.client_id, wanted.name, topics, wanted.selector or None)
    with trail.recording(request, "create subscription", str(subscription)):
        log = gateway().run(gateway().admin.create_subscription(subscription))
    return Status(201, {"log": str(log), "href": _href(log)})


@operation(router, "GET", "/subscriptions/{name:log}/messages", Permission.BROWSE, response=BrowsePageOut)
def browse_subscription(request: HttpRequest, log: str, query: Annotated[BrowseQuery, Query()]) -> Any:
    """Browse the backlog of a named subscription without consuming it."""
    where = _log(log)
    page, messages = subscription_browser.browse_backlog(
        request.user,
        subscription_browser.get_browsable(request, where),
        where,
        query.after,
        query.limit,
        query.selector,
    )
    return {"items": list(map(message_out, messages)), "scanned": page.scanned, "next": page.next}


@operation(router, "DELETE", "/subscriptions/{name:log}", Permission.CLOSE, response=RemovedCountOut)
def delete_subscription(request: HttpRequest, log: str) -> Any:
    """Delete a named subscription and its backlog."""
    destination = _log(log)
    kept = gateway().run(gateway().admin.subscriptions())
    found = next((each for each in kept if each.numbers.destination == destination), None)
    if found is None:
        raise Http404(f"Subscription {destination.name} not found. It may have been deleted.")
    for topic in found.subscription.topics:
        require(request, Permission.CLOSE, topic)
    before = {"subscription": str(found.subscription), "QueueSize": found.numbers.QueueSize}
    with trail.recording(request, "delete subscription", destination, before=before) as change:
        count = gateway().delete(destination)
        change.after = {"removed": count}
    return {"removed": count}


def _log(name: str) -> Destination:
    """Return the log of a subscription from a path segment, with its scheme or without."""
    return Destination(DestinationKind.SUBSCRIPTION, name.removeprefix(f"{DestinationKind.SUBSCRIPTION}://"))


def _href(log: Destination) -> str:
    return reverse("api:delete_subscription", args=[log.name])


def _visible_only(subscriptions: list[str], sees: Sees) -> list[str]:
    """Return the visible destinations; temporary ones belong to their connection only."""
    return [each for each in subscriptions if sees(Destination.parse(each))]


def _subscription_out(each: Any, sees: Sees) -> dict[str, Any]:
    subscription, numbers = each.subscription, each.numbers
    counts = {name: getattr(numbers, name) for name in SubscriptionOut.model_fields if hasattr(numbers, name)}
    return {
        "name": subscription.name, "client_id": subscription.client_id, "log": str(numbers.destination),
        "href": _href(numbers.destination),
        "topics": [str(topic) for topic in subscription.topics if sees(topic)], "selector": subscription.condition,
        "durable": subscription.durable, "shared": subscription.shared, "active": numbers.ConsumerCount > 0, **counts,
    }  # fmt: skip
