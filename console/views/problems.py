"""Pages for what went wrong before or after a view."""

from __future__ import annotations

import logging
import secrets

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

logger = logging.getLogger(__name__)


def denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403: names the missing right."""
    sentence = str(exception or "") or "You have no right to see this."
    return _page(request, 403, "This is not for your role", sentence)


def missing(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404."""
    sentence = str(exception or "")
    if not sentence or sentence.startswith("{"):  # Django's own 404 lists the patterns it tried
        sentence = "Nothing is at this address. It may have been deleted, or the link is mistyped."
    return _page(request, 404, "There is no such page", sentence)


def broken(request: HttpRequest) -> HttpResponse:
    """500: a fault of ours; the reference ties the page to the log."""
    reference = secrets.token_hex(4)
    logger.error("%s %s broke [%s]", request.method, request.path, reference)
    return _page(request, 500, "Something broke on our side", "The fault is in the log of the web process.", reference)


def _page(request: HttpRequest, status: int, title: str, sentence: str, reference: str = "") -> HttpResponse:
    page = {"title": title, "sentence": sentence, "status": status, "reference": reference}
    return render(request, "failure.html", page, status=status)
