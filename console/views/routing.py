"""Routing: virtual and composite destinations as a list and as a picture; create, edit, delete; history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.definitions import (
    Composite,
    Definitions,
    MirroredQueue,
    VirtualDestination,
    VirtualTopic,
    virtual_destination_to_json,
)
from brokerapp.errors import DefinitionConflict, DefinitionRefused
from console import audit
from console.access import Verb, needs
from console.routing.forms import KINDS, OPTIONS, CompositeForm, LegRow, form_for
from console.gateway import gateway
from console.live.mirror import mirror
from console.routing.advice import advice
from console.routing.graph import picture_of
from console.routing.fragment import fragment_of


@require_GET
@needs(Verb.SEE)
def routing(request: HttpRequest) -> HttpResponse:
    """All definitions, with the picture of what they make of the destinations that exist."""
    definitions = gateway().definitions()
    stats = mirror().current().stats
    graph = picture_of(definitions, list(stats))
    queues = [node.destination for node in graph.nodes if node.shows_depth]
    depths = {queue.name: stats[queue].QueueSize for queue in queues if queue in stats}
    context = {
        "definitions": definitions,
        "rows": [_described(each) for each in definitions.virtual_destinations],
        "graph": graph,
        "depths": depths,
        "kinds": [(kind, *texts) for kind, texts in KINDS.items()],
    }
    return render(request, "console/routing.html", context)


def _described(definition: VirtualDestination) -> dict[str, Any]:
    """A definition as a row: its title, what it does in words, the options that differ from their defaults."""
    row = {"definition": definition, "label": KINDS[definition.kind][0], "options": _changed_options(definition)}
    match definition:
        case VirtualTopic():
            queues = f"{definition.prefix}{definition.name}{definition.postfix}"
            return row | {"title": definition.name, "icon": "topic", "targets": [(None, queues, None)]}
        case Composite():
            legs = [(leg.destination.kind, leg.destination.name, leg.selector) for leg in definition.legs]
            return row | {"title": definition.destination.name, "icon": definition.destination.kind, "targets": legs}
        case MirroredQueue():
            topics = f"{definition.prefix}*{definition.postfix}"
            return row | {"title": "every queue", "icon": "queue", "targets": [("topic", topics, None)]}


def _changed_options(definition: VirtualDestination) -> list[str]:
    changed = virtual_destination_to_json(definition)
    return [f"{OPTIONS[name][0]}={str(value).lower()}" for name, value in changed.items() if name in OPTIONS]


@require_http_methods(["GET", "POST"])
@needs(Verb.ROUTE)
def edit(request: HttpRequest, kind: str = "") -> HttpResponse:
    """Create a definition of a kind, or edit the one whose id is `id`. Saved, it works at once."""
    definitions = gateway().definitions()
    replacing = request.GET.get("id") or None
    existing = _find(definitions, replacing) if replacing else None
    kind = existing.kind if existing else kind
    if kind not in KINDS:
        raise Http404(f"{kind} is no kind of definition.")
    form = form_for(kind, request.POST if request.method == "POST" else None, existing)
    refusal = ""
    if request.method == "POST" and form.is_valid():
        try:
            return _save(request, form.definition(), replacing, existing)
        except (DefinitionRefused, DefinitionConflict) as error:
            refusal = str(error)
    context = _editor(request, kind, form, definitions, replacing) | {"refusal": refusal}
    return render(request, "console/definition.html", context, status=400 if request.method == "POST" else 200)


def _save(
    request: HttpRequest, definition: VirtualDestination, replacing: str | None, existing: VirtualDestination | None
) -> HttpResponse:
    before = virtual_destination_to_json(existing) if existing else None
    with audit.recording(request, "edit" if existing else "define", definition.id, before=before) as change:
        # What was read when the form was opened counts: somebody else's change in between must not be lost.
        opened = int(request.POST.get("version") or 0)
        current = gateway().definitions()
        if opened and opened != current.version:
            raise DefinitionConflict(opened, current.version)
        comment = request.POST.get("comment", "").strip()[:200]
        saved = gateway().define(
            current.with_virtual_destination(definition, replacing=replacing), request.user.get_username(), comment
        )
        change.after = virtual_destination_to_json(definition)
    messages.success(request, f"Saved as version {saved.version}. It works on all nodes now.")
    return redirect("routing")


@require_POST
@needs(Verb.ROUTE)
def check(request: HttpRequest, kind: str) -> HttpResponse:
    """What the page says beside the form while it is filled in: problems, advice, the equivalent XML."""
    if kind not in KINDS:
        raise Http404(f"{kind} is no kind of definition.")
    form = form_for(kind, request.POST)
    form.is_valid()
    context = _editor(request, kind, form, gateway().definitions(), request.GET.get("id") or None)
    return render(request, "console/parts/definition_check.html", context)


def _editor(
    request: HttpRequest, kind: str, form: Any, definitions: Definitions, replacing: str | None
) -> dict[str, Any]:
    """What the editor shows about the form as it stands."""
    label, does = KINDS[kind]
    id_query = f"?{urlencode({'id': replacing})}" if replacing else ""
    context = {
        "kind": kind, "label": label, "does": does, "form": form, "version": definitions.version,
        "replacing": replacing,
        "is_composite": isinstance(form, CompositeForm), "blank_leg": LegRow(),
        "check_url": reverse("check-definition", kwargs={"kind": kind}) + id_query,
        "delete_url": reverse("delete-definition") + id_query,
    }  # fmt: skip
    definition = form.definition() if form.is_bound and form.is_valid() else _find_or_none(definitions, replacing)
    if definition is None:
        return context
    context["xml"] = fragment_of(definition)
    try:
        proposed = definitions.with_virtual_destination(definition, replacing=replacing)
        gateway().check(proposed)
    except DefinitionRefused as error:
        return context | {"problem": str(error)}
    rest = definitions.without_virtual_destination(replacing) if replacing else definitions
    return context | {"advice": advice(definition, rest, mirror().current().stats)}


@require_http_methods(["GET", "POST"])
@needs(Verb.ROUTE)
def delete(request: HttpRequest) -> HttpResponse:
    """Take one definition away."""
    definitions = gateway().definitions()
    definition = _find(definitions, request.GET.get("id", ""))
    if request.method == "POST":
        before = virtual_destination_to_json(definition)
        with audit.recording(request, "delete", definition.id, before=before):
            left = definitions.without_virtual_destination(definition.id)
            gateway().define(left, request.user.get_username(), f"Delete {definition.id}")
        title = _described(definition)["title"]
        messages.success(request, f"{title} is deleted. Messages are not copied by it any more.")
        return redirect("routing")
    return render(request, "console/definition_delete.html", {"row": _described(definition)})


@require_GET
@needs(Verb.SEE)
def history(request: HttpRequest) -> HttpResponse:
    """Who changed the definitions, when, and what for."""
    versions = [
        each | {"time": datetime.fromtimestamp(each["time_ms"] / 1000, UTC)} for each in gateway().history(limit=100)
    ]
    return render(request, "console/routing_history.html", {"versions": versions})


def _find(definitions: Definitions, id: str | None) -> VirtualDestination:
    found = _find_or_none(definitions, id)
    if found is None:
        raise Http404(f"There is no definition {id}. Somebody may have deleted or renamed it.")
    return found


def _find_or_none(definitions: Definitions, id: str | None) -> VirtualDestination | None:
    return next((each for each in definitions.virtual_destinations if each.id == id), None)
