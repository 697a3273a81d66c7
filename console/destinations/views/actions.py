"""Pages and forms that create, pause, purge and delete queues and topics."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Permission, destination_from_url, permission_required, queue_from_url
from console.destinations import services as service
from console.ui.formatting.number_format import pluralize_count


@require_POST
@permission_required(Permission.PAUSE, queue_from_url)
def pause(request: HttpRequest, name: str, paused: bool) -> HttpResponse:
    """Pause or resume delivery from a queue."""
    service.pause(request, Destination.queue(name), paused)
    messages.success(
        request, f"{name} is paused. New messages are stored but not delivered." if paused else f"{name} resumed."
    )
    return redirect("queue", name=name)


@require_POST
@permission_required(Permission.PAUSE, queue_from_url)
def reset_groups(request: HttpRequest, name: str) -> HttpResponse:
    """Reset the assignment of one message group of a queue, or of all."""
    count = service.reset_groups(request, Destination.queue(name), request.POST.get("group") or None)
    messages.success(
        request, f"Assignment of {pluralize_count(count, 'message group')} reset. The next message reassigns it."
    )
    return redirect(reverse("queue", kwargs={"name": name}) + "?tab=issues")


@require_POST
@permission_required(Permission.CREATE, queue_from_url)
def delete_selector(request: HttpRequest, name: str) -> HttpResponse:
    """Remove a selector of past consumers from the cache of a queue."""
    found = service.delete_selector(request, Destination.queue(name), request.POST.get("selector", ""))
    messages.success(request, "Selector removed." if found else "Selector was already removed.")
    return redirect("queue", name=name)


@require_http_methods(["GET", "POST"])
@permission_required(Permission.CREATE)
def create(request: HttpRequest, kind: str) -> HttpResponse:
    """Show the form that creates a queue or topic, and create it."""
    name, error = request.POST.get("name", ""), ""
    if request.method == "POST":
        try:
            destination, is_new = service.create(request, DestinationKind(kind), name)
            said = "created" if is_new else "already exists"
            messages.success(request, f"{kind.capitalize()} {destination.name} {said}. It is kept until it is deleted.")
            return redirect(f"{kind}s")
        except BrokerError as refused:
            error = str(refused)
    status = 400 if error else 200
    return render(request, "destinations/create.html", {"kind": kind, "name": name, "error": error}, status=status)


@require_http_methods(["GET", "POST"])
@permission_required(Permission.REMOVE, queue_from_url)
def purge(request: HttpRequest, name: str) -> HttpResponse:
    """Purge a queue after its name was typed."""
    destination = Destination.queue(name)
    _, stats = service.get_stats(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        count = service.purge(request, destination)
        messages.success(request, f"Queue {name} purged ({pluralize_count(count, 'message')}).")
        return redirect("queue", name=name)
    button = f"Purge {pluralize_count(stats.QueueSize, 'message')}"
    return _confirm(request, destination, "purge", button)


@require_http_methods(["GET", "POST"])
@permission_required(Permission.CREATE, destination_from_url)
def delete(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Delete a queue or topic and its messages after its name was typed."""
    destination = Destination(DestinationKind(kind), name)
    _, stats = service.get_stats(destination)
    if request.method == "POST" and request.POST.get("name") == name:
        count = service.delete(request, destination)
        messages.success(request, f"{kind.capitalize()} {name} deleted ({pluralize_count(count, 'message')}).")
        return redirect(f"{kind}s")
    held = f" and {pluralize_count(stats.QueueSize, 'message')}" if stats.QueueSize else ""
    return _confirm(request, destination, "delete", f"Delete {kind}{held}")


def _confirm(request: HttpRequest, destination: Destination, action: str, button: str) -> HttpResponse:
    typed = request.POST.get("name", "")
    error = f"{typed!r} does not match {destination.name!r}." if request.method == "POST" else ""
    back = reverse(destination.kind, kwargs={"name": destination.name})
    context = {"destination": destination, "action": action, "button": button, "error": error, "back": back}
    return render(request, "components/confirm.html", context, status=400 if error else 200)
