"""Answer errors as problem documents (RFC 9457) that name the input and the rule."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
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
    TooLarge,
)
from console.access import redaction
from console.access.permissions import visible
from console.api.common.auth import RateLimited
from console.ui.formatting import number_format

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
#: Headers of all answers: they are kept by no cache, and a browser that is led to one saves a file of this name.
HEADERS = {"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="api.json"'}
#: How the paths of the API begin, and what is said of one that leads nowhere.
PREFIX, MISSING = "/api/", "Resource not found."
#: Branches of the broker's errors as statuses of HTTP; the first that fits counts.
_STATUS: tuple[tuple[type[BrokerError], int], ...] = (
    (DestinationNotFound, 404),
    (StoreUnavailable, 503),
    (DefinitionConflict, 409),
    (InvalidDestination, 422),
    (SelectorSyntaxError, 422),
    (LimitExceeded, 507),
    (TooLarge, 413),
    (BrokerError, 409),
)

#: Rules of pydantic in the words of who sends JSON, by its types of errors.
_RULES = {
    "extra_forbidden": "unknown field",
    "model_type": "must be a JSON object",
    "finite_number": "must be a finite number",
}


#: What the description of the API says of an answer to a request that failed.
RESPONSE = {
    "description": "The request failed; `detail` says why, `errors` which input breaks which rule",
    "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
SCHEMA = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "instance", "reference")},
        **{name: {"type": "integer"} for name in ("status", "position")},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["input", "rule"],
                "properties": {name: {"type": "string"} for name in ("input", "rule")},
            },
        },
    },
}


def problem(
    request: HttpRequest, status: int, detail: str, code: str = "", inputs: Iterable[Mapping[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return the problem document."""
    document = {
        "type": f"urn:sluice:problem:{code}" if code else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.path,
    }
    errors = list(inputs)
    return document | ({"errors": errors} if errors else {}) | more


def problem_response(request: HttpRequest, status: int, detail: str, code: str = "", **more: Any) -> HttpResponse:
    """Return a response with a problem document, not to be cached."""
    document = problem(request, status, detail, code, **more)
    return JsonResponse(document, status=status, content_type=CONTENT_TYPE, headers=HEADERS)


def is_for_api(request: HttpRequest) -> bool:
    """Return whether the request is for the API, so that it gets no HTML page."""
    return request.path.startswith(PREFIX)


def explain_methods(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate an API view to answer 405 with a problem document."""

    @wraps(view)
    def explained(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if not isinstance(response, HttpResponseNotAllowed):
            return response
        allowed = ", ".join(sorted(response["Allow"].split(", ")))
        told = problem_response(
            request, 405, f"Method {request.method} is not allowed here. Allowed: {allowed}.", "wrong-method"
        )
        told["Allow"] = allowed
        return told

    return explained


def install(api: NinjaAPI) -> None:
    """Register the error handlers of the API."""

    @api.exception_handler(BrokerError)
    def refused(request: HttpRequest, error: BrokerError) -> HttpResponse:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        more = {"position": error.column} if isinstance(error, SelectorSyntaxError) else {}
        return problem_response(
            request, status, redaction.redact_sentence(str(error), visible(request.user)), error.code, **more
        )

    @api.exception_handler(ValidationError)
    def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        inputs = [
            {"input": _location_in_words(each["loc"]), "rule": _RULES.get(each["type"], each["msg"])}
            for each in error.errors
        ]
        detail = "; ".join(f"{each['input']}: {each['rule']}" for each in inputs)
        return problem_response(request, 422, detail, "invalid-input", inputs=inputs)

    @api.exception_handler(PermissionDenied)
    def denied(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
        return problem_response(request, 403, str(error), "access-denied")

    @api.exception_handler(AuthenticationError)
    def unknown(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        response = problem_response(
            request, 401, "Send a valid token: Authorization: Bearer sluice_...", "no-credentials"
        )
        response["WWW-Authenticate"] = 'Bearer realm="Sluice"'
        return response

    @api.exception_handler(RateLimited)
    def too_many(request: HttpRequest, error: RateLimited) -> HttpResponse:
        response = problem_response(request, 429, str(error), "too-many-requests")
        response["Retry-After"] = str(error.wait)
        return response

    @api.exception_handler(Http404)
    def missing(request: HttpRequest, error: Http404) -> HttpResponse:
        return problem_response(request, 404, str(error) or MISSING, "not-found")

    @api.exception_handler(HttpError)
    def other(request: HttpRequest, error: HttpError) -> HttpResponse:
        # Ninja answers whatever goes wrong with a body in the same words; its parser has said more.
        told = error.__cause__ if isinstance(error.__cause__, HttpError) else error
        return problem_response(request, told.status_code, str(told))

    @api.exception_handler(Exception)
    def broken(request: HttpRequest, error: Exception) -> HttpResponse:
        reference = secrets.token_hex(4)
        logger.error("%s %s failed [%s]", request.method, request.path, reference, exc_info=error)
        return internal_error(request, reference)

    _install_size_limit(api)


def internal_error(request: HttpRequest, reference: str) -> HttpResponse:
    """Return a response for an internal error, with the reference of the log entry."""
    detail = f"Internal error. Quote reference {reference}; details are in the web server log."
    return problem_response(request, 500, detail, "internal", reference=reference)


def _install_size_limit(api: NinjaAPI) -> None:
    @api.exception_handler(RequestDataTooBig)
    def too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
        most = number_format.format_bytes(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        return problem_response(request, 413, f"The request is too large. It may have at most {most}.", TooLarge.code)


def _location_in_words(location: Iterable[Any]) -> str:
    """Where in the request: `query.size`, `name`, `body` for all of it."""
    source, *parts = map(str, location)
    return ".".join(parts[1:]) or source if source == "body" else ".".join((source, *parts))
