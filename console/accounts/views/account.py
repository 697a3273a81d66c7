"""Serve the sign-in page, the user's own account, and the page that sets a password from a link."""

from __future__ import annotations

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordChangeView, PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_GET, require_POST

from console.accounts import effective_rights
from console.accounts.auth_settings import PROVIDER
from console.accounts.login import recent_login_required
from console.audit import trail


class Login(LoginView):
    """Serve the sign-in form; allauth asks for the second factor next."""

    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return the context with the button for single sign-on, if configured."""
        offered = {"provider": PROVIDER, "name": settings.IDENTITY.name} if settings.IDENTITY.issuer else None
        return super().get_context_data(sso=offered, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        """Sign the user in with the checked password."""
        return _logged_in(self.request, form.get_user(), self.get_success_url())


def _logged_in(request: HttpRequest, user: User, url: str) -> HttpResponse:
    """Continue the sign-in after the password: with the second factor, or to the target page."""
    record_authentication(request, user, method="password", username=user.get_username())
    user.backend = "django.contrib.auth.backends.ModelBackend"
    return perform_login(request, user, redirect_url=str(url))


login = Login.as_view()


@require_GET
def account(request: HttpRequest) -> HttpResponse:
    """Show the user's roles, password, two-factor authentication and sessions."""
    factors = {each.type: each for each in Authenticator.objects.filter(user=request.user)}
    codes = factors.get(Authenticator.Type.RECOVERY_CODES)
    context = {
        "effective": [
            (permission, sources)
            for permission, sources in effective_rights.scopes_by_permission(effective_rights.user_holder(request.user))
            if sources
        ],
        "totp": factors.get(Authenticator.Type.TOTP),
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "required": settings.IDENTITY.second_factor,
        "sessions": UserSession.objects.purge_and_list(request.user),
        "has_password": request.user.has_usable_password(),
    }
    return render(request, "account/account.html", context)


@require_POST
@recent_login_required
def revoke_sessions(request: HttpRequest) -> HttpResponse:
    """Sign out all other sessions of the user."""
    others = UserSession.objects.filter(user=request.user).exclude(session_key=request.session.session_key)
    with trail.recording(request, "end sessions", f"user {request.user}") as change:
        change.after = {"sessions": len(others)}
        for each in others:
            each.end()
    messages.success(request, "Signed out of all other sessions.")
    return redirect("account")


class ChangePassword(PasswordChangeView):
    """Change the user's password, which ends their other sessions."""

    template_name = "account/change_password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        """Keep it and say so in the trail."""
        with trail.recording(self.request, "change password", f"user {self.request.user}"):
            response = super().form_valid(form)
        messages.success(self.request, "Password changed. Your other sessions are signed out.")
        return response


change_password = ChangePassword.as_view()


@method_decorator(login_not_required, name="dispatch")
class Invitation(PasswordResetConfirmView):
    """Set the password of an account from its link, valid once, and sign in."""

    template_name = "registration/invitation.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        """Keep the password and say so in the trail: by whom is known by whose account it is."""
        user: User = form.user
        actor = trail.AuditActor.of(self.request)
        by = trail.AuditActor(user.get_username(), actor.address, actor.agent, actor.via)
        with trail.recording(by, "set password", f"user {user}"):
            response = super().form_valid(form)
        return _logged_in(self.request, user, reverse_lazy("overview")) if user.is_active else response


invitation = Invitation.as_view()
