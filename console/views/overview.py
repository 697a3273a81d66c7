"""Overview: is the broker well, and what changed."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.snapshot import NodeStatus
from console import audit, figures
from console.access import Verb, needs
from console.live.mirror import mirror
from console.live.topics import Topic, chart_mark, overview_cells
from console.workers import ask


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
            "nodes": [(node, _started(node), _facts(node)) for node in picture.nodes],
            "stomp_host": settings.SLUICE.bind,
            "stomp_port": settings.SLUICE.stomp_port,
        },
    )


def _started(node: NodeStatus) -> datetime:
    return datetime.fromtimestamp(node.started_ms / 1000, UTC)


#: What a node says of its store and its recording, in words.
_FSYNC = {"always": "before each receipt", "everysec": "once a second: a crash may lose one", "no": "never"}


def _facts(node: NodeStatus) -> list[tuple[str, str]]:
    store, trace = node.store, node.trace
    facts = []
    if "fsync" in store:
        facts.append(("Written to disk", _FSYNC.get(store["fsync"], store["fsync"])))
    if "used" in store:
        limit = store.get("limit") or store.get("message_limit")
        facts.append(("Store uses", figures.size(store["used"]) + (f" of {figures.size(limit)}" if limit else "")))
    if "recorded" in trace:
        dropped = f", {figures.whole(trace['dropped'])} dropped" if trace.get("dropped") else ""
        facts.append(("Recorded", figures.counted(trace["recorded"], "event") + dropped))
    return facts


@require_POST
@needs(Verb.DEMO)
def start_demo(request: HttpRequest) -> HttpResponse:
    """Have a worker run the demo."""
    with audit.recording(request, "demo", "broker"):
        ask("console.demo")
    messages.success(request, "The demo is starting: a small order business will send its first messages in a moment.")
    return redirect("overview")
