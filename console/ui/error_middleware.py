"""Show an error page for errors of the broker."""

from __future__ import annotations

import logging
import secrets

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from brokerapp.errors import BrokerError, DestinationNotFound, StoreUnavailable
from console.access import redaction
from console.access.permissions import visible

logger = logging.getLogger(__name__)

#: What a branch of the broker's errors is to a browser; the first that fits counts.
_RESPONSES: tuple[tuple[type[BrokerError], int, str], ...] = (
    (DestinationNotFound, 404, "Destination not found"),
    (StoreUnavailable, 503, "Broker unavailable"),
    (BrokerError, 409, "Request rejected by the broker"),
)


class BrokerErrorMiddleware(MiddlewareMixin):
    """Turn a BrokerError of a view into a page with a reference that is also logged."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for a BrokerError; None for other exceptions."""
        if not isinstance(exception, BrokerError):
            return None
        status, title = next((status, title) for kind, status, title in _RESPONSES if isinstance(exception, kind))
        reference = secrets.token_hex(4)
        logger.warning("%s %s: %s [%s]", request.method, request.path, exception, reference)
        page = {
            "title": title,
            "sentence": _redacted_message(request, exception),
            "status": status,
            "reference": reference,
        }
        return render(request, "layout/error.html", page, status=status)


def _redacted_message(request: HttpRequest, refused: BrokerError) -> str:
    """Return the error message without names that the user may not see."""
    user = getattr(request, "user", None)
    return redaction.redact_sentence(str(refused), visible(user)) if user is not None else str(refused)
