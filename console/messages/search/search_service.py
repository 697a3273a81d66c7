"""Starts, cancels and reads background searches. Users see only their own, limited to what they may browse now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils import timezone

from brokerapp.errors import RequestRefused, StoreUnavailable
from console.access.permissions import Permission, grants_of, visible
from console.access.roles import Scope, TokenLimit
from console.broker.mirror import mirror
from console.broker.task_queue import enqueue
from console.messages.dead_letter_groups import is_dead_letter_queue
from console.messages.search.lookup import MessageHit, merge_copies, search_order
from console.messages.search.models import MessageSearch, SearchHit

#: Searches that one user may run at once, and how long finished ones are kept.
MAX_RUNNING, RETENTION = 2, timedelta(days=1)
State = MessageSearch.State


def start(request: HttpRequest, text: str) -> MessageSearch:
    """Start a search of all queues that the user may browse. Raises RequestRefused."""
    text = text.strip()
    if not 1 <= len(text) <= 300:
        raise RequestRefused("q: enter 1 to 300 characters to search for")
    MessageSearch.objects.filter(state__in=MessageSearch.FINAL, finished__lt=timezone.now() - RETENTION).delete()
    if _own(request).exclude(state__in=MessageSearch.FINAL).count() >= MAX_RUNNING:
        raise RequestRefused(f"{MAX_RUNNING} of your searches are running. Cancel one, or wait until it is done")
    sees = visible(request.user, Permission.BROWSE)
    queues = search_order(each for each in mirror().current().stats.values() if sees(each.destination))
    search = MessageSearch.objects.create(
        user=request.user, text=text, limit=_limit(request),
        queues=[(str(each.destination), is_dead_letter_queue(each)) for each in queues],
        expected=sum(each.QueueSize for each in queues),
    )  # fmt: skip
    wake_worker(search)
    return search


def wake_worker(search: MessageSearch) -> None:
    """Queue a task for a search. A worker that starts later finds queued searches itself."""
    try:
        enqueue("console.search_on", str(search.id))
    except StoreUnavailable as error:
        MessageSearch.objects.filter(id=search.id).update(note=str(error))


def wake_lost_searches() -> None:
    """Queue tasks for open searches without a worker."""
    open_ones = MessageSearch.objects.exclude(state__in=MessageSearch.FINAL)
    for each in open_ones.exclude(lease__gte=timezone.now()):
        wake_worker(each)


def cancel(search: MessageSearch) -> None:
    """Cancel a search; its results are kept."""
    open_ones = MessageSearch.objects.filter(id=search.id).exclude(state__in=MessageSearch.FINAL)
    if open_ones.update(state=State.CANCELLED, finished=timezone.now()):
        search.refresh_from_db()


def get_search(request: HttpRequest, search_id: UUID) -> MessageSearch:
    """Return a search of this user. Raises Http404 for any other."""
    found = _own(request).filter(id=search_id).first()
    if found is None:
        raise Http404("Search not found. It may have been deleted.")
    return found


def hits(request: HttpRequest, search: MessageSearch) -> list[MessageHit]:
    """Return one result per message, limited to what the user may browse now; dead letters first."""
    sees = visible(request.user, Permission.BROWSE)
    return merge_copies(_hit(each) for each in search.hits.all() if sees(each.destination))


def _hit(row: SearchHit) -> MessageHit:
    return MessageHit(
        row.message_id, row.destination, row.state, row.moment, row.why, row.origin, row.cause, row.seq
    )  # fmt: skip


def _own(request: HttpRequest) -> QuerySet[MessageSearch]:
    return MessageSearch.objects.filter(user=request.user.pk)


def _limit(request: HttpRequest) -> dict[str, Any] | None:
    """Return the limits of the caller's API token as JSON; None without a token."""
    limit = next((each.limit for each in grants_of(request.user) if each.limit is not None), None)
    if limit is None:
        return None
    return {"verbs": [each.name for each in limit.permissions], "scopes": [str(each) for each in limit.scopes]}


def parse_limit(data: dict[str, Any]) -> TokenLimit:
    """Parse limits that `start` stored."""
    return TokenLimit(frozenset(Permission[each] for each in data["verbs"]), tuple(map(Scope.parse, data["scopes"])))
