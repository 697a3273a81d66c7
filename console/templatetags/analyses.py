"""Render links from pages to analyses of the time range that they show."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone

from brokerapp.model.destination import Destination
from console.access.permissions import Permission, has_permission
from console.analyses.window_links import analysis_links, range_query

register = template.Library()


@register.inclusion_tag("components/analyse_menu.html", takes_context=True)
def analyse_window(context: template.Context, query: str, destination: Destination | None = None) -> dict[str, Any]:
    """{% analyse_window window.carried destination %}: render a menu of analyses of the time range of a chart."""
    return _menu(context, query, destination)


@register.inclusion_tag("components/analyse_menu.html", takes_context=True)
def analyse_period(
    context: template.Context, since: datetime, until: datetime | None, destination: Destination | None = None
) -> dict[str, Any]:
    """{% analyse_period since until destination %}: render a menu of analyses of a period; until now for None."""
    return _menu(context, range_query(since, until or timezone.now()), destination)


def _menu(context: template.Context, query: str, destination: Destination | None) -> dict[str, Any]:
    destination = destination or None  # templates have "" where a variable is missing
    is_allowed = has_permission(context["user"], Permission.ANALYSE, destination)
    return {"links": analysis_links(query, destination) if is_allowed else []}
