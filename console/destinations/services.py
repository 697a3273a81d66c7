"""Operations on queues and topics for pages and the REST API. Each checks the permission and writes an audit entry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.http import Http404, HttpRequest

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.permissions import Permission, require
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.rollups import last_consumers_left, rollups
from console.broker.snapshot import BrokerSnapshot


def get_stats(destination: Destination) -> tuple[BrokerSnapshot, DestinationStats]:
    """Return the snapshot and the statistics of a destination. Raises Http404.

    Asks the broker before it raises: the destination may be newer than the snapshot.
    """
    picture = mirror().current()
    if destination not in picture.stats:
        picture = mirror().refresh_destination(destination)
    if destination not in picture.stats:
        raise Http404(f"{str(destination.kind).capitalize()} {destination.name} not found. It may have been deleted.")
    return picture, picture.stats[destination]


def consumer_gone_since(of: Sequence[DestinationStats]) -> dict[Destination, datetime]:
    """Return when the last consumer left the queues without consumers, as far as it was recorded."""
    alone = [each.destination for each in of if each.destination.is_queue and not each.ConsumerCount]
    if not alone:
        return {}
    left = last_consumers_left(rollups(), alone)
    return {each: datetime.fromtimestamp(left[str(each)], UTC) for each in alone if str(each) in left}


def create(request: HttpRequest, kind: DestinationKind, name: str) -> tuple[Destination, bool]:
    """Create a destination; return it and whether it is new. Raises InvalidDestination, PermissionDenied."""
    destination = Destination.named(kind, name)
    require(request, Permission.CREATE, destination)
    with trail.recording(request, "create", destination) as change:
        is_new = gateway().create(destination)
        change.after = {"new": is_new}
    mirror().refresh_destination(destination)
    return destination, is_new


def delete(request: HttpRequest, destination: Destination) -> int:
    """Delete a destination and its messages; return how many."""
    require(request, Permission.CREATE, destination)
    _, stats = get_stats(destination)
    with trail.recording(request, "delete", destination, before={"QueueSize": stats.QueueSize}) as change:
        count = gateway().delete(destination)
        change.after = {"removed": count}
    mirror().wait_until(lambda picture: destination not in picture.stats)
    return count


def purge(request: HttpRequest, queue: Destination) -> int:
    """Delete all messages of a queue that are not in flight; return how many."""
    require(request, Permission.REMOVE, queue)
    _, stats = get_stats(queue)
    with trail.recording(request, "purge", queue, before={"QueueSize": stats.QueueSize}) as change:
        count = gateway().purge(queue)
        change.after = {"removed": count}
    return count


def pause(request: HttpRequest, queue: Destination, paused: bool) -> None:
    """Pause or resume delivery from a queue."""
    require(request, Permission.PAUSE, queue)
    get_stats(queue)
    with trail.recording(request, "pause" if paused else "resume", queue):
        gateway().pause(queue, paused)
    mirror().wait_until(lambda picture: queue in picture.stats and picture.stats[queue].Paused == paused)


def delete_selector(request: HttpRequest, queue: Destination, selector: str) -> bool:
    """Remove a selector from the cache of a queue; return whether it was there."""
    require(request, Permission.CREATE, queue)
    get_stats(queue)
    with trail.recording(request, "forget selector", queue, before={"selector": selector}):
        return gateway().delete_selectors(queue, selector)


def reset_groups(request: HttpRequest, queue: Destination, group: str | None) -> int:
    """Reset the assignment of one message group, or of all; return how many were assigned."""
    require(request, Permission.PAUSE, queue)
    get_stats(queue)
    with trail.recording(request, "forget groups", queue, before={"group": group or "all"}) as change:
        count = gateway().reset_groups(queue, group)
        change.after = {"had an owner": count}
    return count
