"""List firing alerts for all pages, and the cells of the overview's alert rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.template.loader import render_to_string

from brokerapp.model.destination import Destination
from console.access.permissions import AnyUser, visible
from console.access.roles import everything
from console.alerts.delivery.models import AlertFiring

#: Seconds for which a process remembers what fires, whatever the number of tabs.
FRESH = 2.0
MAX_SHOWN = 5

_remembered: tuple[float, list[AlertFiring]] = (0.0, [])


def firing_now() -> list[AlertFiring]:
    """Return the firing alerts, latest first, from a cache of a few seconds."""
    global _remembered
    at, found = _remembered
    if time.monotonic() - at > FRESH:
        found = list(AlertFiring.objects.filter(state=AlertFiring.State.FIRING).select_related("rule")[:200])
        _remembered = (time.monotonic(), found)
    return found


def invalidate() -> None:
    """Forget the cached alerts, so that the next call reads them again."""
    global _remembered
    _remembered = (0.0, [])


def is_visible(firing: AlertFiring, sees: Callable[[Destination], bool]) -> bool:
    """Return whether a user who sees these destinations may see an alert.

    Of a subscription one topic suffices; of an objective the user must see all its queues or topics.
    """
    if sees is everything or ("://" not in firing.subject and not firing.topics):
        return True
    about = firing.topics or [firing.subject]
    return any(sees(Destination.parse(each)) for each in about)


def cells(user: AnyUser) -> dict[str, Any]:
    """Return the live cells of the overview."""
    sees = visible(user)
    found = [each for each in firing_now() if is_visible(each, sees)]
    return {
        "firing_html": render_to_string(
            "alerts/active_alerts.html", {"firing": found[:MAX_SHOWN], "more": len(found) - MAX_SHOWN}
        ),
    }
