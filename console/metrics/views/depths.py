"""Serve the page of historical depths."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from analytics.rollups.store import DEPTH_RETENTION_SECONDS
from brokerapp.model.destination import Destination
from console.access.permissions import Permission, permission_required, visible
from console.broker.mirror import mirror
from console.metrics import rollup_history
from console.ui.preferences import timezones

PAGE_SIZE = 100
#: What is analysed of the traffic before and after the moment.
AROUND = timedelta(minutes=30)
#: How a moment stands in the URL and in the browser's field, beside its zone: to the minute.
_FORM = "%Y-%m-%dT%H:%M"
#: The steps that the page offers: what they are called, and minutes.
_STEPS = (("−1 d", -1440), ("−1 h", -60), ("−1 min", -1), ("+1 min", 1), ("+1 h", 60), ("+1 d", 1440))


@dataclass(frozen=True, slots=True)
class DepthsMoment:
    """The time that a URL asks for."""

    at: datetime
    wrong: str = ""  #: why it was not that

    @staticmethod
    def read(text: str, now: datetime, zone: str = "") -> DepthsMoment:
        """Parse a time; an hour ago without a text, or for an invalid one, with an error."""
        hour_ago = (now - timedelta(hours=1)).replace(second=0, microsecond=0)
        if not text:
            return DepthsMoment(hour_ago)
        at = timezones.parse_moment(text, zone)
        if at is None:
            return DepthsMoment(hour_ago, f"{text!r} is not a date and time. Use YYYY-MM-DDThh:mm.")
        if at > now:
            return DepthsMoment(hour_ago, "The time is in the future.")
        if at < now - timedelta(seconds=DEPTH_RETENTION_SECONDS):
            return DepthsMoment(hour_ago, f"Depths are kept for {DEPTH_RETENTION_SECONDS // 86400} days.")
        return DepthsMoment(at)

    @property
    def text(self) -> str:
        """Return the time for the URL, in the reader's time zone."""
        return _text(self.at)

    def steps(self, now: datetime) -> list[tuple[str, str]]:
        """Return label and time of the steps from this time that have recorded depths."""
        earliest = now - timedelta(seconds=DEPTH_RETENTION_SECONDS)
        moments = [(label, self.at + timedelta(minutes=minutes)) for label, minutes in _STEPS]
        return [(label, _text(at)) for label, at in moments if earliest <= at <= now]


def _text(moment: datetime) -> str:
    return timezone.localtime(moment).strftime(_FORM)


@require_GET
@permission_required(Permission.SEE)
def depths(request: HttpRequest) -> HttpResponse:
    """Return the depths at the moment `at`, beside those of now."""
    now = datetime.now(UTC)
    moment = DepthsMoment.read(request.GET.get("at", ""), now, request.GET.get("zone", ""))
    found = rollup_history.rollups().depths_at(int(moment.at.timestamp()))
    stats = mirror().current().stats

    def depth_now(destination: Destination) -> int | None:
        known = stats.get(destination)
        return None if known is None else known.QueueSize

    rows = rollup_history.past_depths(found.of, depth_now, visible(request.user)) if found else []
    pages = Paginator(rows, PAGE_SIZE)
    return render(
        request,
        "metrics/depths.html",
        {
            "moment": moment,
            "steps": moment.steps(now),
            "around": (moment.at - AROUND, min(moment.at + AROUND, now)),
            "noted": found and datetime.fromtimestamp(found.noted, UTC),
            "is_old": bool(found) and int(moment.at.timestamp()) - found.noted >= rollup_history.QUIET_SECONDS,
            "page": pages.get_page(request.GET.get("page")),
            "total": sum(each.depth for each in rows),
            "deepest": max((each.depth for each in rows), default=0),
            "latest": _text(now),
            "query": urlencode(
                {"at": moment.text, **({"zone": request.GET["zone"]} if request.GET.get("zone") else {})}
            ),
        },
    )
