"""What operators do to destinations, by whichever door they come: the right is checked, the change is recorded."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.permissions import Verb, require
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot


def existing(destination: Destination) -> tuple[BrokerSnapshot, DestinationStats]:
    """Its numbers. Asks the broker before it says that there is none: it may be newer than the picture."""
    picture = mirror().current()
    if destination not in picture.stats:
        picture = mirror().find(destination)
    if destination not in picture.stats:
        raise Http404(f"{str(destination.kind).capitalize()} {destination.name} not found. It may have been deleted.")
    return picture, picture.stats[destination]


def create(request: HttpRequest, kind: DestinationKind, name: str) -> tuple[Destination, bool]:
    """Make one exist; which, and whether it did not before. Raises InvalidDestination, PermissionDenied."""
    destination = Destination.named(kind, name)
    require(request, Verb.CREATE, destination)
    with trail.recording(request, "create", destination) as change:
        is_new = gateway().create(destination)
        change.after = {"new": is_new}
    mirror().find(destination)
    return destination, is_new


def delete(request: HttpRequest, destination: Destination) -> int:
    """Remove it with all it holds; how many messages."""
    require(request, Verb.CREATE, destination)
    _, stats = existing(destination)
    with trail.recording(request, "delete", destination, before={"QueueSize": stats.QueueSize}) as change:
        count = gateway().delete(destination)
        change.after = {"removed": count}
    mirror().settle(lambda picture: destination not in picture.stats)
    return count


def purge(request: HttpRequest, queue: Destination) -> int:
    """Remove all messages that no consumer holds; how many."""
    require(request, Verb.REMOVE, queue)
    _, stats = existing(queue)
    with trail.recording(request, "purge", queue, before={"QueueSize": stats.QueueSize}) as change:
        count = gateway().purge(queue)
        change.after = {"removed": count}
    return count


def pause(request: HttpRequest, queue: Destination, paused: bool) -> None:
    """Let it give out nothing any more, or go on."""
    require(request, Verb.PAUSE, queue)
    existing(queue)
    with trail.recording(request, "pause" if paused else "resume", queue):
        gateway().pause(queue, paused)
    mirror().settle(lambda picture: queue in picture.stats and picture.stats[queue].Paused == paused)


def forget_selector(request: HttpRequest, queue: Destination, selector: str) -> bool:
    """Remember one selector of its former consumers no longer; whether it was remembered."""
    require(request, Verb.CREATE, queue)
    existing(queue)
    with trail.recording(request, "forget selector", queue, before={"selector": selector}):
        return gateway().forget_selectors(queue, selector)


def forget_groups(request: HttpRequest, queue: Destination, group: str | None) -> int:
    """Let one message group, or all, be assigned anew; how many had an owner."""
    require(request, Verb.PAUSE, queue)
    existing(queue)
    with trail.recording(request, "forget groups", queue, before={"group": group or "all"}) as change:
        count = gateway().forget_groups(queue, group)
        change.after = {"had an owner": count}
    return count
