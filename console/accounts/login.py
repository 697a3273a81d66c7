"""Configure allauth's sign-in, require recent authentication for changes, and audit sign-ins."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows, suspend_request
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from console.accounts.encryption import decrypt, encrypt
from console.audit import trail
from console.audit.models import AuditEntry

#: Seconds after a login, or after the password was asked again, in which dangerous changes need no password.
REAUTHENTICATE_SECONDS = 15 * 60
#: In the session: when its user last proved who they are.
SESSION_KEY = "proved_at"


class AccountAdapter(DefaultAccountAdapter):
    """Disable allauth's sign-up and its messages."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False: administrators create accounts."""
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Add no banner: the pages show their own messages."""

    def is_reauthentication_required(self, **kwargs: Any) -> bool:
        """Apply the rule for sensitive changes to allauth's pages: a recent sign-in is enough."""
        return is_login_stale(self.request)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the peer's address, or the one that a proxy of SLUICE_PROXIES names."""
        return request.META.get("REMOTE_ADDR") or "127.0.0.1"


class SecondFactorAdapter(DefaultMFAAdapter):
    """Encrypt the secrets of two-factor authentication in the database."""

    def encrypt(self, text: str) -> str:
        """Encrypt a secret of two-factor authentication for the database."""
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a stored secret of two-factor authentication."""
        return decrypt(encrypted_text)

    def get_totp_issuer(self) -> str:
        """Return the name that an authenticator app shows for this console."""
        return f"Sluice {settings.SLUICE.broker_name}"


# -- recently proved


def is_login_stale(request: HttpRequest) -> bool:
    """Return whether the last authentication is too old for a sensitive change.

    Whoever comes by single sign-on alone has nothing that could be asked here.
    """
    is_recent = time.time() - request.session.get(SESSION_KEY, 0) < REAUTHENTICATE_SECONDS
    return not is_recent and bool(get_reauthentication_flows(request.user))


def redirect_to_reauthenticate(request: HttpRequest) -> HttpResponse | None:
    """Return a redirect to reauthentication when it is due; the request is repeated afterwards."""
    return suspend_request(request, reverse("account_reauthenticate")) if is_login_stale(request) else None


def recent_login_required(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view: changes require a recent authentication."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        again = redirect_to_reauthenticate(request) if request.method == "POST" else None
        return again or view(request, *args, **kwargs)

    return guarded


def _note_authentication(request: HttpRequest | None) -> None:
    if request is not None and hasattr(request, "session"):
        request.session[SESSION_KEY] = time.time()


# -- the audit trail


def _by(user: User | str, request: HttpRequest | None) -> trail.AuditActor:
    name = user if isinstance(user, str) else user.get_username()
    if request is None:
        return trail.AuditActor(name)
    actor = trail.AuditActor.of(request)
    return trail.AuditActor(name, actor.address, actor.agent, actor.via)


def on_session_started(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Note the authentication time when a session starts."""
    _note_authentication(request)


def on_login(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Write an audit entry for a completed sign-in."""
    methods = dict.fromkeys(each["method"] for each in get_authentication_records(request, user))
    change = trail.AuditChange(after={"by": ", ".join(methods)})
    trail.record(_by(user, request), "log in", f"user {user}", AuditEntry.Outcome.DONE, change=change)


def on_logout(sender: Any, request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    """Write an audit entry for a sign-out."""
    if user is not None and request.path:
        trail.record(_by(user, request), "log out", f"user {user}", AuditEntry.Outcome.DONE)


def on_login_failed(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
) -> None:
    """Write an audit entry for a wrong password or a locked account."""
    name = str(credentials.get("username") or "")
    detail = "locked after too many wrong passwords" if getattr(request, "axes_locked_out", False) else "wrong password"
    trail.record(_by(name, request), "log in", f"user {name}", AuditEntry.Outcome.DENIED, detail)


def on_code_failed(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Write an audit entry for a wrong authentication code."""
    trail.record(_by(user, request), "second factor", f"user {user}", AuditEntry.Outcome.DENIED, "wrong code")


def on_step_completed(sender: Any, request: HttpRequest, user: User, method: str, **kwargs: Any) -> None:
    """Note the authentication time when a password or a code was correct."""
    if kwargs.get("reauthenticated"):
        _note_authentication(request)


def on_factor_changed(
    sender: Any, request: HttpRequest, user: User, authenticator: Any, signal: Any, **kwargs: Any
) -> None:
    """Write an audit entry when two-factor authentication is added, removed or renewed."""
    from allauth.mfa import signals

    names = {
        signals.authenticator_added: "add second factor",
        signals.authenticator_removed: "remove second factor",
        signals.authenticator_reset: "renew second factor",
    }
    change = trail.AuditChange(after={"kind": authenticator.type})
    trail.record(_by(user, request), names[signal], f"user {user}", AuditEntry.Outcome.DONE, change=change)


def connect_signals() -> None:
    """Connect the handlers of this module to the signals of Django and allauth."""
    from allauth.account import signals as account
    from allauth.mfa import signals as mfa
    from django.contrib.auth import signals as auth

    auth.user_logged_in.connect(on_session_started, dispatch_uid="login")
    account.user_logged_in.connect(on_login, dispatch_uid="login")
    account.authentication_step_completed.connect(on_step_completed, dispatch_uid="login")
    auth.user_logged_out.connect(on_logout, dispatch_uid="login")
    auth.user_login_failed.connect(on_login_failed, dispatch_uid="login")
    mfa.authentication_failed.connect(on_code_failed, dispatch_uid="login")
    for signal in (mfa.authenticator_added, mfa.authenticator_removed, mfa.authenticator_reset):
        signal.connect(on_factor_changed, dispatch_uid="login")
