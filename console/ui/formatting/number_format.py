"""Format numbers, units and durations for pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from analytics.model.wording import MINUS, client_label
from console.ui.formatting import time_format

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SPANS = ((86400, "day", "d"), (3600, "hour", "h"), (60, "minute", "min"))


def format_integer(value: int | float) -> str:
    """Return an integer with thousands separators: 4,210 or −3."""
    return f"{value:,.0f}".replace("-", MINUS)


def format_compact(value: int) -> str:
    """Return at most five characters, for diagrams: 4,210, 12.8k, 1.2M."""
    for length, letter in ((1_000_000, "M"), (10_000, "k")):
        if value >= length:
            thousands = value / (1_000 if letter == "k" else length)
            return f"{thousands:.0f}{letter}" if thousands >= 100 else f"{thousands:.1f}{letter}"
    return format_integer(value)


def format_rate(value: float) -> str:
    """Return a rate per second: 12.4, or 1,204 without a decimal from a thousand on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}"


def format_bytes(count: int | float) -> str:
    """Return a size with a binary unit: 1.4 MiB."""
    value = float(count)
    for unit in _BYTE_UNITS:
        if value < 1024 or unit == _BYTE_UNITS[-1]:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError


def format_duration(seconds: float) -> str:
    """Return a duration in one unit: 12 s, 4 min, 3 h, 2 d."""
    for length, _, short in _SPANS:
        if seconds >= length:
            return f"{seconds / length:.0f} {short}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f} s"


def format_relative(moment: datetime, now: datetime | None = None) -> str:
    """Return a time relative to now: 4 min ago, in 12 min, just now."""
    seconds = ((now or timezone.now()) - moment).total_seconds()
    if abs(seconds) < 5:
        return "just now"
    return f"{format_duration(int(seconds))} ago" if seconds > 0 else f"in {format_duration(int(-seconds))}"


def format_relative_minutes(moment: datetime) -> str:
    """Return a relative time without seconds: 4 min ago, just now."""
    return format_relative(moment) if abs((timezone.now() - moment).total_seconds()) >= 60 else "just now"


def pluralize_count(count: int, noun: str) -> str:
    """Return a count with its noun: 1 queue, 4,210 messages."""
    return f"{format_integer(count)} {noun}" + ("" if count == 1 else "s")


def format_difference(value: float, unit: str) -> str:
    """Return a signed difference in a column's unit: +1,204; "" for none."""
    return f"{'+' if value > 0 else MINUS}{format_value(abs(value), unit)}" if value else ""


def format_percentage(value: float) -> str:
    """Return a fraction as a percentage: 12.4%."""
    return f"{value * 100:,.1f}%"


def format_change(value: float) -> str:
    """Return a relative change: +12.4%, −3.0%."""
    return f"{'+' if value > 0 else ''}{format_percentage(value)}".replace("-", MINUS)


def format_iso_time(text: str) -> str:
    """Return an ISO 8601 time in the reader's time zone: 5 Mar 2026, 06:07:08."""
    found = datetime.fromisoformat(text)
    return time_format.format_time_without_zone(found if found.tzinfo else found.replace(tzinfo=UTC))


def format_milliseconds(value: float) -> str:
    """Return a latency: 2.44 ms, 413 ms, 4.1 s, 2.5 min, 3.0 h."""
    for size_, unit in ((3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if value >= size_:
            return f"{value / size_:,.1f} {unit}"
    return f"{value:.3g} ms" if value < 100 else f"{value:.0f} ms"


#: How values read in the units of a result's table (analytics.results.storage.ResultColumn).
_UNITS: dict[str, Callable[[Any], str]] = {
    "bytes": format_bytes,
    "seconds": format_duration,
    "part": format_percentage,
    "change": format_change,
    "times": lambda value: f"{value:,.3g}×",
    "ms": format_milliseconds,
    "time": format_iso_time,
}


def format_cell(value: Any, column: Mapping[str, str]) -> str:
    """Return a cell of a result table as its column shows it; a client without a name is unnamed."""
    if column.get("about") == "client" and isinstance(value, str):
        return client_label(value)
    return format_value(value, column["unit"])


def format_value(value: Any, unit: str) -> str:
    """Return a value of a result table in its unit."""
    if value is None:
        return "–"
    if unit in _UNITS:
        return _UNITS[unit](value)
    if isinstance(value, bool | str):
        return str(value)
    return format_rate(value) if isinstance(value, float) else format_integer(value)
