"""Queues and topics: finding one, and what an operator may do to it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from brokerapp.destination import Destination, Kind, is_pattern
from brokerapp.errors import BrokerError, InvalidDestination
from brokerapp.snapshot import DestinationStats
from console import audit
from console.access import Verb, named, needs, queue_named, require
from console.figures import counted
from console.gateway import gateway
from console.live.mirror import mirror
from console.live.picture import Picture


@require_POST
@needs(Verb.PAUSE, queue_named)
def pause(request: HttpRequest, name: str, paused: bool) -> HttpResponse:
    """Let a queue give out nothing any more, or go on."""
    destination = Destination.queue(name)
    existing(destination)
    with audit.recording(request, "pause" if paused else "resume", destination):
        gateway().pause(destination, paused)
    mirror().settle(lambda picture: destination in picture.stats and picture.stats[destination].Paused == paused)
    messages.success(request, f"{name} is paused: it keeps what comes." if paused else f"{name} goes on.")
    return redirect("queue", name=name)


@require_POST
@needs(Verb.PAUSE, queue_named)
def forget_groups(request: HttpRequest, name: str) -> HttpResponse:
    """Let a message group of a queue, or all, be assigned anew with the next message."""
    destination, group = Destination.queue(name), request.POST.get("group") or None
    existing(destination)
    with audit.recording(request, "forget groups", destination, before={"group": group or "all"}) as change:
        count = gateway().forget_groups(destination, group)
        change.after = {"had an owner": count}
    messages.success(request, f"{counted(count, 'group')} will be assigned anew with the next message.")
    return redirect(reverse("queue", kwargs={"name": name}) + "?tab=losses")


@require_POST
@needs(Verb.CREATE, queue_named)
def forget_selector(request: HttpRequest, name: str) -> HttpResponse:
    """Remember one selector of a queue's former consumers no longer."""
    destination, selector = Destination.queue(name), request.POST.get("selector", "")
    existing(destination)
    with audit.recording(request, "forget selector", destination, before={"selector": selector}):
        found = gateway().forget_selectors(destination, selector)
    messages.success(request, "It is forgotten." if found else "It was forgotten already.")
    return redirect("queue", name=name)


def existing(destination: Destination) -> tuple[Picture, DestinationStats]:
    """Its numbers. Looks again before it says that there is none: it may be newer than the picture."""
    for look in (mirror().current, mirror().refresh):
        picture = look()
        if destination in picture.stats:
            return picture, picture.stats[destination]
    raise Http404(f"There is no {destination.kind} named {destination.name}.")


@require_http_methods(["GET", "POST"])
@needs(Verb.CREATE)
def create(request: HttpRequest, kind: str) -> HttpResponse:
    """Make a queue or topic by name."""
    name, error = request.POST.get("name", ""), ""
    if request.method == "POST":
        try:
            destination = _named(Kind(kind), name)
            require(request, Verb.CREATE, destination)
            with audit.recording(request, "create", destination):
                gateway().create(destination)
            mirror().settle(lambda picture: destination in picture.stats)
            messages.success(request, f"The {kind} {destination.name} exists now.")
            return redirect(f"{kind}s")
        except BrokerError as refused:
            error = str(refused)
    status = 400 if error else 200
    return render(request, "console/create.html", {"kind": kind, "name": name, "error": error}, status=status)


def _named(kind: Kind, text: str) -> Destination:
    name = text.strip()
    if not name:
        raise InvalidDestination(text, "give it a name")
    if is_pattern(name):
        raise InvalidDestination(name, "a whole element `*` or a last element `>` makes a pattern, which names many")
    return Destination(kind, name)


@require_http_methods(["GET", "POST"])
@needs(Verb.REMOVE, queue_named)
def purge(request: HttpRequest, name: str) -> HttpResponse:
    """Remove all messages of a queue, after its name was typed."""
    destination = Destination.queue(name)
    _, stats = existing(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        with audit.recording(request, "purge", destination, before={"QueueSize": stats.QueueSize}) as change:
            count = gateway().purge(destination)
            change.after = {"removed": count}
        messages.success(request, f"{counted(count, 'message')} removed from {name}.")
        return redirect("queue", name=name)
    return _confirm(request, destination, "purge", f"Purge {counted(stats.QueueSize, 'message')} from {name}")


@require_http_methods(["GET", "POST"])
@needs(Verb.CREATE, named)
def delete(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Remove a queue or topic with all it holds, after its name was typed."""
    destination = Destination(Kind(kind), name)
    _, stats = existing(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        with audit.recording(request, "delete", destination, before={"QueueSize": stats.QueueSize}) as change:
            count = gateway().delete(destination)
            change.after = {"removed": count}
        messages.success(request, f"The {kind} {name} is deleted, and {counted(count, 'message')} with it.")
        mirror().settle(lambda picture: destination not in picture.stats)
        return redirect(f"{kind}s")
    held = f" with {counted(stats.QueueSize, 'message')}" if stats.QueueSize else ""
    return _confirm(request, destination, "delete", f"Delete the {kind} {name}{held}")


def _confirm(request: HttpRequest, destination: Destination, action: str, sentence: str) -> HttpResponse:
    typed = request.POST.get("name", "")
    error = f"{typed!r} is not {destination.name!r}." if request.method == "POST" else ""
    back = reverse(destination.kind, kwargs={"name": destination.name})
    context = {"destination": destination, "action": action, "sentence": sentence, "error": error, "back": back}
    return render(request, "console/confirm.html", context, status=400 if error else 200)
