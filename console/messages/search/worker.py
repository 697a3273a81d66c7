"""A worker's part of a search: page after page of each queue, then the recorded trace, in slices of some seconds.

The rights of the user are read again with each slice. A worker may be killed anywhere: where it was is noted with each
page, and a hit is kept once.
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
from console.access.permissions import Verb, restrict, visible
from console.access.roles import Sees
from console.broker.gateway import gateway
from console.messages.search.lookup import Hit, Shown, in_trace, matching, parse
from console.messages.search.models import MessageSearch, SearchHit
from console.messages.search.search_service import limit_from, rouse

State = MessageSearch.State
#: Messages read at a time, and messages that a search finds at most: more is no search.
PAGE, MAX_HITS = 500, 500
#: Seconds after which a worker gives a search back, so that others have their turn, and seconds for the trace.
SLICE, TRACE_SECONDS = 10.0, 30.0
#: For so long a search belongs to the worker that took it: longer than a slice and the trace may take.
LEASE = timedelta(seconds=120)


def work(search_id: str) -> str:
    """Do a slice of a search; its state then. Another worker's search is left alone."""
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
            rouse(search)
    MessageSearch.objects.filter(id=search_id).update(lease=None)
    return MessageSearch.objects.get(id=search_id).state


def _slice(search: MessageSearch) -> None:
    user = User.objects.filter(pk=search.user_id, is_active=True).first()
    if user is None:
        _end(search, State.FAILED, "The user is disabled.")
        return
    if search.limit is not None:
        restrict(user, limit_from(search.limit))
    sees, shown = visible(user, Verb.BROWSE), partial(_shown, user)
    until = time.monotonic() + SLICE
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


def _search_page(search: MessageSearch, sees: Sees, shown: Shown) -> None:
    """Search the next page of the current queue, from the newest message back."""
    name, holds_dead_letters = search.queues[search.position]
    queue = Destination.parse(name)
    messages, following = _page(queue, search.before or END_OF_LOG) if sees(queue) else ([], None)
    wanted, names = parse(search.text)
    found = matching(messages, queue, holds_dead_letters, wanted, names, shown)
    moved = {"before": following} if following is not None else {"before": 0, "position": F("position") + 1}
    with transaction.atomic():
        _keep(search, found)
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


def _search_trace(search: MessageSearch, sees: Sees, shown: Shown) -> None:
    wanted, names = parse(search.text)
    found, is_complete = in_trace(wanted, names, sees, shown, TRACE_SECONDS)
    known = set(search.hits.values_list("message_id", "place"))
    _keep(search, (each for each in found if (each.id, str(each.place)) not in known))
    note = "" if is_complete else f"The recorded trace was not searched completely within {TRACE_SECONDS:g} s."
    _end(search, State.DONE, note)


def _keep(search: MessageSearch, found: Iterable[Hit]) -> None:
    rows = [
        SearchHit(
            search=search, message_id=each.id, place=str(each.place), state=each.state, seq=each.seq,
            moment=each.when, why=each.why, origin=each.origin, cause=each.cause,
        )
        for each in found
    ]  # fmt: skip
    SearchHit.objects.bulk_create(rows, ignore_conflicts=True)


def _running(search: MessageSearch) -> QuerySet[MessageSearch]:
    return MessageSearch.objects.filter(id=search.id, state=State.RUNNING)


def _end(search: MessageSearch, state: State, note: str) -> None:
    _running(search).update(state=state, note=note, finished=timezone.now())
