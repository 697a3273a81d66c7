"""Read the time range of an analysis from forms, links and the API, and show it in forms in the reader's time zone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from django.conf import settings
from django.utils import timezone

from analytics.archive.footer_stats import recording_start_us
from analytics.requests.catalogue import AnalysisDefinition
from analytics.requests.parameters import WINDOW
from analytics.requests.request import TimeWindow, seconds_of
from analytics.requests.time_ranges import (
    LINK_FIELDS,
    SECOND_US,
    checked,
    read_link,
    read_moment,
    read_time_range,
    refuse_future,
    refuse_unrecorded,
)
from analytics.tables.catalog import TableCatalog, first_recorded_us, recording_start
from analytics.tables.storage import FolderStorage
from brokerapp.errors import RequestRefused
from console.analyses.questions import choice_for
from console.metrics.charts_history import OF_WINDOW, ChartWindow
from console.ui.preferences import timezones

#: The choice of a form for a time range with its own start and end.
CUSTOM = "custom"
#: How browsers show and send a date and time.
_FORM = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True, slots=True)
class TimeRangeField:
    """The time range as a form shows it."""

    choice: str  #: of the list; CUSTOM for explicit times
    since: str  #: times in the zone, as the browser's fields have them; "" for none
    until: str
    #: The same in seconds since the epoch: in the hour that a zone has twice, a text alone is not exact.
    since_s: str = ""
    until_s: str = ""
    zone: str = ""
    recorded_since: datetime | None = None  #: when recording began, if that is later than the start

    @property
    def is_custom(self) -> bool:
        """Return whether the start and the end are explicit."""
        return self.choice == CUSTOM


def field_of_link(analysis: AnalysisDefinition, query: Mapping[str, str], now: float) -> TimeRangeField:
    """Return the time range that a link asks for: its explicit one, or the choice that reaches as far back."""
    if (found := read_link(*(query.get(name, "") for name in LINK_FIELDS))) is not None:
        return _custom(analysis, *found)
    asked = query.get(WINDOW.name, "")
    if asked in _choices(analysis):
        return _offered(asked)
    if not OF_WINDOW & query.keys():
        return _offered(_default(analysis))
    shown = ChartWindow.read(query, now)
    choice = choice_for(analysis, int(now) - shown.start)
    return _offered(choice) if seconds_of(choice) >= shown.seconds else _custom(analysis, shown.start, shown.end)


def field_of_post(post: Mapping[str, str]) -> TimeRangeField:
    """Return the time range of a refused form, as it was entered."""
    if post.get(WINDOW.name) != CUSTOM:
        return _offered(post.get(WINDOW.name, ""))
    texts = (post.get(name, "") for name in (*LINK_FIELDS, "from_s", "to_s"))
    return TimeRangeField(CUSTOM, *texts, zone=post.get("zone", ""))


def posted_window(post: Mapping[str, str], analysis: AnalysisDefinition | None = None) -> TimeWindow | None:
    """Return the explicit time range of a form; None for one that ends now. Raises RequestRefused.

    It may begin as far back as the analysis has data: without one, that of the archive.
    A stored request that is started again has both ends in microseconds.
    """
    zone = timezones.get_zone(post.get("zone") or timezones.current_zone_name())
    if WINDOW.name not in post and post.get("since_us", "").isdecimal() and post.get("until_us", "").isdecimal():
        return _recorded(checked(int(post["since_us"]), int(post["until_us"]), _now_us(), zone), zone, analysis)
    if post.get(WINDOW.name) != CUSTOM:
        return None
    since, until = (_exact(post, name, zone) for name in LINK_FIELDS)
    found = read_time_range(since, until, _now_us(), zone)
    if found is None:
        raise RequestRefused("enter the start of the time range")
    return _recorded(found, zone, analysis)


def requested_window(
    window: str | None, since: str, until: str, analysis: AnalysisDefinition | None = None
) -> TimeWindow | None:
    """Return the explicit time range of an API request; None for one that ends now. Raises RequestRefused."""
    found = read_time_range(since, until, _now_us())
    if found is not None and window:
        raise RequestRefused("window and since exclude each other: give a length, or a start and an end")
    return None if found is None else _recorded(found, UTC, analysis)


def past_moment(text: str, zone: tzinfo = UTC) -> datetime:
    """Parse a past time, in the zone unless it has an offset. Raises RequestRefused."""
    now_us = _now_us()
    us = read_moment(text, now_us, zone)
    refuse_future(us, now_us, zone)
    return datetime.fromtimestamp(us / SECOND_US, UTC)


def _recorded(window: TimeWindow, zone: tzinfo, analysis: AnalysisDefinition | None) -> TimeWindow:
    refuse_unrecorded(window, _recorded_since_us(analysis), zone)
    return window


def _recorded_since_us(analysis: AnalysisDefinition | None) -> int | None:
    """Return the start of what an analysis can read: the archive, or tables that reach further back."""
    archive, tabled = settings.SLUICE.archive, None
    if analysis is not None and analysis.reads_tables:
        tabled = first_recorded_us(TableCatalog.all_of(FolderStorage(settings.SLUICE.tables), archive))
    return recording_start(recording_start_us(archive), tabled)


def _exact(post: Mapping[str, str], name: str, zone: tzinfo) -> str:
    """Return a time of a form; that of its hidden field, where the text was not changed since."""
    text, seconds = post.get(name, ""), post.get(f"{name}_s", "")
    if seconds.isascii() and seconds.isdecimal() and len(seconds) < 12:
        moment = datetime.fromtimestamp(int(seconds), zone)
        if f"{moment:{_FORM}}".removesuffix(":00") == text.removesuffix(":00"):
            return moment.isoformat()
    return text


def _custom(analysis: AnalysisDefinition, since: int, until: int) -> TimeRangeField:
    zone = timezone.get_current_timezone()
    texts = (f"{datetime.fromtimestamp(each, zone):{_FORM}}" for each in (since, until))
    began_us = _recorded_since_us(analysis)
    is_later = began_us is not None and since * SECOND_US < began_us
    recorded_since = datetime.fromtimestamp(began_us / SECOND_US, UTC) if is_later else None
    return TimeRangeField(CUSTOM, *texts, str(since), str(until), timezones.current_zone_name(), recorded_since)


def _offered(choice: str) -> TimeRangeField:
    return TimeRangeField(choice, "", "", zone=timezones.current_zone_name())


def _choices(analysis: AnalysisDefinition) -> list[str]:
    return [value for each in analysis.parameters if each.name == WINDOW.name for value, _ in each.choices]


def _default(analysis: AnalysisDefinition) -> str:
    return next((each.default for each in analysis.parameters if each.name == WINDOW.name), "")


def _now_us() -> int:
    return time.time_ns() // 1000
