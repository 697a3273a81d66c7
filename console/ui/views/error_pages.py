"""Serve the error pages of HTTP status 400, 403, 404 and 500."""

from __future__ import annotations

import logging
import secrets
from urllib.parse import quote

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import Resolver404

from console.access.permissions import Permission, has_permission
from console.accounts.impersonation import apply
from console.api.common.problems import MISSING, internal_error, is_for_api, problem_response
from console.ui.formatting import number_format
from console.ui.navigation.command_palette import PaletteCommand
from console.ui.navigation.menu import NAVIGATION
from console.ui.url_converters import escape_legacy_path

logger = logging.getLogger(__name__)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer a request that Django cannot read: 413 when it is too large, else 400."""
    apply(request)
    if isinstance(exception, RequestDataTooBig):
        most = number_format.format_bytes(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        sentence = f"Nothing was changed. A request may have at most {most}. Go back to the form and make it smaller."
        return _page(request, 413, "Request too large", sentence)
    return _page(request, 400, "Invalid request", "The request could not be read. Reload the page and try again.")


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 403 with the missing permission."""
    sentence = str(exception or "") or "You do not have permission to view this page."
    if request.user.is_authenticated and not has_permission(request.user, Permission.SEE):
        # no page of the console would answer otherwise: a way to the overview would lead back here
        sentence += " Ask an administrator to assign a role to you."
        return _page(request, 403, "No role assigned", sentence, is_shut_out=True)
    return _page(request, 403, "Access denied", sentence)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 for a form that is older than the session or the impersonation."""
    logger.info("%s %s: %s", request.method, request.path, reason)
    apply(request)
    return _page(request, 403, "Page expired", "Nothing was changed. Reload the page and submit again.")


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 404 with a link to the nearest list; redirect old URLs."""
    if (
        isinstance(exception, Resolver404)
        and request.method in ("GET", "HEAD")
        and (found := escape_legacy_path(request.path))
    ):
        query = request.META.get("QUERY_STRING", "")
        return HttpResponseRedirect(quote(found) + (f"?{query}" if query else ""))
    if is_for_api(request):
        return problem_response(request, 404, MISSING, "not-found")
    apply(request)  # of an address that leads nowhere nobody has asked yet
    sentence = str(exception or "")
    if not sentence or sentence.startswith("{") or sentence.endswith("matches the given query."):  # Django's own words
        sentence = "It may have been deleted, or the link is mistyped."
    return _page(request, 404, "Page not found", sentence, nearest=_nearest_menu_entry(request))


def _nearest_menu_entry(request: HttpRequest) -> PaletteCommand | None:
    """Return the navigation entry of the URL, if the user can open it."""
    entries = (entry for _, group in NAVIGATION for entry in group if entry.url != "/")
    found = next((entry for entry in entries if request.path.startswith(entry.url) and request.path != entry.url), None)
    return found if found and request.user.is_authenticated and has_permission(request.user, found.permission) else None


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with a reference that is also in the log."""
    reference = secrets.token_hex(4)
    logger.error("%s %s failed [%s]", request.method, request.path, reference)
    if is_for_api(request):
        return internal_error(request, reference)
    return _page(request, 500, "Internal error", "Details are in the web server log.", reference=reference)


def _page(request: HttpRequest, status: int, title: str, sentence: str, **more: object) -> HttpResponse:
    page = {"title": title, "sentence": sentence, "status": status, **more}
    return render(request, "layout/error.html", page, status=status)
