"""Time zones: by whose clock pages tell times. A user's choice: UTC, or the zone that their browser named.

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
    """The zone of this name, as `Europe/Berlin`. Raises RequestRefused."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; no name at all; that of a folder
        raise RequestRefused(f"Unknown time zone {name[:64]!r}. Use a name such as Europe/Berlin or UTC.") from None


def zone_name_of(user: AnyUser) -> str:
    """The name of the zone in which this user is told of times."""
    if not user.is_authenticated:
        return UTC
    return settings_of(user).zone


def current_zone_name() -> str:
    """The name of the zone in which times are told just now."""
    return timezone.get_current_timezone_name()


def parse_moment(text: str, zone: str = "") -> datetime | None:
    """A moment as a form has it, by the clock of the zone (UTC without one, or with none that is known) unless it says
    how far it is from UTC; None for what is no moment."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=get_zone(zone or UTC))
    except (ValueError, RequestRefused):
        return None


def display_moment(text: str, zone: str = "") -> str:
    """What `read` reads as a form shows it, by the clock of its reader; what is no moment as it is."""
    moment = parse_moment(text, zone)
    return text if moment is None else f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}"


class TimezoneMiddleware:
    """Has a user's pages tell times by the clock of their choice."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(_OF_PROGRAMS):
            return self.get_response(request)
        with timezone.override(get_zone(zone_name_of(request.user))):
            return self.get_response(request)
