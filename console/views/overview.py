"""Overview: is the broker well, and what changed."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from console import audit
from console.access import Verb, needs, visible
from console.alerts import showing
from console.chart import chart_of, window_of
from console.history import WINDOWS
from console.live.mirror import mirror
from console.live.topics import Topic, overview_cells
from console.workers import ask


@require_GET
@needs(Verb.SEE)
def overview(request: HttpRequest) -> HttpResponse:
    """The first page."""
    picture, window = mirror().current(), window_of(request)
    cells = overview_cells(picture, Topic("overview"), visible(request.user))
    return render(
        request,
        "console/overview.html",
        {
            "cells": {**cells, **showing.cells(request.user)},
            "window": window,
            "windows": [(name, label, name == window.name) for name, (label, _) in WINDOWS.items()],
            "chart": chart_of(request, window),
            "stomp_host": settings.SLUICE.bind,
            "stomp_port": settings.SLUICE.stomp_port,
        },
    )


@require_POST
@needs(Verb.DEMO)
def start_demo(request: HttpRequest) -> HttpResponse:
    """Have a worker run the demo."""
    with audit.recording(request, "demo", "broker"):
        ask("console.demo")
    messages.success(request, "The demo is starting: a small order business will send its first messages in a moment.")
    return redirect("overview")
