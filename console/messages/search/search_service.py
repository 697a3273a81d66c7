"""Starting, cancelling and showing searches. A user sees their own only, as far as they may browse now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils import timezone

from brokerapp.errors import RequestRefused, StoreUnavailable
from console.access.permissions import Verb, grants_of, visible
from console.access.roles import Scope, TokenLimit
from console.broker.mirror import mirror
from console.broker.task_queue import enqueue
from console.messages.dead_letter_groups import is_dead_letter_queue
from console.messages.search.lookup import Hit, by_message, in_order
from console.messages.search.models import MessageSearch, SearchHit

#: Searches of one user that run at a time, and for how long they are kept once they are over.
MOST, KEPT = 2, timedelta(days=1)
State = MessageSearch.State


def start(request: HttpRequest, text: str) -> MessageSearch:
    """Begin a search through all queues that the user may browse. Raises RequestRefused."""
    text = text.strip()
    if not 1 <= len(text) <= 300:
        raise RequestRefused("q: enter 1 to 300 characters to search for")
    MessageSearch.objects.filter(state__in=MessageSearch.FINAL, finished__lt=timezone.now() - KEPT).delete()
    if _own(request).exclude(state__in=MessageSearch.FINAL).count() >= MOST:
        raise RequestRefused(f"{MOST} of your searches are running. Cancel one, or wait until it is done")
    sees = visible(request.user, Verb.BROWSE)
    queues = in_order(each for each in mirror().current().stats.values() if sees(each.destination))
    search = MessageSearch.objects.create(
        user=request.user, text=text, limit=_limit(request),
        queues=[(str(each.destination), is_dead_letter_queue(each)) for each in queues],
        expected=sum(each.QueueSize for each in queues),
    )  # fmt: skip
    rouse(search)
    return search


def rouse(search: MessageSearch) -> None:
    """Have a worker continue a search; one that is not there now finds it when it starts."""
    try:
        enqueue("console.search_on", str(search.id))
    except StoreUnavailable as error:
        MessageSearch.objects.filter(id=search.id).update(note=str(error))


def rouse_lost() -> None:
    """Have workers continue searches that none has."""
    open_ones = MessageSearch.objects.exclude(state__in=MessageSearch.FINAL)
    for each in open_ones.exclude(lease__gte=timezone.now()):
        rouse(each)


def cancel(search: MessageSearch) -> None:
    """End a search; what was found stays."""
    open_ones = MessageSearch.objects.filter(id=search.id).exclude(state__in=MessageSearch.FINAL)
    if open_ones.update(state=State.CANCELLED, finished=timezone.now()):
        search.refresh_from_db()


def existing(request: HttpRequest, search_id: UUID) -> MessageSearch:
    """A search of this user. Raises Http404 for any other."""
    found = _own(request).filter(id=search_id).first()
    if found is None:
        raise Http404("Search not found. It may have been deleted.")
    return found


def hits(request: HttpRequest, search: MessageSearch) -> list[Hit]:
    """One hit for each message that was found where the user may browse now; dead letters first."""
    sees = visible(request.user, Verb.BROWSE)
    return by_message(_hit(each) for each in search.hits.all() if sees(each.destination))


def _hit(row: SearchHit) -> Hit:
    return Hit(
        row.message_id, row.destination, row.state, row.moment, row.why, row.origin, row.cause, row.seq
    )  # fmt: skip


def _own(request: HttpRequest) -> QuerySet[MessageSearch]:
    return MessageSearch.objects.filter(user=request.user.pk)


def _limit(request: HttpRequest) -> dict[str, Any] | None:
    """What the caller's token leaves of their rights; None without a token."""
    limit = next((each.limit for each in grants_of(request.user) if each.limit is not None), None)
    if limit is None:
        return None
    return {"verbs": [each.name for each in limit.verbs], "scopes": [str(each) for each in limit.scopes]}


def limit_from(data: dict[str, Any]) -> TokenLimit:
    """The inverse of what `start` keeps."""
    return TokenLimit(frozenset(Verb[each] for each in data["verbs"]), tuple(map(Scope.parse, data["scopes"])))
