"""REST operations on the shards of the broker's store, and on families of destinations."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from console.access.permissions import visible
from console.access.roles import Permission, everything
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.topology import shard_changes

router = Router(tags=["shards"])
#: Sums over all destinations: null for users who do not see all.
_SUMS = ("destinations", "families", "messages", "used", "intents")


class ShardOut(Schema):
    """A shard. Sums are null for users who do not see all destinations, and for a shard that does not answer."""

    number: int
    url: str = Field(description="URL of the store, without its password")
    state: str = Field(description="joining, serving or draining")
    answers: bool
    destinations: int | None
    families: int | None
    messages: int | None
    used: int | None = Field(description="Bytes of messages")
    limit: int | None = Field(description="Limit of these bytes; null: none, or no node is running")
    intents: int | None = Field(description="Writes over several shards that are not complete yet")


class FamilyOut(Schema):
    """Destinations that are always in one shard, with their load."""

    family: str = Field(description="Name of the destination that it is named after; empty: temporary destinations")
    shard: int
    destinations: int
    messages: int
    used: int = Field(description="Bytes of messages")
    rate: float = Field(description="Enqueued and dequeued messages/s")


class ShardAddIn(RequestBody):
    """A store to add."""

    url: Annotated[str, Field(min_length=1, description="URL of the store, such as redis://:password@host:6379/0")]


class ShardAddedOut(Schema):
    """A shard that was added."""

    number: int
    serving: bool = Field(description="Whether all nodes serve it already")


class ShardDrainIn(RequestBody):
    """Whether a shard is drained."""

    draining: bool


class FamilyMoveIn(RequestBody):
    """A family and the shard to move it to."""

    family: Annotated[str, Field(description="Family as the list shows it, such as queue://orders")]
    shard: Count


class FamilyMovedOut(Schema):
    """A move that is done."""

    family: str
    source: int
    target: int
    messages: int
    milliseconds: int = Field(description="Time for which sending to and consuming from the family was paused")


@operation(router, "GET", "", Permission.SEE, response=list[ShardOut])
def list_shards(request: HttpRequest) -> Any:
    """List the shards of the store by number. A broker with one store has shard 0 only."""
    sees_all = visible(request.user) is everything
    return [
        asdict(each) | {"limit": each.limit or None} | ({} if sees_all and each.answers else dict.fromkeys(_SUMS))
        for each in shard_changes.all_shards()
    ]


@operation(router, "GET", "/{int:number}/families", Permission.SEE, response=list[FamilyOut])
def list_families(request: HttpRequest, number: int) -> Any:
    """List the families of a shard with their load, those with the most bytes first."""
    shard_changes.get_shard_or_404(number, shard_changes.all_shards())
    return shard_changes.families_of(request, number)[0]


@operation(router, "POST", "", Permission.SHARDS, response={201: ShardAddedOut})
def add_shard(request: HttpRequest, wanted: ShardAddIn) -> Any:
    """Add an empty store as a shard, and wait until the nodes serve it."""
    number, serving = shard_changes.add_shard(request, wanted.url)
    return Status(201, ShardAddedOut(number=number, serving=serving))


@operation(router, "PUT", "/{int:number}/draining", Permission.SHARDS, response=ShardOut)
def drain_shard(request: HttpRequest, number: int, wanted: ShardDrainIn) -> Any:
    """Have the nodes move the families of a shard to other shards, or stop draining it."""
    shard_changes.drain_shard(request, number, draining=wanted.draining)
    return next(each for each in list_shards(request) if each["number"] == number)


@operation(router, "DELETE", "/{int:number}", Permission.SHARDS, response={204: None})
def remove_shard(request: HttpRequest, number: int) -> Any:
    """Remove a drained shard that has no destinations."""
    shard_changes.remove_shard(request, number)
    return Status(204, None)


@operation(router, "POST", "/moves", Permission.SHARDS, response=FamilyMovedOut)
def move_family(request: HttpRequest, wanted: FamilyMoveIn) -> Any:
    """Move a family of destinations to another shard, and wait until it is there."""
    return shard_changes.move_family(request, wanted.family, wanted.shard)
