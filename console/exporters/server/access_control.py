"""Control access to the monitoring endpoints: authentication, rate limit and origin."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse

from brokerapp.errors import BrokerError
from console.access.permissions import Permission, has_permission, missing_permission_message
from console.accounts.rate_limit import RateLimit
from console.audit import trail
from console.exporters.options import MonitorOptions, OriginRule
from console.exporters.server.credentials import authenticate_request

#: What ActiveMQ calls the place one logs in to.
REALM = "ActiveMQRealm"
#: Requests of one user to one process: monitors ask every few seconds, some for each queue.
LIMIT = RateLimit(per_second=50, burst=500)

View = Callable[..., HttpResponse]


def access_required(view: View) -> View:
    """Decorate a view: require credentials of a user with the permission METRICS; disable caching."""

    @wraps(view)
    def checked(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response = _refusal(request)
        if response is None:
            try:
                response = view(request, *args, **kwargs)
            except BrokerError as error:
                response = _text_response(503, str(error))
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    checked.permission = Permission.METRICS
    return checked


def _refusal(request: HttpRequest) -> HttpResponse | None:
    user = authenticate_request(request)
    if user is None:
        response = _text_response(
            401, "Authenticate with the user name and password, or the API token, of a user with the role monitor."
        )
        response.headers["WWW-Authenticate"] = f'Basic realm="{REALM}", charset="UTF-8"'
        return response
    request.user = user
    if not has_permission(user, Permission.METRICS):
        reason = missing_permission_message(user, Permission.METRICS)
        trail.record_denied(request, "metrics", request.path, reason)
        return _text_response(403, reason)
    wait = LIMIT.acquire(str(user.pk))
    if wait:
        response = _text_response(429, f"Rate limit of {LIMIT.per_second} requests/s exceeded. Try again in {wait} s.")
        response.headers["Retry-After"] = str(wait)
        return response
    return None


def _text_response(status: int, sentence: str) -> HttpResponse:
    return HttpResponse(f"{sentence}\n", status=status, content_type="text/plain; charset=utf-8")


def origin_allowed(request: HttpRequest, options: MonitorOptions) -> bool:
    """Return whether pages of this origin may call; see OriginRule. The endpoint's own pages always may."""
    origin = request.headers.get("Origin", "")
    match options.origin:
        case OriginRule.OFF:
            return True
        case OriginRule.STRICT if not origin:
            return request.method == "GET"
    if not origin:
        return True
    here = request.META.get("HTTP_HOST") or request.META.get("SERVER_NAME", "")
    return "*" in options.origins or origin in options.origins or urlsplit(origin).netloc == here
