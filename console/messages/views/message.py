"""A message's permanent page: its journey, where its copies are, and the way back for those that failed."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseClientRefresh

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.access.masking import mask_message
from console.access.permissions import Verb, pattern_filter, permission_message, permission_required, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.messages.body_format import readings
from console.messages.dead_letter_groups import is_dead_letter_queue, pattern_of, survey
from console.messages.journey.journey import Journey
from console.messages.journey.journey_service import journey_of
from console.messages.message_view import Listed
from console.messages.search.lookup import locate


@require_GET
@permission_required(Verb.BROWSE)
def message(request: HttpRequest, id: str) -> HttpResponse:
    """The page of one message; `queue` and `seq` may say where it was just seen."""
    found = journey_of(id, pattern_filter(request.user))
    here = _copies(request, found)
    sees = visible(request.user, Verb.BROWSE)
    places = {step.place for step in found.steps if step.place} | {queue for queue, _ in here}
    if places and not any(map(sees, places)):
        trail.denied(request, "browse", id, permission_message(Verb.BROWSE))
        raise PermissionDenied(permission_message(Verb.BROWSE))
    awaited = found.is_awaited(timezone.now())  # of all of it: what one may not see is not waited for
    found = found.seen_by(sees)
    if request.htmx and request.htmx.target == "awaited":
        return render(request, "messages/recording_pending.html") if awaited else HttpResponseClientRefresh()
    here = [(queue, message) for queue, message in here if sees(queue)]
    shown = [(queue, mask_message(request.user, message, queue)) for queue, message in here]
    alike = _alike(here)
    recorded = _recorded(request, found) if not shown else None
    context = {
        "id": id, "journey": found, "recorded": recorded, "awaited": awaited,
        "places": [(queue, Listed(message), _is_dead(queue)) for queue, message in shown],
        "first": Listed(shown[0][1]) if shown else None,
        "readings": readings(shown[0][1].body) if shown and not shown[0][1].withheld else [],
        "alike": alike, "alike_tally": gateway().count(alike.queue, alike.selector) if alike else None,
    }  # fmt: skip
    status = 404 if found.complete and not found.steps and not here else 200  # a look that ended early denies nothing
    return render(request, "messages/message.html", context, status=status)


@require_GET
@permission_required(Verb.BROWSE)
def fate(request: HttpRequest, id: str) -> HttpResponse:
    """What became of a message since it was sent again: asked by a page until it is processed or failed again."""
    since = request.GET.get("since", "0")
    after = datetime.fromtimestamp(int(since) / 1000, UTC) if since.isdecimal() and len(since) < 15 else None
    sees = visible(request.user, Verb.BROWSE)
    found = journey_of(id).seen_by(sees)
    copies = [
        copy for copy in found.copies
        if (after is None or copy.since >= after) and not _is_dead(copy.place)
    ]  # fmt: skip
    last = copies[-1] if copies else None
    over = last is not None and last.state in ("processed", "failed", "expired", "dropped")
    asked = int(text) + 1 if (text := request.GET.get("asked", "0")).isdecimal() and len(text) < 4 else 1
    context = {"id": id, "copies": copies, "over": over, "since": since, "asked": asked}
    return render(request, "messages/resubmit_outcome.html", context)


def _recorded(request: HttpRequest, found: Journey) -> Listed | None:
    """A message that is nowhere any more, as it was recorded when it was sent; at a place one may know of."""
    place = found.sent_to or next((copy.place for copy in found.copies), None)
    if place is None:
        return None
    headers = {"message-id": found.id, "destination": place.stomp, **found.properties}
    message = BrowsedMessage(0, found.id, place.stomp, None, headers, b"", found.size)
    return Listed(mask_message(request.user, message, place))


Places = list[tuple[Destination, BrowsedMessage]]


def _copies(request: HttpRequest, found: Journey) -> Places:
    """The copies that are still in queues, dead letters first: one message may be in a queue several times."""
    here: dict[tuple[Destination, int], BrowsedMessage] = {}
    queue, seq = request.GET.get("queue", ""), request.GET.get("seq", "")
    if queue and seq.isdecimal() and len(seq) < 19:
        place = Destination.queue(queue)
        with suppress(BrokerError):
            here |= {(place, each.seq): each for each in gateway().message(place, int(seq)).messages}
    for copy in found.copies:
        if copy.state not in ("waiting", "held"):
            continue
        messages = locate(found.id, copy.place, copy.since)
        here |= {(copy.place, each.seq): each for each in messages}
        if messages:
            copy.seq = messages[0].seq
        elif copy.state == "waiting" and not any(place == copy.place for place, _ in here):
            copy.detail = copy.detail or "it is not there any more: purged, or taken within the last second"
        if copy.state == "waiting" and _is_dead(copy.place):
            copy.state = "dead"
    kept = [(place, message) for (place, _), message in here.items() if message.id == found.id]
    return sorted(kept, key=lambda item: (not _is_dead(item[0]), item[1].seq))


def _is_dead(queue: Destination) -> bool:
    stats = mirror().current().stats.get(queue.physical)
    return stats is not None and is_dead_letter_queue(stats)


def _alike(here: list[tuple[Destination, BrowsedMessage]]) -> Any:
    """The group of dead letters it belongs to, when it does not stand alone."""
    for queue, message in here:
        stats = mirror().current().stats.get(queue)
        if stats is None or not is_dead_letter_queue(stats):
            continue
        pattern, origin = pattern_of(message.headers.get("dlqDeliveryFailureCause", "")), message.came_from
        for cluster in survey([stats], gateway().browse_back, patience=0.5).clusters:
            if (cluster.pattern, cluster.origin) == (pattern, origin or "") and cluster.count > 1:
                return cluster
    return None
