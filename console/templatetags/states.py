"""The badge of a state, for runs, editions, alerts and notifications."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

#: States with a colour of their own, and what some are called on pages.
_COLOURS = {
    "done": "good", "sent": "good", "ended": "good", "failed": "act", "firing": "act", "held": "look",
    "skipped": "look", "pending": "look", "running": "accent",
}  # fmt: skip
_LABELS = {"ended": "Resolved"}


@register.simple_tag
def state_badge(state: str, label: str = "") -> SafeString:
    """Render the badge of a state, with its colour and its label."""
    colour = f" badge-{_COLOURS[state]}" if state in _COLOURS else ""
    return format_html('<span class="badge{}">{}</span>', colour, label or _LABELS.get(state, state.capitalize()))
