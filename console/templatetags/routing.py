"""Definitions in templates: what they are called."""

from __future__ import annotations

from django import template

from console.routing.definitions.changes import id_of
from console.routing.definitions.definition_values import label_of, title_of

register = template.Library()

for _filter in (id_of, label_of, title_of):
    register.filter(_filter.__name__, _filter)


@register.filter
def unlocalized(value: float) -> str:
    """Return a coordinate as SVG reads it: 12 or 12.5."""
    return f"{value:g}" if abs(value) < 1e5 else f"{value:.0f}"


@register.filter
def cap(value: int, most: int) -> int:
    """Return the number, or the maximum if it is larger."""
    return min(value, most)
