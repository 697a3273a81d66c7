"""Connections: who is connected to which node."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Verb, needs
from console.live.mirror import mirror
from console.live.topics import Topic, connections_cells


@require_GET
@needs(Verb.SEE)
def connections(request: HttpRequest) -> HttpResponse:
    """All STOMP connections, oldest first."""
    picture = mirror().current()
    context = {"cells": connections_cells(picture, Topic("connections")), "nodes": picture.nodes}
    return render(request, "console/connections.html", context)
