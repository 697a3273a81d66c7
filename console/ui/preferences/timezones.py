"""Show times in the time zone that a user chose: UTC, or the zone of their browser.

Programs are always told in UTC. What an address says of times names its zone, so that it means the same to everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from brokerapp.errors import RequestRefused
from console.access.permissions import AnyUser
from console.ui.preferences.user_settings import settings_of

UTC = "UTC"
#: Where programs ask.
_OF_PROGRAMS = "/api/"


def get_zone(name: str) -> ZoneInfo:
    """Return the zone of this name, such as `Europe/Berlin`. Raises RequestRefused."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; no name at all; that of a folder
        raise RequestRefused(f"Unknown time zone {name[:64]!r}. Use a name such as Europe/Berlin or UTC.") from None


def zone_name_of(user: AnyUser) -> str:
    """Return the name of the user's time zone."""
    if not user.is_authenticated:
        return UTC
    return settings_of(user).zone


def current_zone_name() -> str:
    """Return the name of the current time zone."""
    return timezone.get_current_timezone_name()


def parse_moment(text: str, zone: str = "") -> datetime | None:
    """Parse a time of a form in the zone (UTC without a known one), unless it names an offset."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=get_zone(zone or UTC))
    except (ValueError, RequestRefused):
        return None


def display_moment(text: str, zone: str = "") -> str:
    """Return a time as a form shows it in its reader's zone; other text unchanged."""
    moment = parse_moment(text, zone)
    return text if moment is None else f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}"


class TimezoneMiddleware:
    """Activate the user's time zone for the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(_OF_PROGRAMS):
            return self.get_response(request)
        with timezone.override(get_zone(zone_name_of(request.user))):
            return self.get_response(request)
