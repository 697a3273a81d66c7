"""Runs background searches in a worker: page by page of each queue, then the trace, in slices of some seconds.

Permissions of the user are read again for each slice. A worker may be killed at any point: the position is stored with
each page, and each result once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage
from console.access.masking import mask_message
from console.access.permissions import Permission, restrict, visible
from console.access.roles import Sees
from console.broker.gateway import gateway
from console.messages.search.lookup import MaskMessage, MessageHit, matching_messages, parse_query, search_trace
from console.messages.search.models import MessageSearch, SearchHit
from console.messages.search.search_service import parse_limit, wake_worker

State = MessageSearch.State
#: Messages read at once, and results at which a search stops.
PAGE, MAX_HITS = 500, 500
#: Seconds after which a worker requeues a search, so that others get their turn; and time limit for the trace.
SLICE_SECONDS, TRACE_SECONDS = 10.0, 30.0
#: How long a worker owns a search exclusively; longer than a slice and the trace may take.
LEASE = timedelta(seconds=120)


def run_slice(search_id: str) -> str:
    """Run a slice of a search and return its state; a search of another worker is skipped."""
    now = timezone.now()
    free = MessageSearch.objects.filter(Q(lease=None) | Q(lease__lt=now), id=search_id)
    if not free.exclude(state__in=MessageSearch.FINAL).update(state=State.RUNNING, lease=now + LEASE, note=""):
        return "not mine"
    search = MessageSearch.objects.get(id=search_id)
    try:
        _slice(search)
    except StoreUnavailable as error:
        _running(search).update(state=State.QUEUED, note=f"{error}. The search continues when the store answers.")
    except BrokerError as error:
        _end(search, State.FAILED, str(error))
    else:
        if _running(search).update(state=State.QUEUED, lease=None):
            wake_worker(search)
    MessageSearch.objects.filter(id=search_id).update(lease=None)
    return MessageSearch.objects.get(id=search_id).state


def _slice(search: MessageSearch) -> None:
    user = User.objects.filter(pk=search.user_id, is_active=True).first()
    if user is None:
        _end(search, State.FAILED, "The user is disabled.")
        return
    if search.limit is not None:
        restrict(user, parse_limit(search.limit))
    sees, shown = visible(user, Permission.BROWSE), partial(_shown, user)
    until = time.monotonic() + SLICE_SECONDS
    while time.monotonic() < until:
        search.refresh_from_db(fields=["state", "position", "before"])  # not the queues: there may be thousands
        if search.state != State.RUNNING:
            return
        if search.hits.count() >= MAX_HITS:
            _end(search, State.DONE, f"Stopped after {MAX_HITS} messages. Search for a more specific value.")
            return
        if search.position >= len(search.queues):
            _search_trace(search, sees, shown)
            return
        _search_page(search, sees, shown)


def _shown(user: User, message: BrowsedMessage, place: Destination) -> BrowsedMessage:
    return mask_message(user, message, place)


def _search_page(search: MessageSearch, sees: Sees, shown: MaskMessage) -> None:
    """Search the next page of the current queue, from the newest message back."""
    name, holds_dead_letters = search.queues[search.position]
    queue = Destination.parse(name)
    messages, following = _page(queue, search.before or END_OF_LOG) if sees(queue) else ([], None)
    wanted, names = parse_query(search.text)
    found = matching_messages(messages, queue, holds_dead_letters, wanted, names, shown)
    moved = {"before": following} if following is not None else {"before": 0, "position": F("position") + 1}
    with transaction.atomic():
        _save_hits(search, found)
        MessageSearch.objects.filter(id=search.id).update(
            scanned=F("scanned") + len(messages), lease=timezone.now() + LEASE, **moved
        )


def _page(queue: Destination, before: int) -> tuple[list[BrowsedMessage], int | None]:
    """Messages before this one, and where to continue; nothing when the queue was deleted meanwhile."""
    try:
        page = gateway().browse_back(queue, before, PAGE, None, PAGE)
    except StoreUnavailable:
        raise
    except BrokerError:
        return [], None
    return page.messages, page.next


def _search_trace(search: MessageSearch, sees: Sees, shown: MaskMessage) -> None:
    wanted, names = parse_query(search.text)
    found, is_complete = search_trace(wanted, names, sees, shown, TRACE_SECONDS)
    known = set(search.hits.values_list("message_id", "place"))
    _save_hits(search, (each for each in found if (each.id, str(each.destination)) not in known))
    note = "" if is_complete else f"The recorded trace was not searched completely within {TRACE_SECONDS:g} s."
    _end(search, State.DONE, note)


def _save_hits(search: MessageSearch, found: Iterable[MessageHit]) -> None:
    rows = [
        SearchHit(
            search=search, message_id=each.id, place=str(each.destination), state=each.state, seq=each.seq,
            moment=each.when, why=each.why, origin=each.origin, cause=each.cause,
        )
        for each in found
    ]  # fmt: skip
    SearchHit.objects.bulk_create(rows, ignore_conflicts=True)


def _running(search: MessageSearch) -> QuerySet[MessageSearch]:
    return MessageSearch.objects.filter(id=search.id, state=State.RUNNING)


def _end(search: MessageSearch, state: State, note: str) -> None:
    _running(search).update(state=state, note=note, finished=timezone.now())
