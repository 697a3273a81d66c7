"""What went wrong, as a problem document (RFC 9457): which input broke which rule."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from brokerapp.errors import (
    BrokerError,
    DefinitionConflict,
    DestinationNotFound,
    InvalidDestination,
    LimitExceeded,
    SelectorSyntaxError,
    StoreUnavailable,
)
from console import naming
from console.access import visible
from console.api.auth import TooMany

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
#: Branches of the broker's errors as statuses of HTTP; the first that fits counts.
_STATUS: tuple[tuple[type[BrokerError], int], ...] = (
    (DestinationNotFound, 404),
    (StoreUnavailable, 503),
    (DefinitionConflict, 409),
    (InvalidDestination, 422),
    (SelectorSyntaxError, 422),
    (LimitExceeded, 507),
    (BrokerError, 409),
)


def problem(
    request: HttpRequest, status: int, detail: str, code: str = "", inputs: Iterable[Mapping[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """The document."""
    document = {
        "type": f"urn:sluice:problem:{code}" if code else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.path,
    }
    errors = list(inputs)
    return document | ({"errors": errors} if errors else {}) | more


def install(api: NinjaAPI) -> None:
    """Have the API answer errors so."""

    def answer(request: HttpRequest, status: int, detail: str, code: str = "", **more: Any) -> HttpResponse:
        document = problem(request, status, detail, code, **more)
        response = api.create_response(request, document, status=status)
        response["Content-Type"] = CONTENT_TYPE
        return response

    @api.exception_handler(BrokerError)
    def refused(request: HttpRequest, error: BrokerError) -> HttpResponse:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        more = {"position": error.column} if isinstance(error, SelectorSyntaxError) else {}
        return answer(request, status, naming.said(str(error), visible(request.user)), error.code, **more)

    @api.exception_handler(ValidationError)
    def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        inputs = [{"input": _place(each["loc"]), "rule": each["msg"]} for each in error.errors]
        detail = "; ".join(f"{each['input']}: {each['rule']}" for each in inputs)
        return answer(request, 422, detail, "invalid-input", inputs=inputs)

    @api.exception_handler(PermissionDenied)
    def denied(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
        return answer(request, 403, str(error), "access-denied")

    @api.exception_handler(AuthenticationError)
    def unknown(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        response = answer(request, 401, "Send a token in force: Authorization: Bearer sluice_...", "no-credentials")
        response["WWW-Authenticate"] = 'Bearer realm="Sluice"'
        return response

    @api.exception_handler(TooMany)
    def too_many(request: HttpRequest, error: TooMany) -> HttpResponse:
        response = answer(request, 429, str(error), "too-many-requests")
        response["Retry-After"] = str(error.wait)
        return response

    @api.exception_handler(Http404)
    def missing(request: HttpRequest, error: Http404) -> HttpResponse:
        return answer(request, 404, str(error) or "There is nothing at this address.", "not-found")

    @api.exception_handler(HttpError)
    def other(request: HttpRequest, error: HttpError) -> HttpResponse:
        return answer(request, error.status_code, str(error))

    @api.exception_handler(Exception)
    def broken(request: HttpRequest, error: Exception) -> HttpResponse:
        reference = secrets.token_hex(4)
        logger.error("%s %s broke [%s]", request.method, request.path, reference, exc_info=error)
        detail = f"The fault is ours; it is in the log of the web process under {reference}."
        return answer(request, 500, detail, "internal", reference=reference)


def _place(location: Iterable[Any]) -> str:
    """Where in the request: `query.size`, `name`."""
    parts = [str(each) for each in location]
    return ".".join(parts[2:] if parts[0] == "body" and len(parts) > 2 else parts)
