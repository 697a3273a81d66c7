"""Read and change the shards of the broker's store for a page or the REST API: check permissions, write the audit log.

A shard holds destinations of any name: changing one needs the permission for all.
"""

from __future__ import annotations

from django.http import Http404, HttpRequest

from brokerapp.admin.shards import ANSWER_SECONDS, MOVED_SECONDS, SERVED_SECONDS, FamilyStatus, ShardStatus
from brokerapp.model import JsonObject
from brokerapp.model.destination import Destination
from brokerapp.system.store_address import without_password
from console.access.permissions import Permission, pattern_filter, require_everywhere
from console.access.roles import Sees, everything
from console.audit import trail
from console.broker.gateway import PATIENCE, gateway
from console.broker.mirror import mirror


def all_shards() -> list[ShardStatus]:
    """Read the shards by number; a broker with one store has shard 0 only. Raises StoreUnavailable."""
    found: list[ShardStatus] = gateway().run(gateway().admin.shards.all(), ANSWER_SECONDS + PATIENCE)
    return found


def get_shard_or_404(number: int, shards: list[ShardStatus]) -> ShardStatus:
    """Return the shard of this number. Raises Http404."""
    found = next((each for each in shards if each.number == number), None)
    if found is None:
        raise Http404(f"Shard {number} not found.")
    return found


def families_of(request: HttpRequest, number: int) -> tuple[list[FamilyStatus], int]:
    """Return the families of a shard that the user may see, and the number of others. Raises StoreUnavailable."""
    picture = mirror().current()
    rates = {str(each): picture.rates(each) for each in picture.tracks}
    read = gateway().admin.shards.families(number, {log: each.enqueue + each.dequeue for log, each in rates.items()})
    found: list[FamilyStatus] = gateway().run(read, ANSWER_SECONDS + PATIENCE)
    knows = pattern_filter(request.user)
    shown = [each for each in found if _is_visible(each, knows)]
    return shown, len(found) - len(shown)


def _is_visible(status: FamilyStatus, knows: Sees) -> bool:
    """Return whether a user may see a family; temporary destinations have no name that a scope could cover."""
    return knows is everything or (status.family != "" and knows(Destination.parse(status.family)))


def add_shard(request: HttpRequest, url: str) -> tuple[int, bool]:
    """Add a store as a shard. Return its number and whether nodes serve it. Raises BrokerError, PermissionDenied."""
    require_everywhere(request, Permission.SHARDS)
    admin = gateway().admin.shards
    with trail.recording(request, "add shard", without_password(url)) as change:
        number: int = gateway().run(admin.add(url), ANSWER_SECONDS + PATIENCE)
        serving: bool = gateway().run(admin.wait_until_serving(number), SERVED_SECONDS + PATIENCE)
        change.after = {"number": number, "serving": serving}
    return number, serving


def drain_shard(request: HttpRequest, number: int, *, draining: bool) -> None:
    """Have the nodes move the families of a shard away, or let it serve again. Raises BrokerError, PermissionDenied."""
    require_everywhere(request, Permission.SHARDS)
    with trail.recording(request, "drain shard" if draining else "stop draining shard", number):
        gateway().run(gateway().admin.shards.drain(number, cancel=not draining))


def remove_shard(request: HttpRequest, number: int) -> None:
    """Remove a drained shard without destinations. Raises BrokerError, PermissionDenied."""
    require_everywhere(request, Permission.SHARDS)
    with trail.recording(request, "remove shard", number):
        gateway().run(gateway().admin.shards.remove(number), ANSWER_SECONDS + PATIENCE)


def move_family(request: HttpRequest, family: str, number: int) -> JsonObject:
    """Move a family to a shard, and return the move when it is done. Raises BrokerError, PermissionDenied."""
    require_everywhere(request, Permission.SHARDS)
    admin = gateway().admin.shards
    with trail.recording(request, "move family", family) as change:
        begun = gateway().run(admin.move(family, number))
        change.before, change.after = {"shard": begun["source"]}, {"shard": number}
        done: JsonObject = gateway().run(admin.wait_until_moved(begun, MOVED_SECONDS), MOVED_SECONDS + PATIENCE)
        change.after = {"shard": number, "messages": done["messages"], "milliseconds": done["milliseconds"]}
    return done
