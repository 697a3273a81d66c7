"""Serve the overview page."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from console.access.permissions import Permission, permission_required, visible
from console.alerts import active_alerts
from console.audit import trail
from console.broker.live.channels import LiveChannel, overview_cells
from console.broker.mirror import mirror
from console.broker.task_queue import enqueue
from console.metrics.charts.chart_data import chart_of, window_of
from console.ops.client_addresses import public_addresses


@require_GET
@permission_required(Permission.SEE)
def overview(request: HttpRequest) -> HttpResponse:
    """Show the overview page."""
    picture, window = mirror().current(), window_of(request)
    cells = overview_cells(picture, LiveChannel("overview"), visible(request.user))
    return render(
        request,
        "metrics/overview.html",
        {
            "cells": {**cells, **active_alerts.cells(request.user)},
            "window": window,
            "chart": chart_of(request, window),
            "clients": public_addresses(settings.SLUICE),
        },
    )


@require_POST
@permission_required(Permission.DEMO)
def start_demo(request: HttpRequest) -> HttpResponse:
    """Start the demo in a worker."""
    with trail.recording(request, "demo", "broker"):
        enqueue("console.demo")
    messages.success(request, "Demo starting. First messages appear within seconds.")
    return redirect("overview")
