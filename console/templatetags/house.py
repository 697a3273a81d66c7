"""Tags and filters that every template has."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from brokerapp.destination import NAMED_KINDS, Destination
from brokerapp.errors import InvalidDestination
from console import figures
from console.alerts import rules

register = template.Library()

for _filter in (figures.whole, figures.rate, figures.size, figures.span, figures.ago, figures.figure):
    register.filter(_filter.__name__, _filter)


@register.filter
def counted(count: int, noun: str) -> str:
    """{{ 3|counted:"queue" }}"""
    return figures.counted(count, noun)


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """An icon of the sprite; decoration, so hidden from screen readers."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        extra,
        static("console/icons.svg"),
        name,
    )


@register.filter
def splitname(name: str) -> list[str]:
    """The elements of a destination name."""
    return name.split(".")


@register.filter
def pretty(value: object) -> str:
    """A JSON value over several lines; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


@register.filter
def breakable(name: str) -> SafeString:
    """A destination name that breaks after its dots where a line is too short for it."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in re.findall(r"[^.]*\.|[^.]+$", name)))


@register.filter
def get(mapping: dict, key: object) -> object:
    """The value of a key that is not known before."""
    return mapping.get(key)


@register.filter
def millis(moment: datetime) -> int:
    """A moment as milliseconds since the epoch."""
    return int(moment.timestamp() * 1000)


@register.filter
def millispan(ms: float) -> str:
    """0.4 ms, 120 ms, 1.4 s, 12 min"""
    if ms < 1000:
        return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
    return figures.span(round(ms / 1000, 1))


@register.filter
def beside(line: Any, columns: Any) -> list[tuple]:
    """Each number of a line of a comparison beside its column."""
    return list(zip(line.pairs, columns, strict=True))


@register.filter
def iszero(text: str) -> bool:
    """Whether a figure says nothing, so that it may stand back."""
    return text in ("0", "0.0")


@register.filter
def moment(seconds: float) -> datetime:
    """Seconds since the epoch as a time."""
    return datetime.fromtimestamp(seconds, UTC)


@register.filter
def amount(value: float, metric: str) -> str:
    """A number of an alert's metric with its unit: {{ firing.worst|amount:rule.metric }}"""
    return rules.amount(rules.Metric(metric), value)


@register.filter
def partsof(text: str) -> Destination | None:
    """The queue or topic that a native form names; None for what is none."""
    try:
        destination = Destination.parse(text) if "://" in text else None
    except InvalidDestination:
        return None
    return destination if destination and destination.kind in NAMED_KINDS else None
