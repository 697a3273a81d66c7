"""A user's own account, and the page on which somebody invited sets a password."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpResponse
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator

from console import audit


@method_decorator(login_not_required, name="dispatch")
class Invitation(PasswordResetConfirmView):
    """Whoever has the link sets the password of the account it was made for; it works once."""

    template_name = "registration/invitation.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form) -> HttpResponse:
        """Keep the password and say so in the trail: by whom is known by whose account it is."""
        user: User = form.user
        actor = audit.Actor.of(self.request)
        by = audit.Actor(user.get_username(), actor.address, actor.agent, actor.via)
        with audit.recording(by, "set password", f"user {user}"):
            return super().form_valid(form)


invitation = Invitation.as_view()
