"""Overview: is the broker well, and what changed."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import StoreUnavailable
from console import audit
from console.access import Verb, needs
from console.live.mirror import mirror
from console.live.topics import Topic, chart_mark, overview_cells
from console.tasks import demo


@require_GET
@needs(Verb.SEE)
def overview(request: HttpRequest) -> HttpResponse:
    """The first page."""
    picture = mirror().current()
    cells = overview_cells(picture, Topic("overview"))
    return render(
        request,
        "console/overview.html",
        {
            "cells": cells,
            "marks": [chart_mark(mark) for mark in picture.past],
            "nodes": picture.nodes,
            "stomp_host": settings.SLUICE.bind,
            "stomp_port": settings.SLUICE.stomp_port,
        },
    )


@require_POST
@needs(Verb.DEMO)
def start_demo(request: HttpRequest) -> HttpResponse:
    """Have a worker run the demo."""
    with audit.recording(request, "demo", "broker"):
        try:
            demo.apply_async(retry=False)
        except demo.app.connection().transport.connection_errors as error:
            raise StoreUnavailable(f"no worker could be asked to run the demo: {error}") from error
    messages.success(request, "The demo is starting: a small order business will send its first messages in a moment.")
    return redirect("overview")
