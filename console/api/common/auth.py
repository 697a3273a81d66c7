"""Authenticate API requests by bearer token or browser session, and check their permission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from ninja.security import HttpBearer
from ninja.security.session import SessionAuth

from brokerapp.model.destination import Destination
from console.access.permissions import require
from console.access.roles import Permission
from console.accounts import api_tokens
from console.accounts.impersonation import real_user, refuse_changes
from console.accounts.login import is_login_stale
from console.accounts.rate_limit import RateLimit
from console.audit.models import AuditEntry

#: Finds what a right is about in the parts of an address.
DestinationFromUrl = Callable[[dict[str, Any]], Destination]

#: Requests of one user, or one token, to one process.
LIMIT = RateLimit(per_second=20, burst=200)


class RateLimited(Exception):
    """Report that the rate limit is exceeded; `wait` is the seconds until the next request."""

    def __init__(self, wait: int) -> None:
        super().__init__(f"Rate limit of {LIMIT.per_second} requests/s exceeded. Try again in {wait} s.")
        self.wait = wait


class TokenPermission(HttpBearer):
    """Authenticate the user of a token whose permissions include `permission`."""

    def __init__(self, permission: Permission, of: DestinationFromUrl | None) -> None:
        super().__init__()
        self._permission, self._of = permission, of

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Return the user of an API token, or None; refuse tokens without the permission of the operation."""
        user = api_tokens.authenticate_token(token, request.META.get("REMOTE_ADDR", "") or "")
        return user and _authorize(request, user, f"token {token}", self._permission, self._of)


class SessionPermission(SessionAuth):
    """Authenticate the user of a session with the permission `permission`; changes need a CSRF token.

    What changes users asks for a recent proof of who one is, as its pages do; a token is its own proof.
    """

    def __init__(self, permission: Permission, of: DestinationFromUrl | None) -> None:
        super().__init__()
        self._permission, self._of = permission, of

    def _get_key(self, request: HttpRequest) -> str | None:
        """Return the key of the session; without one there is nothing that a CSRF token would protect."""
        return super()._get_key(request) if self.param_name in request.COOKIES else None

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        """Return the user of the session, or None; refuse users without the permission of the operation."""
        user = super().authenticate(request, key)
        if user:
            refuse_changes(request)
        admitted = user and _authorize(request, user, f"user {real_user(user).pk}", self._permission, self._of)
        if admitted and self._permission is Permission.USERS and request.method != "GET" and is_login_stale(request):
            raise PermissionDenied(f"Confirm your identity first, at {reverse('account_reauthenticate')}.")
        return admitted


def _authorize(
    request: HttpRequest, user: Any, asker: str, permission: Permission, of: DestinationFromUrl | None
) -> Any:
    if wait := LIMIT.acquire(asker):
        raise RateLimited(wait)
    request.user, request.audited_via = user, AuditEntry.Via.API
    require(request, permission, of and _destination_from_url(of, request))
    return user


def _destination_from_url(of: DestinationFromUrl, request: HttpRequest) -> Destination | None:
    try:
        return of(request.resolver_match.kwargs)
    except ValueError:  # an address that is about nothing: that is said afterwards
        return None
