"""Require two-factor authentication for some roles, before anything else can be used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.mfa.utils import is_mfa_enabled
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from console.access.permissions import AnyUser, roles_of

#: Pages that one may see without, by name: those on which one gets one, and the way out.
EXEMPT_URL_NAMES = frozenset(
    {"mfa_activate_totp", "account_reauthenticate", "mfa_reauthenticate", "logout", "account_logout", "theme"}
    | {"healthz", "readyz"}
)


def requires_second_factor(user: AnyUser) -> bool:
    """Return whether the user has a role that requires two-factor authentication."""
    required = settings.IDENTITY.second_factor
    return bool(required) and user.is_authenticated and not roles_of(user).isdisjoint(required)


def lacks_second_factor(user: AnyUser, session: Any) -> bool:
    """Return whether the user has a role that needs a second factor and used none; single sign-on is exempt."""
    if not requires_second_factor(user):
        return False
    methods = [each.get("method") for each in session.get(AUTHENTICATION_METHODS_SESSION_KEY, [])]
    return "socialaccount" not in methods and not is_mfa_enabled(user)


class SecondFactorMiddleware(MiddlewareMixin):
    """Redirect users without the required second factor to its setup."""

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Return the redirect to the setup; None to continue."""
        name = request.resolver_match.url_name if request.resolver_match else ""
        if name in EXEMPT_URL_NAMES or not lacks_second_factor(request.user, request.session):
            return None
        messages.warning(request, "Your role requires two-factor authentication. Set it up to continue.")
        return redirect("mfa_activate_totp")


def second_factor_middleware(application: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Wrap the WebSocket application to treat users without the required factor as anonymous."""

    async def guarded(scope: dict[str, Any], receive: Callable, send: Callable) -> None:
        if await database_sync_to_async(lacks_second_factor)(scope["user"], scope["session"]):
            scope = {**scope, "user": AnonymousUser()}
        await application(scope, receive, send)

    return guarded
