"""Queues and topics: the lists, one destination, and what an admin may do to it."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.destination import NAMED_KINDS, QUALIFIER, Destination, Kind
from brokerapp.errors import BrokerError
from console import destinations as service
from console.access import Verb, named, needs, queue_named
from console.connections import consumers_of
from console.figures import counted
from console.gateway import gateway
from console.listing import COLUMNS, PAGE_SIZES, ListQuery, columns_of, page_of
from console.live.mirror import mirror
from console.live.topics import chart_mark, mark_of, numbers_of
from console.routing.graph import feeders_of

MAX_FOUND = 50


@require_GET
@needs(Verb.SEE)
def queues(request: HttpRequest) -> HttpResponse:
    """The list of queues."""
    return _list(request, Kind.QUEUE)


@require_GET
@needs(Verb.SEE)
def topics(request: HttpRequest) -> HttpResponse:
    """The list of topics."""
    return _list(request, Kind.TOPIC)


def _list(request: HttpRequest, kind: Kind) -> HttpResponse:
    query = ListQuery.read(kind, request.GET)
    page = page_of(mirror().current(), query)
    context = {
        "kind": kind,
        "query": query,
        "page": page,
        "columns": [
            (column, _sort_link(query, column.name), _aria_sort(query, column.name)) for column in columns_of(kind)
        ],
        "name_link": _sort_link(query, "name"),
        "name_sort": _aria_sort(query, "name"),
        "chips": [(label, count, query.url(chip=name), name == query.chip) for name, label, count in page.chips],
        "sizes": [(size, query.url(size=size), size == query.size) for size in PAGE_SIZES],
        "previous": query.url(page=page.page - 1) if page.page > 1 else "",
        "next": query.url(page=page.page + 1) if page.page < page.pages else "",
    }
    template = "console/parts/list.html" if request.htmx and not request.htmx.boosted else "console/list.html"
    return render(request, template, context)


def _sort_link(query: ListQuery, name: str) -> str:
    if query.sort == name:
        return query.url(descending=not query.descending)
    return query.url(sort=name, descending=name != "name")  # numbers: the largest first


def _aria_sort(query: ListQuery, name: str) -> str:
    if query.sort != name:
        return "none"
    return "descending" if query.descending else "ascending"


@require_GET
@needs(Verb.SEE)
def find(request: HttpRequest) -> HttpResponse:
    """Queues and topics whose name holds the text; goes straight to the only one, or to that of exactly this name."""
    text = request.GET.get("q", "").strip()
    everything = sorted(each for each in mirror().current().stats if each.kind in NAMED_KINDS)
    name = text.partition(QUALIFIER)[2] or text  # of a fully qualified name, the queue's
    found = [each for each in everything if name.lower() in each.name.lower()]
    exact = [each for each in found if each.name == name]
    if text and (len(found) == 1 or len(exact) == 1):
        one = (exact or found)[0]
        return redirect(one.kind, name=one.name)
    return render(request, "console/find.html", {"text": text, "found": found[:MAX_FOUND], "total": len(found)})


@require_GET
@needs(Verb.SEE, named)
def detail(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """One queue or topic: its numbers, its last minutes, who consumes, what feeds it."""
    destination = Destination(Kind(kind), name).physical
    picture, stats = service.existing(destination)
    numbers = numbers_of(picture, stats)
    shown = [COLUMNS[each] for each in COLUMNS if kind == Kind.QUEUE or each not in ("DeadLetterCount", "DequeueRate")]
    marks = [*picture.trails.get(destination, ()), mark_of(picture, stats)]
    context = {
        "destination": destination,
        "stats": stats,
        "numbers": numbers,
        "columns": [(column, numbers[column.name]) for column in shown if column.is_jmx],
        "marks": [chart_mark(mark) for mark in marks],
        "consumers": consumers_of(picture, destination),
        "feeders": feeders_of(destination, gateway().definitions()),
        "selectors": _remembered(destination),
    }
    return render(request, "console/destination.html", context)


def _remembered(destination: Destination) -> list[tuple[str, datetime]]:
    """Selectors of a queue's former consumers, with the time of their last use."""
    if not destination.is_queue:
        return []
    found = gateway().selectors_of(destination)
    return [(selector, datetime.fromtimestamp(used / 1000, UTC)) for selector, used in found.items()]


@require_POST
@needs(Verb.PAUSE, queue_named)
def pause(request: HttpRequest, name: str, paused: bool) -> HttpResponse:
    """Let a queue give out nothing any more, or go on."""
    service.pause(request, Destination.queue(name), paused)
    messages.success(request, f"{name} is paused: it keeps what comes." if paused else f"{name} goes on.")
    return redirect("queue", name=name)


@require_POST
@needs(Verb.CREATE, queue_named)
def forget_selector(request: HttpRequest, name: str) -> HttpResponse:
    """Remember one selector of a queue's former consumers no longer."""
    found = service.forget_selector(request, Destination.queue(name), request.POST.get("selector", ""))
    messages.success(request, "It is forgotten." if found else "It was forgotten already.")
    return redirect("queue", name=name)


@require_http_methods(["GET", "POST"])
@needs(Verb.CREATE)
def create(request: HttpRequest, kind: str) -> HttpResponse:
    """Make a queue or topic by name."""
    name, error = request.POST.get("name", ""), ""
    if request.method == "POST":
        try:
            destination = service.create(request, Kind(kind), name)
            messages.success(request, f"The {kind} {destination.name} exists now.")
            return redirect(f"{kind}s")
        except BrokerError as refused:
            error = str(refused)
    status = 400 if error else 200
    return render(request, "console/create.html", {"kind": kind, "name": name, "error": error}, status=status)


@require_http_methods(["GET", "POST"])
@needs(Verb.REMOVE, queue_named)
def purge(request: HttpRequest, name: str) -> HttpResponse:
    """Remove all messages of a queue, after its name was typed."""
    destination = Destination.queue(name)
    _, stats = service.existing(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        count = service.purge(request, destination)
        messages.success(request, f"{counted(count, 'message')} removed from {name}.")
        return redirect("queue", name=name)
    return _confirm(request, destination, "purge", f"Purge {counted(stats.QueueSize, 'message')} from {name}")


@require_http_methods(["GET", "POST"])
@needs(Verb.CREATE, named)
def delete(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Remove a queue or topic with all it holds, after its name was typed."""
    destination = Destination(Kind(kind), name)
    _, stats = service.existing(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        count = service.delete(request, destination)
        messages.success(request, f"The {kind} {name} is deleted, and {counted(count, 'message')} with it.")
        return redirect(f"{kind}s")
    held = f" with {counted(stats.QueueSize, 'message')}" if stats.QueueSize else ""
    return _confirm(request, destination, "delete", f"Delete the {kind} {name}{held}")


def _confirm(request: HttpRequest, destination: Destination, action: str, sentence: str) -> HttpResponse:
    typed = request.POST.get("name", "")
    error = f"{typed!r} is not {destination.name!r}." if request.method == "POST" else ""
    back = reverse(destination.kind, kwargs={"name": destination.name})
    context = {"destination": destination, "action": action, "sentence": sentence, "error": error, "back": back}
    return render(request, "console/confirm.html", context, status=400 if error else 200)
