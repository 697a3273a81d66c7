"""Page of one message: its journey, its stored copies, and actions to resubmit it."""

from __future__ import annotations

from contextlib import suppress
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
from brokerapp.openwire.shown_messages import jms_form
from console.access.masking import MaskedMessage, mask_message
from console.access.permissions import Permission, pattern_filter, permission_message, permission_required, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.messages.body_format import BodyRendering, render_body
from console.messages.dead_letter_groups import is_dead_letter_queue, pattern_of, survey_queues
from console.messages.journey.journey import Journey
from console.messages.journey.journey_service import journey_of
from console.messages.message_view import MessageView, parse_time
from console.messages.search.lookup import locate
from console.ui.formatting.url_query import parse_integer


@require_GET
@permission_required(Permission.BROWSE)
def message(request: HttpRequest, id: str) -> HttpResponse:
    """Show the page of one message; `queue` and `seq` may name a stored copy."""
    found = journey_of(id, pattern_filter(request.user))
    here = _copies(request, found)
    sees = visible(request.user, Permission.BROWSE)
    places = {step.destination for step in found.steps if step.destination} | {queue for queue, _ in here}
    if places and not any(map(sees, places)):
        trail.record_denied(request, "browse", id, permission_message(Permission.BROWSE))
        raise PermissionDenied(permission_message(Permission.BROWSE))
    awaits_trace = found.awaits_trace(timezone.now())  # of the whole journey: hidden steps are not waited for
    found = found.visible_to(sees)
    if request.htmx and request.htmx.target == "awaits-trace":
        return render(request, "messages/recording_pending.html") if awaits_trace else HttpResponseClientRefresh()
    here = [(queue, message) for queue, message in here if sees(queue)]
    shown = [(queue, mask_message(request.user, message, queue)) for queue, message in here]
    similar = _similar_group(here)
    recorded = _recorded(request, found) if not shown else None
    context = {
        "id": id, "journey": found, "recorded": recorded, "awaits_trace": awaits_trace,
        "places": [(queue, MessageView(message), _is_dlq(queue)) for queue, message in shown],
        "first": MessageView(shown[0][1]) if shown else None,
        "renderings": _renderings(shown[0][1]) if shown else [],
        "similar": similar, "similar_count": gateway().count(similar.queue, similar.selector) if similar else None,
    }  # fmt: skip
    status = (
        404 if found.complete and not found.steps and not here else 200
    )  # an incomplete search is not proof of absence
    return render(request, "messages/message.html", context, status=status)


@require_GET
@permission_required(Permission.BROWSE)
def resubmit_outcome(request: HttpRequest, id: str) -> HttpResponse:
    """Show the outcome of a resubmitted message; a page polls this until the message is processed or fails again."""
    since = request.GET.get("since", "0")
    after = parse_time(since)
    sees = visible(request.user, Permission.BROWSE)
    found = journey_of(id).visible_to(sees)
    copies = [
        copy for copy in found.copies
        if (after is None or copy.since >= after) and not _is_dlq(copy.destination)
    ]  # fmt: skip
    last = copies[-1] if copies else None
    over = last is not None and last.state in ("processed", "failed", "expired", "dropped")
    asked = parse_integer(request.GET.get("asked"), digits=3) + 1
    context = {"id": id, "copies": copies, "over": over, "since": since, "asked": asked}
    return render(request, "messages/resubmit_outcome.html", context)


def _renderings(message: MaskedMessage) -> list[BodyRendering]:
    return [] if message.withheld else render_body(message.body, jms_form(message.headers))


def _recorded(request: HttpRequest, found: Journey) -> MessageView | None:
    """Return a message that no queue stores, as recorded when it was sent."""
    place = found.sent_to or next((copy.destination for copy in found.copies), None)
    if place is None:
        return None
    headers = {"message-id": found.id, "destination": place.stomp, **found.properties}
    message = BrowsedMessage(0, found.id, place.stomp, None, headers, b"", found.size)
    return MessageView(mask_message(request.user, message, place))


StoredCopies = list[tuple[Destination, BrowsedMessage]]


def _copies(request: HttpRequest, found: Journey) -> StoredCopies:
    """Return the copies that queues still store, dead letters first; a queue may store several."""
    here: dict[tuple[Destination, int], BrowsedMessage] = {}
    queue, seq = request.GET.get("queue", ""), request.GET.get("seq", "")
    if queue and seq.isdecimal() and len(seq) < 19:
        place = Destination.queue(queue)
        with suppress(BrokerError):
            here |= {(place, each.seq): each for each in gateway().message(place, int(seq)).messages}
    for copy in found.copies:
        if copy.state not in ("waiting", "held"):
            continue
        messages = locate(found.id, copy.destination, copy.since)
        here |= {(copy.destination, each.seq): each for each in messages}
        if messages:
            copy.seq = messages[0].seq
        elif copy.state == "waiting" and not any(place == copy.destination for place, _ in here):
            copy.detail = copy.detail or "no longer stored: purged, or consumed within the last second"
        if copy.state == "waiting" and _is_dlq(copy.destination):
            copy.state = "dead"
    kept = [(place, message) for (place, _), message in here.items() if message.id == found.id]
    return sorted(kept, key=lambda item: (not _is_dlq(item[0]), item[1].seq))


def _is_dlq(queue: Destination) -> bool:
    stats = mirror().current().stats.get(queue.physical)
    return stats is not None and is_dead_letter_queue(stats)


def _similar_group(here: list[tuple[Destination, BrowsedMessage]]) -> Any:
    """Return the group of similar dead letters, if there are others."""
    for queue, message in here:
        stats = mirror().current().stats.get(queue)
        if stats is None or not is_dead_letter_queue(stats):
            continue
        pattern, origin = pattern_of(message.headers.get("dlqDeliveryFailureCause", "")), message.came_from
        for group in survey_queues([stats], gateway().browse_back, patience=0.5).groups:
            if (group.pattern, group.origin) == (pattern, origin or "") and group.count > 1:
                return group
    return None
