"""Serve the page of API tokens: create, show once, revoke."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from brokerapp.errors import BrokerError
from console.access.permissions import Permission, has_permission
from console.accounts import api_tokens as service
from console.accounts.models import ApiToken
from console.ui.formatting.url_query import parse_integer

#: Days offered; how long a token may live is the service's to say.
LIFETIMES = (7, 30, service.DEFAULT_DAYS, service.MAX_DAYS)


@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """Show active tokens and the form; on POST create a token and show its text once."""
    form = _form(request)
    error, made, text = "", None, ""
    if request.method == "POST":
        try:
            made, text = service.create_and_record(
                request, form["user"], form["name"], form["verbs"], form["scopes"].replace(",", "\n").split("\n"),
                form["days"],
            )  # fmt: skip
            form = _empty(request)
        except BrokerError as refused:
            error = str(refused)
    sees_all = has_permission(request.user, Permission.USERS)
    context = {
        "tokens": service.active_tokens(None if sees_all else request.user),
        "sees_all": sees_all,
        "form": form,
        "permissions": [
            permission for permission in Permission if sees_all or has_permission(request.user, permission)
        ],
        "lives": LIFETIMES,
        "error": error,
        "made": made,
        "text": text,
    }
    return render(request, "accounts/api_tokens.html", context, status=400 if error else 200)


def _empty(request: HttpRequest) -> dict[str, Any]:
    return {"user": "", "name": "", "verbs": ["see"], "scopes": "", "days": service.DEFAULT_DAYS}


def _form(request: HttpRequest) -> dict[str, Any]:
    if request.method != "POST":
        return _empty(request)
    return {
        "user": request.POST.get("user", "").strip(),
        "name": request.POST.get("name", ""),
        "verbs": request.POST.getlist("verbs"),
        "scopes": request.POST.get("scopes", ""),
        "days": parse_integer(request.POST.get("days")),
    }


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke one of your tokens, or any with the permission to manage users."""
    token = get_object_or_404(ApiToken, pk=token_id, revoked=None)
    service.revoke_and_record(request, token)
    messages.success(request, f"Token {token.name} revoked.")
    return redirect("tokens")
