"""REST operations on queues and topics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.permissions import visible
from console.access.roles import Permission
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, Paged, PageQuery, page_of
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot
from console.destinations import services
from console.destinations.lists import COLUMNS, DestinationRow

router = Router(tags=["destinations"])
KindName = Literal["queue", "topic"]


class DestinationOut(Schema):
    """A queue or topic with its metrics under their JMX names. Counts start at zero when the node starts."""

    kind: KindName
    name: str
    href: str = Field(description="URL of the destination in this API")
    QueueSize: int
    EnqueueCount: int
    DequeueCount: int
    DispatchCount: int
    InFlightCount: int
    ExpiredCount: int
    DeadLetterCount: int
    DroppedCount: int
    ConsumerCount: int
    ProducerCount: int
    BlockedSends: int
    AverageEnqueueTime: float = Field(description="Mean time until dispatch, in milliseconds")
    AverageMessageSize: int = Field(description="Mean body size in bytes")
    EnqueueRate: float = Field(description="Messages/s, averaged over five seconds")
    DequeueRate: float
    DispatchRate: float
    Paused: bool
    DLQ: bool
    ConsumerGoneSince: datetime | None = Field(
        None, description="When the last consumer of a queue left; null: it has consumers, or never had any"
    )


class DestinationListQuery(PageQuery):
    """Filter, order and page of a list of destinations."""

    kind: KindName = "queue"
    q: str = Field("", description="Text contained in the name")
    filter: Literal["", "nonEmpty", "noConsumer", "dlq", "paused"] = ""
    sort: str = Field("name", description="`name` or the name of a metric; `-` in front sorts in descending order")


class DestinationIn(RequestBody):
    """Kind and name of the destination to create."""

    kind: KindName
    name: str


class RemovedCountOut(Schema):
    """Number of deleted messages."""

    removed: int


class PauseState(RequestBody):
    """Return whether delivery from a queue is paused."""

    paused: bool


class CachedSelectorOut(Schema):
    """A selector of past consumers and the time it was last used."""

    selector: str
    used_ms: int


class ResetCountOut(Schema):
    """Number of message groups whose assignment was reset."""

    forgotten: int


class MessageGroupOut(Schema):
    """A message group and the consumer it is assigned to."""

    group: str
    client: str
    subscription: str


_FILTERS: dict[str, Any] = {
    "": lambda stats: True,
    "nonEmpty": lambda stats: stats.QueueSize > 0,
    "noConsumer": lambda stats: stats.ConsumerCount == 0,
    "dlq": lambda stats: stats.DLQ,
    "paused": lambda stats: stats.Paused,
}


def addressed_destination(arguments: dict[str, Any]) -> Destination:
    """Return the queue or topic named in an operation's path."""
    return Destination(DestinationKind(arguments.get("kind", "queue")), arguments["name"])


@operation(router, "GET", "", Permission.SEE, response=Page[DestinationOut])
def list_destinations(request: HttpRequest, query: Annotated[DestinationListQuery, Query()]) -> Any:
    """List queues or topics."""
    sees, picture, text = visible(request.user), mirror().current(), query.q.lower()
    found = [
        each
        for each in picture.of_kind(DestinationKind(query.kind))
        if text in each.destination.name.lower() and _FILTERS[query.filter](each) and sees(each.destination)
    ]
    found.sort(key=lambda each: each.destination.name)
    column = COLUMNS.get(query.sort.removeprefix("-"))
    if column is not None:
        found.sort(key=lambda each: column.value(DestinationRow(picture, each)), reverse=query.sort.startswith("-"))
    elif query.sort == "-name":
        found.reverse()
    page = page_of(found, query)
    gone = services.consumer_gone_since(page["items"])
    return page | {"items": [_destination_out(picture, each, gone) for each in page["items"]]}


