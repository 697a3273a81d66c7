"""Keep pages out of caches that several share, and partial responses of htmx apart from whole pages.

Who is signed out meanwhile gets the sign-in page as a page of its own, not in the place of the part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_vary_headers
from django_htmx.http import HttpResponseClientRedirect


def render_list(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Render a page with a table; only its table (the template `part`) for a partial request."""
    only_list = request.htmx and not request.htmx.boosted
    return render(request, "components/table.html" if only_list else template, context)


#: What tells the request for a part from the request for the page.
HEADERS = ("HX-Request", "HX-Target")


class PartialsMiddleware:
    """Set Vary headers, so that a browser that goes back does not show a partial as the page.

    Pages hold what only their user may see: caches on the way keep none, and a browser shows one again only when it
    has asked for it again, or by Back. Views whose pages show secrets say `no-store`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        patch_vary_headers(response, HEADERS)
        response.headers.setdefault("Cache-Control", "private, no-cache")
        if request.htmx and _leads_to_login(response):
            login = f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': request.htmx.current_url_abs_path or '/'})}"
            return HttpResponseClientRedirect(login)
        return response


def _leads_to_login(response: HttpResponse) -> bool:
    location = response.headers.get("Location", "")
    return response.status_code == 302 and location.partition("?")[0] == resolve_url(settings.LOGIN_URL)
