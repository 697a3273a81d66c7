"""Read explicit time ranges of requests: both ends as texts of forms, links, the API and brokerctl. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from analytics.requests.request import TimeWindow, is_window, seconds_of
from brokerapp.errors import RequestRefused

SECOND_US = 1_000_000
#: A clock of a browser or a client may be ahead by so much: a range that ends within it ends now.
CLOCK_TOLERANCE_US = 60 * SECOND_US
#: The names under which links have the ends, in seconds since the epoch.
LINK_FIELDS = ("from", "to")
#: How a time of a range is shown in errors.
_SHOWN = "%Y-%m-%d %H:%M:%S %Z"
_EPOCH_SECONDS = re.compile(r"[0-9]{1,11}")


def read_moment(text: str, now_us: int, zone: tzinfo = UTC) -> int:
    """Parse a time ago (`15m`) or an ISO 8601 time, in the zone unless it has an offset; return microseconds.

    Raises RequestRefused.
    """
    text = text.strip()
    if is_window(text):
        return now_us - seconds_of(text) * SECOND_US
    try:
        found = datetime.fromisoformat(text)
        return round((found if found.tzinfo else found.replace(tzinfo=zone)).timestamp() * SECOND_US)
    except (ValueError, OverflowError):
        raise RequestRefused(f"invalid time {text[:64]!r}: expected {_rule(zone)}") from None


def _rule(zone: tzinfo) -> str:
    return f"a duration such as 15m, 24h or 7d before now, or a time such as 2026-03-29T08:00 ({zone} by default)"


def read_time_range(since: str, until: str, now_us: int, zone: tzinfo = UTC) -> TimeWindow | None:
    """Parse both ends of a time range; None when neither is given. Without an end it ends now.

    Raises RequestRefused for an invalid time, a missing start, an end before the start or in the future.
    """
    if not since.strip() and not until.strip():
        return None
    if not since.strip():
        raise RequestRefused("the time range has no start: enter both times, or the start alone for a range until now")
    return checked(
        read_moment(since, now_us, zone), read_moment(until, now_us, zone) if until.strip() else now_us, now_us, zone
    )


def checked(since_us: int, until_us: int, now_us: int, zone: tzinfo = UTC) -> TimeWindow:
    """Return the time range between two times. Raises RequestRefused unless it is in order and in the past."""
    refuse_future(until_us, now_us, zone)
    until_us = min(until_us, now_us)
    if not 0 <= since_us < until_us:
        raise RequestRefused(
            f"the time range must start before it ends: got {_shown(since_us, zone)} and {_shown(until_us, zone)}"
        )
    return TimeWindow(since_us, until_us)


def refuse_future(until_us: int, now_us: int, zone: tzinfo = UTC) -> None:
    """Raise RequestRefused for the end of a time range that is still to come."""
    if until_us > now_us + CLOCK_TOLERANCE_US:
        raise RequestRefused(f"the time range must not end in the future: {_shown(until_us, zone)} is still to come")


def read_link(query_since: str, query_until: str) -> tuple[int, int] | None:
    """Return both ends that a link carries, in seconds since the epoch; None unless both are there and in order."""
    if not (_EPOCH_SECONDS.fullmatch(query_since) and _EPOCH_SECONDS.fullmatch(query_until)):
        return None
    since, until = int(query_since), int(query_until)
    return (since, until) if since < until else None


def refuse_unrecorded(window: TimeWindow, recorded_since_us: int | None, zone: tzinfo = UTC) -> None:
    """Raise RequestRefused for a time range that ends before anything that is still stored was recorded."""
    if recorded_since_us is not None and window.until_us <= recorded_since_us:
        raise RequestRefused(
            "nothing is recorded in this time range: recorded traffic is available since"
            f" {_shown(recorded_since_us, zone)}"
        )


def _shown(us: int, zone: tzinfo) -> str:
    try:
        return f"{datetime.fromtimestamp(us / SECOND_US, zone):{_SHOWN}}"
    except (ValueError, OverflowError, OSError):  # beyond the years that dates can have
        return f"{us // SECOND_US} s since 1970"
