"""Provide tags and filters for all templates."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django import template
from django.templatetags.static import static
from django.urls import get_script_prefix, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import NAMED_KINDS, Destination
from brokerapp.system.checkout import command
from console.alerts import metrics
from console.analyses import result_tables
from console.metrics import charts_history
from console.ui.formatting import number_format, time_format

register = template.Library()

#: Browsers as their words in User-Agent tell them apart, and the systems they run on; the first that is there counts.
_BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
_CALLED = {"Edg": "Edge", "OPR": "Opera", "Mac OS X": "macOS"}

for _name, _filter in {
    "whole": number_format.format_integer,
    "rate": number_format.format_rate,
    "size": number_format.format_bytes,
    "span": number_format.format_duration,
    "ago": number_format.format_relative,
    "lately": number_format.format_relative_minutes,
    "figure": number_format.format_value,
    "cell": number_format.format_cell,
    "difference": number_format.format_difference,
    "spark_area": charts_history.spark_area,
    "day": time_format.format_day,
    "when": time_format.format_time,
    "exactly": time_format.format_exact_time,
    "period": time_format.format_period,
}.items():
    register.filter(_name, _filter)


register.simple_tag(time_format.format_period, name="period")
register.simple_tag(command)


@register.filter
def counted(count: int, noun: str) -> str:
    """{{ 3|counted:"queue" }}: return a count with its noun."""
    return number_format.pluralize_count(count, noun)


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Return an icon of the sprite, hidden from screen readers."""
    return _icon(get_script_prefix(), name, extra)


@lru_cache(maxsize=1000)  # a page has some forty, always the same
def _icon(prefix: str, name: str, extra: str) -> SafeString:
    """Return the markup of an icon; `prefix` is the path under which the console is served."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        extra,
        static("console/icons.svg"),
        name,
    )


@register.inclusion_tag("components/breadcrumbs.html")
def hierarchy(destination: Destination, is_above: bool = True) -> dict[str, Any]:
    """Render breadcrumbs of a destination: its list, the elements of its name, and its page."""
    every, page = reverse(f"{destination.kind}s"), reverse(destination.kind, kwargs={"name": destination.name})
    *above, last = destination.name.split(".")
    steps = [
        (element, f"{every}?{urlencode({'q': '.'.join(above[: place + 1]) + '.'})}")
        for place, element in enumerate(above)
    ]
    title = f"{destination.kind}s".capitalize()
    return {"list": every, "title": title, "above": steps, "last": last, "page": page if is_above else ""}


@register.filter
def since(moment: datetime) -> str:
    """Return the duration since a time: `4 min`."""
    return number_format.format_duration(max(0, int((timezone.now() - moment).total_seconds())))


@register.filter
def lasted(began: datetime, ended: datetime) -> str:
    """Return the duration between two times: {{ firing.fired|lasted:firing.ended }}"""
    return number_format.format_duration(max(0, (ended - began).total_seconds()))


@register.filter
def unbroken(text: object) -> str:
    """Put no-break spaces between numbers and their units."""
    return re.sub(r"(?<=\d) (?=[^\W\d])", "\N{NO-BREAK SPACE}", str(text))


@register.filter
def browser(agent: str) -> str:
    """Return a User-Agent in words, `Firefox on Windows`; an unknown one shortened."""
    found = [next((each for each in known if each in agent), "") for known in (_BROWSERS, _SYSTEMS)]
    return " on ".join(_CALLED.get(each, each) for each in found) if all(found) else agent[:60]


@register.filter
def pretty(value: object) -> str:
    """Return a JSON value indented over several lines; text unchanged."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


@register.filter
def code_marked(text: str) -> SafeString:
    """Return a text of the documentation as HTML: `code` in backticks as such, links as their words."""
    parts = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text).split("`")
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", p) if n % 2 else p,) for n, p in enumerate(parts))
    )


@register.filter
def breakable(name: str) -> SafeString:
    """Allow line breaks after the dots of a destination name."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in re.findall(r"[^.]*\.|[^.]+$", name)))


@register.filter
def get(mapping: dict, key: object) -> object:
    """Return the value of a variable key."""
    return mapping.get(key)


@register.filter
def millis(moment: datetime) -> int:
    """Return a time as milliseconds since the epoch."""
    return int(moment.timestamp() * 1000)


@register.filter
def millispan(ms: float) -> str:
    """Return milliseconds as a duration: 0.4 ms, 120 ms, 1.4 s, 12 min."""
    if ms < 1000:
        return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
    return number_format.format_duration(round(ms / 1000, 1))


@register.filter
def beside(line: Any, columns: Any) -> list[tuple]:
    """Pair each number of a comparison row with its column."""
    return list(zip(line.pairs, columns, strict=True))


@register.filter
def underhead(unit: str) -> str:
    """Return the unit below a column's label; "" where each value has its own unit."""
    return result_tables.UNITS.get(unit, "")


@register.filter
def localmoment(moment: datetime) -> str:
    """Return a time in its own time zone, and how long it is until then."""
    return f"{time_format.format_weekday_time(moment)} ({number_format.format_relative(moment)})"


@register.filter
def iszero(text: str) -> bool:
    """Return whether a figure is zero, to be shown in soft color."""
    return text in ("0", "0.0")


@register.filter
def moment(seconds: float) -> datetime:
    """Return seconds since the epoch as a datetime."""
    return datetime.fromtimestamp(seconds, UTC)


@register.filter
def amount(value: float, metric: str) -> str:
    """Return a value of an alert metric with its unit: {{ firing.worst|amount:rule.metric }}"""
    return metrics.amount(metrics.AlertMetric(metric), value)


@register.filter
def partsof(named: Destination | str) -> Destination | None:
    """Return the queue or topic of a destination or native name; None for others."""
    text = str(named)
    try:
        destination = Destination.parse(text) if "://" in text else None
    except InvalidDestination:
        return None
    return destination if destination and destination.kind in NAMED_KINDS else None
