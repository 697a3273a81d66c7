"""View the console with the permissions of a user, group or role: read-only, and audited as the admin.

It is kept in the admin's session and ends after MINUTES, with the session, or with the right to manage users. What the
person alone has to do with, such as their account and their tokens, is not shown. A page outlives the look that it
shows: what is sent from it afterwards changes nothing either.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.middleware.csrf import rotate_token
from django.utils.deprecation import MiddlewareMixin

from brokerapp.errors import BrokerError, RequestRefused
from console.access.permission_version import increment
from console.access.permissions import AnyUser, Permission, has_permission, reload_user
from console.accounts import effective_rights
from console.accounts.effective_rights import PermissionHolder
from console.audit import trail

#: After which it ends by itself: long enough for a walk through the pages, too short to be forgotten for a day.
MINUTES = 30
#: Key in the session of who impersonates; it stays after the end until a page has said that it ended.
KEY = "seen_as"
#: What may be sent meanwhile, by the names of addresses: the ways out.
EXIT_URL_NAMES = frozenset({"impersonate-end", "logout", "account_logout"})
#: The key of no user in the database: theirs is what a group or a role owns.
NO_USER_ID = 0
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Hold who impersonates, whom, and until when (Unix time in seconds)."""

    by: AnyUser
    holder: PermissionHolder
    until: float

    @property
    def ends(self) -> datetime:
        """Return when the impersonation expires."""
        return datetime.fromtimestamp(self.until, UTC)


def impersonation_of(user: AnyUser) -> Impersonation | None:
    """Return the impersonation of a user object, or None."""
    return getattr(user, "look", None)


def real_user(user: AnyUser) -> AnyUser:
    """Return the user who signed in, also while they impersonate."""
    look = impersonation_of(user)
    return look.by if look else user


def impersonated_name(user: AnyUser) -> str:
    """Return the impersonated holder in words; "" without impersonation."""
    look = impersonation_of(user)
    return look.holder.description if look else ""


def begin(session: SessionBase, holder: PermissionHolder) -> None:
    """Start impersonation with the next request. Raises RequestRefused."""
    if not any(grant.allows(Permission.SEE) for grant in holder.grants):
        raise RequestRefused(f"The {holder.description} has no permission to view the console.")
    until = time.time() + MINUTES * 60
    session[KEY] = {"kind": holder.kind, "name": holder.name, "scopes": list(holder.scopes), "until": until}
    _notify_sockets(session)


def end(request: HttpRequest) -> None:
    """End impersonation, and invalidate the CSRF tokens of pages rendered meanwhile."""
    request.session.pop(KEY, None)
    rotate_token(request)
    _notify_sockets(request.session)


def _notify_sockets(session: SessionBase) -> None:
    """Notify open pages in other tabs, so that their permissions are checked again."""
    session.save()  # first: readers of the new version must find it
    increment()


def expired_name(request: HttpRequest) -> str:
    """Return whom the user impersonated until it expired; "" otherwise, or once a page has said so."""
    kept = request.session.get(KEY)
    is_over = kept and request.user.is_authenticated and impersonation_of(request.user) is None
    return PermissionHolder(kept["kind"], kept["name"], (), tuple(kept["scopes"])).description if is_over else ""


def impersonated_user(user: AnyUser, session: SessionBase | dict[str, Any]) -> AnyUser:
    """Return the user that the session impersonates; the user themselves without impersonation."""
    kept = session.get(KEY)
    if not kept or time.time() > kept["until"] or not has_permission(user, Permission.USERS):
        return user
    try:
        holder = effective_rights.find(kept["kind"], kept["name"], kept["scopes"])
    except BrokerError:  # deleted meanwhile
        return user
    # Stars, views and jobs of one's own are those of the user; a group and a role have none.
    is_user = holder.kind == effective_rights.USER
    other = User.objects.get(username=holder.name) if is_user else User(pk=NO_USER_ID, username=holder.description)
    other._grants, other.look = holder.grants, Impersonation(user, holder, kept["until"])
    return other


def apply(request: HttpRequest) -> None:
    """Set the request's user to the impersonated one."""
    if KEY in request.session and impersonation_of(request.user) is None:
        request.user = impersonated_user(request.user, request.session)


def effective_user(user: AnyUser, session: SessionBase) -> AnyUser | None:
    """Return the current user, or whom they impersonate; None when the session or the account has ended."""
    found = reload_user(real_user(user), session)
    return found and impersonated_user(found, session.load())  # another tab may have begun a look, or ended it


def notice_expiry(request: HttpRequest) -> None:
    """End an expired impersonation on the first page that is loaded after it, which says so; the next page does not.

    Forms of pages that were rendered before hold a CSRF token that `end` has replaced: none of them can be sent.
    """
    if _loads_page(request) and (was_seen := expired_name(request)):
        end(request)
        request.impersonation_ended = was_seen


def _loads_page(request: HttpRequest) -> bool:
    """Return whether a browser loads a whole page, not a partial or data for a script."""
    is_document = request.headers.get("Sec-Fetch-Dest", "document") == "document" or "HX-Boosted" in request.headers
    is_part = "HX-Request" in request.headers and "HX-Boosted" not in request.headers
    return request.method == "GET" and is_document and not is_part


def refuse_changes(request: HttpRequest) -> None:
    """Raise PermissionDenied, and write an audit entry, for a change that is sent while impersonating.

    The same holds for a change that is the first request after an impersonation expired: the page that sent it may
    have been rendered with the rights of the other user.
    """
    if request.method in _SAFE:
        return
    seen, was_seen = impersonated_name(request.user), expired_name(request)
    if seen:
        reason = f"Viewing as {seen} is read-only. Stop viewing as {seen} to make changes."
    elif was_seen:
        end(request)
        reason = f"Impersonation of the {was_seen} ended. Nothing was changed. You are back in your own account."
    else:
        return
    trail.record_denied(request, "change", request.path, reason)
    raise PermissionDenied(reason)


class ImpersonationMiddleware(MiddlewareMixin):
    """Serve pages as the impersonated user, read-only."""

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        """Raise PermissionDenied for changes and personal pages while impersonating.

        Middleware before this one knows only who looks: theirs are the login, the second factor and the clock.
        """
        if KEY not in request.session or request.resolver_match.url_name in EXIT_URL_NAMES:
            return
        apply(request)
        if not getattr(view, "login_required", True):  # operations ask by themselves, with a token or so
            return
        notice_expiry(request)
        refuse_changes(request)
        seen = impersonated_name(request.user)
        if seen and not hasattr(view, "permission"):
            raise PermissionDenied(f"Personal pages are not available while viewing as {seen}.")


def impersonation_middleware(application: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Wrap the WebSocket application to serve sockets as the impersonated user."""

    async def guarded(scope: dict[str, Any], receive: Callable, send: Callable) -> None:
        if scope["user"].is_authenticated:
            scope = {**scope, "user": await database_sync_to_async(impersonated_user)(scope["user"], scope["session"])}
        await application(scope, receive, send)

    return guarded
