"""Queues and topics: finding one, and what an operator may do to it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Verb, destination_from_url, permission_required, queue_from_url
from console.destinations import services as service
from console.ui.formatting.number_format import pluralize_count


@require_POST
@permission_required(Verb.PAUSE, queue_from_url)
def pause(request: HttpRequest, name: str, paused: bool) -> HttpResponse:
    """Let a queue give out nothing any more, or go on."""
    service.pause(request, Destination.queue(name), paused)
    messages.success(request, f"{name} is paused: it keeps what comes." if paused else f"{name} goes on.")
    return redirect("queue", name=name)


@require_POST
@permission_required(Verb.PAUSE, queue_from_url)
def forget_groups(request: HttpRequest, name: str) -> HttpResponse:
    """Let a message group of a queue, or all, be assigned anew with the next message."""
    count = service.forget_groups(request, Destination.queue(name), request.POST.get("group") or None)
    messages.success(request, f"{pluralize_count(count, 'group')} will be assigned anew with the next message.")
    return redirect(reverse("queue", kwargs={"name": name}) + "?tab=losses")


@require_POST
@permission_required(Verb.CREATE, queue_from_url)
def forget_selector(request: HttpRequest, name: str) -> HttpResponse:
    """Remember one selector of a queue's former consumers no longer."""
    found = service.forget_selector(request, Destination.queue(name), request.POST.get("selector", ""))
    messages.success(request, "It is forgotten." if found else "It was forgotten already.")
    return redirect("queue", name=name)


@require_http_methods(["GET", "POST"])
@permission_required(Verb.CREATE)
def create(request: HttpRequest, kind: str) -> HttpResponse:
    """Make a queue or topic by name."""
    name, error = request.POST.get("name", ""), ""
    if request.method == "POST":
        try:
            destination, is_new = service.create(request, DestinationKind(kind), name)
            said = "exists now" if is_new else "was there already"
            messages.success(request, f"The {kind} {destination.name} {said}. It stays until somebody deletes it.")
            return redirect(f"{kind}s")
        except BrokerError as refused:
            error = str(refused)
    status = 400 if error else 200
    return render(request, "destinations/create.html", {"kind": kind, "name": name, "error": error}, status=status)


@require_http_methods(["GET", "POST"])
@permission_required(Verb.REMOVE, queue_from_url)
def purge(request: HttpRequest, name: str) -> HttpResponse:
    """Remove all messages of a queue, after its name was typed."""
    destination = Destination.queue(name)
    _, stats = service.existing(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        count = service.purge(request, destination)
        messages.success(request, f"{pluralize_count(count, 'message')} removed from {name}.")
        return redirect("queue", name=name)
    return _confirm(request, destination, "purge", f"Purge {pluralize_count(stats.QueueSize, 'message')} from {name}")


@require_http_methods(["GET", "POST"])
@permission_required(Verb.CREATE, destination_from_url)
def delete(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Remove a queue or topic with all it holds, after its name was typed."""
    destination = Destination(DestinationKind(kind), name)
    _, stats = service.existing(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        count = service.delete(request, destination)
        messages.success(request, f"The {kind} {name} is deleted, and {pluralize_count(count, 'message')} with it.")
        return redirect(f"{kind}s")
    held = f" with {pluralize_count(stats.QueueSize, 'message')}" if stats.QueueSize else ""
    return _confirm(request, destination, "delete", f"Delete the {kind} {name}{held}")


def _confirm(request: HttpRequest, destination: Destination, action: str, sentence: str) -> HttpResponse:
    typed = request.POST.get("name", "")
    error = f"{typed!r} is not {destination.name!r}." if request.method == "POST" else ""
    back = reverse(destination.kind, kwargs={"name": destination.name})
    context = {"destination": destination, "action": action, "sentence": sentence, "error": error, "back": back}
    return render(request, "components/confirm.html", context, status=400 if error else 200)
