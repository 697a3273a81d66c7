"""Save the display settings of a user."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from console.ui.preferences.models import UserSetting
from console.ui.preferences.timezones import get_zone


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Save the theme and return to the page."""
    choice = request.POST.get("theme")
    if choice not in UserSetting.Theme.values:
        return HttpResponseBadRequest(f"{choice!r} is not one of {', '.join(UserSetting.Theme.values)}")
    return _save_setting(request, theme=choice)


@require_POST
def shortcut_keys(request: HttpRequest) -> HttpResponse:
    """Enable or disable single-key shortcuts and return to the page."""
    choice = request.POST.get("keys")
    if choice not in ("on", "off"):
        return HttpResponseBadRequest(f"{choice!r} must be on or off")
    return _save_setting(request, single_keys=choice == "on")


@require_POST
def zone(request: HttpRequest) -> HttpResponse:
    """Save the time zone, UTC or the browser's, and return to the page."""
    return _save_setting(request, zone=get_zone(request.POST.get("zone", "")).key)


@require_POST
def notifications_seen(request: HttpRequest) -> HttpResponse:
    """Mark all notifications as seen."""
    UserSetting.objects.update_or_create(user=request.user, defaults={"bell_seen": timezone.now()})
    return HttpResponse(status=204)


def _save_setting(request: HttpRequest, **chosen: object) -> HttpResponse:
    UserSetting.objects.update_or_create(user=request.user, defaults=chosen)
    back = request.POST.get("back", "/")
    return redirect(back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else "/")
