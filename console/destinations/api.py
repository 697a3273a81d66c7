"""Queues and topics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.permissions import visible
from console.access.roles import Verb
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Paged, PageQuery, page_of
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot
from console.destinations import services
from console.destinations.lists import COLUMNS

router = Router(tags=["destinations"])
Plain = Literal["queue", "topic"]


class Listed(Schema):
    """A queue or topic with its numbers, under the names that JMX gave them. Counts are since the node started."""

    kind: Plain
    name: str
    href: str = Field(description="Its address in this API, which ends in the segment of its name")
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
    AverageEnqueueTime: float = Field(description="Milliseconds until handed to a consumer, as a mean")
    AverageMessageSize: int = Field(description="Bytes of a body, as a mean")
    EnqueueRate: float = Field(description="Messages a second, mean of five seconds")
    DequeueRate: float
    DispatchRate: float
    Paused: bool
    DLQ: bool


class ListedPage(Schema):
    """A page of destinations."""

    items: list[Listed]
    total: int
    page: int
    pages: int


class ListQuery(PageQuery):
    """Which destinations, and in which order."""

    kind: Plain = "queue"
    q: str = Field("", description="A part of the name")
    filter: Literal["", "nonEmpty", "noConsumer", "dlq", "paused"] = ""
    sort: str = Field("name", description="`name` or the name of a number, behind a `-` for the largest first")


class NewDestination(RequestBody):
    """What to create."""

    kind: Plain
    name: str


class Removed(Schema):
    """How many messages went."""

    removed: int


class PauseState(RequestBody):
    """Whether a queue gives out nothing."""

    paused: bool


class RememberedSelector(Schema):
    """A selector of former consumers, with the time of its last use."""

    selector: str
    used_ms: int


class Forgotten(Schema):
    """How many message groups had an owner."""

    forgotten: int


class Group(Schema):
    """A message group and who gets its messages."""

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


def of_address(arguments: dict[str, Any]) -> Destination:
    """The queue or topic that an operation's address names."""
    return Destination(DestinationKind(arguments.get("kind", "queue")), arguments["name"])


@operation(router, "GET", "", Verb.SEE, response=ListedPage)
def list_destinations(request: HttpRequest, query: Annotated[ListQuery, Query()]) -> Any:
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
        found.sort(
            key=lambda each: column.value(each, picture.rates(each.destination)), reverse=query.sort.startswith("-")
        )
    elif query.sort == "-name":
        found.reverse()
    page = page_of(found, query)
    return page | {"items": [_listed(picture, each) for each in page["items"]]}


@operation(router, "POST", "", Verb.CREATE, response={201: Listed})
def create_destination(request: HttpRequest, wanted: NewDestination) -> Any:
    """Create a queue or topic."""
    destination, _ = services.create(request, DestinationKind(wanted.kind), wanted.name)
    return Status(201, _listed(*services.existing(destination)))


@operation(router, "GET", "/queue/{name:name}/selectors", Verb.SEE, of_address, response=list[RememberedSelector])
def list_selectors(request: HttpRequest, name: str) -> Any:
    """The selector cache of a queue."""
    found = gateway().selectors_of(Destination.queue(name))
    return [{"selector": selector, "used_ms": used} for selector, used in found.items()]


@operation(router, "DELETE", "/queue/{name:name}/selectors", Verb.CREATE, of_address, response={204: None})
def forget_selector(request: HttpRequest, name: str, selector: str) -> Any:
    """Remember a selector no longer."""
    services.forget_selector(request, Destination.queue(name), selector)
    return Status(204, None)


@operation(router, "GET", "/queue/{name:name}/groups", Verb.SEE, of_address, response=list[Group])
def list_groups(request: HttpRequest, name: str) -> Any:
    """The message groups of a queue, with their owners."""
    found = gateway().groups(Destination.queue(name))
    return [{"group": group, "client": client, "subscription": sub} for group, client, sub in found]


@operation(router, "DELETE", "/queue/{name:name}/groups", Verb.PAUSE, of_address, response=Forgotten)
def forget_groups(request: HttpRequest, name: str, group: str = "") -> Any:
    """Let a message group of a queue, or all, be assigned anew with the next message."""
    return {"forgotten": services.forget_groups(request, Destination.queue(name), group or None)}


@operation(router, "POST", "/queue/{name:name}/purge", Verb.REMOVE, of_address, response=Removed)
def purge_queue(request: HttpRequest, name: str) -> Any:
    """Remove all messages that no consumer holds."""
    return {"removed": services.purge(request, Destination.queue(name))}


@operation(router, "PUT", "/queue/{name:name}/paused", Verb.PAUSE, of_address, response=PauseState)
def pause_queue(request: HttpRequest, name: str, state: PauseState) -> Any:
    """Pause a queue, or let it go on."""
    services.pause(request, Destination.queue(name), state.paused)
    return state


@operation(router, "GET", "/{kind}/{name:name}", Verb.SEE, of_address, response=Listed)
def get_destination(request: HttpRequest, kind: Plain, name: str) -> Any:
    """One queue or topic."""
    return _listed(*services.existing(Destination(DestinationKind(kind), name)))


@operation(router, "DELETE", "/{kind}/{name:name}", Verb.CREATE, of_address, response=Removed)
def delete_destination(request: HttpRequest, kind: Plain, name: str) -> Any:
    """Delete a queue or topic with all it holds."""
    return {"removed": services.delete(request, Destination(DestinationKind(kind), name))}


def _listed(picture: BrokerSnapshot, stats: DestinationStats) -> dict[str, Any]:
    destination, rates = stats.destination, picture.rates(stats.destination)
    numbers = {name: getattr(stats, name) for name in Listed.model_fields if hasattr(stats, name)}
    moving = {"EnqueueRate": rates.enqueue, "DequeueRate": rates.dequeue, "DispatchRate": rates.dispatch}
    href = reverse("api:get_destination", args=[str(destination.kind), destination.name])
    return {"kind": str(destination.kind), "name": destination.name, "href": href, **numbers, **moving}


__all__ = ["Paged", "router"]
