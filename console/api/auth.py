"""Who calls: a token in the header `Authorization: Bearer ...`, or the session of a browser, with its CSRF token."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.security import HttpBearer
from ninja.security.session import SessionAuth

from console import tokens
from console.models import AuditEntry
from console.rate_limit import RateLimit

#: Requests of one user, or one token, to one process.
LIMIT = RateLimit(per_second=20, burst=200)


class TooMany(Exception):
    """More requests than the limit; `wait` seconds until the next may come."""

    def __init__(self, wait: int) -> None:
        super().__init__(f"more than {LIMIT.per_second} requests a second: try again in {wait} s")
        self.wait = wait


class Token(HttpBearer):
    """A token's user, with what the token leaves of their rights."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        """The user, or None."""
        user = tokens.user_of(token, request.META.get("REMOTE_ADDR", "") or "")
        return user and _admitted(request, user, f"token {token}")


class Session(SessionAuth):
    """A browser's user. What changes something needs the CSRF token of a page as well."""

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        """The user, or None."""
        user = super().authenticate(request, key)
        return user and _admitted(request, user, f"user {user.pk}")


def _admitted(request: HttpRequest, user: Any, asker: str) -> Any:
    if wait := LIMIT.wait(asker):
        raise TooMany(wait)
    request.user, request.audited_via = user, AuditEntry.Via.API
    return user
