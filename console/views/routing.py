"""Routing: the map of virtual and composite destinations, as a picture and as a table."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from brokerapp.definitions import (
    Composite,
    MirroredQueue,
    VirtualDestination,
    VirtualTopic,
    virtual_destination_to_json,
)
from console.access import Verb, needs
from console.gateway import gateway
from console.live.mirror import mirror
from console.routing.facts import label_of, title_of
from console.routing.forms import OPTIONS
from console.routing.graph import picture_of
from console.views.routing_history import latest, undo_of


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
        "undo": undo_of(latest()),
    }
    return render(request, "console/routing/map.html", context)


def _described(definition: VirtualDestination) -> dict[str, Any]:
    """A definition as a row: its title, what it does in words, the options that differ from their defaults."""
    row = {
        "definition": definition,
        "label": label_of(definition),
        "title": title_of(definition),
        "options": _changed_options(definition),
    }
    match definition:
        case VirtualTopic():
            queues = f"{definition.prefix}{definition.name}{definition.postfix}"
            return row | {"icon": "topic", "targets": [("queue", queues, None)]}
        case Composite():
            legs = [(leg.destination.kind, leg.destination.name, leg.selector) for leg in definition.legs]
            return row | {"icon": definition.destination.kind, "targets": legs}
        case MirroredQueue():
            topics = f"{definition.prefix}*{definition.postfix}"
            return row | {"icon": "queue", "targets": [("topic", topics, None)]}


def _changed_options(definition: VirtualDestination) -> list[str]:
    changed = virtual_destination_to_json(definition)
    return [f"{OPTIONS[name].name}={str(value).lower()}" for name, value in changed.items() if name in OPTIONS]