@operation(router, "POST", "", Permission.CREATE, response={201: DestinationOut})
def create_destination(request: HttpRequest, wanted: DestinationIn) -> Any:
    """Create a queue or topic."""
    destination, _ = services.create(request, DestinationKind(wanted.kind), wanted.name)
    return Status(201, _destination_out(*services.get_stats(destination)))


@operation(
    router,
    "GET",
    "/queue/{name:name}/selectors",
    Permission.SEE,
    addressed_destination,
    response=list[CachedSelectorOut],
)
def list_selectors(request: HttpRequest, name: str) -> Any:
    """List the cached selectors of a queue's past consumers."""
    found = gateway().selectors_of(Destination.queue(name))
    return [{"selector": selector, "used_ms": used} for selector, used in found.items()]


@operation(
    router, "DELETE", "/queue/{name:name}/selectors", Permission.CREATE, addressed_destination, response={204: None}
)
def forget_selector(request: HttpRequest, name: str, selector: str) -> Any:
    """Remove a selector from the cache of a queue."""
    services.delete_selector(request, Destination.queue(name), selector)
    return Status(204, None)


@operation(
    router, "GET", "/queue/{name:name}/groups", Permission.SEE, addressed_destination, response=list[MessageGroupOut]
)
def list_groups(request: HttpRequest, name: str) -> Any:
    """List the assigned message groups of a queue with their consumers."""
    found = gateway().groups(Destination.queue(name))
    return [{"group": group, "client": client, "subscription": sub} for group, client, sub in found]


@operation(
    router, "DELETE", "/queue/{name:name}/groups", Permission.PAUSE, addressed_destination, response=ResetCountOut
)
def forget_groups(request: HttpRequest, name: str, group: str = "") -> Any:
    """Reset the assignment of one message group of a queue, or of all; the next message reassigns it."""
    return {"forgotten": services.reset_groups(request, Destination.queue(name), group or None)}


@operation(
    router, "POST", "/queue/{name:name}/purge", Permission.REMOVE, addressed_destination, response=RemovedCountOut
)
def purge_queue(request: HttpRequest, name: str) -> Any:
    """Purge a queue. In-flight messages stay."""
    return {"removed": services.purge(request, Destination.queue(name))}


@operation(router, "PUT", "/queue/{name:name}/paused", Permission.PAUSE, addressed_destination, response=PauseState)
def pause_queue(request: HttpRequest, name: str, state: PauseState) -> Any:
    """Pause or resume delivery from a queue."""
    services.pause(request, Destination.queue(name), state.paused)
    return state


@operation(router, "GET", "/{kind}/{name:name}", Permission.SEE, addressed_destination, response=DestinationOut)
def get_destination(request: HttpRequest, kind: KindName, name: str) -> Any:
    """Return one queue or topic with its metrics."""
    return _destination_out(*services.get_stats(Destination(DestinationKind(kind), name)))


@operation(router, "DELETE", "/{kind}/{name:name}", Permission.CREATE, addressed_destination, response=RemovedCountOut)
def delete_destination(request: HttpRequest, kind: KindName, name: str) -> Any:
    """Delete a queue or topic and all its messages."""
    return {"removed": services.delete(request, Destination(DestinationKind(kind), name))}


def _destination_out(
    picture: BrokerSnapshot, stats: DestinationStats, gone: Mapping[Destination, datetime] | None = None
) -> dict[str, Any]:
    destination, rates = stats.destination, picture.rates(stats.destination)
    left = (services.consumer_gone_since([stats]) if gone is None else gone).get(destination)
    numbers = {name: getattr(stats, name) for name in DestinationOut.model_fields if hasattr(stats, name)}
    moving = {"EnqueueRate": rates.enqueue, "DequeueRate": rates.dequeue, "DispatchRate": rates.dispatch}
    href = reverse("api:get_destination", args=[str(destination.kind), destination.name])
    return {
        "kind": str(destination.kind),
        "name": destination.name,
        "href": href,
        **numbers,
        **moving,
        "ConsumerGoneSince": left,
    }


__all__ = ["Paged", "router"]
