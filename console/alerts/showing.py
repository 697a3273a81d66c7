"""What pages show of alerts everywhere: those that fire, and the rows that the overview has."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.template.loader import render_to_string

from brokerapp.destination import Destination, Kind
from brokerapp.errors import BrokerError, InvalidDestination
from console.access import AnyUser, visible
from console.models import AlertFiring
from console.peers import known_subscriptions
from console.rights import everything

#: Seconds for which a process remembers what fires, whatever the number of tabs.
FRESH = 2.0
MAX_SHOWN = 5

_remembered: tuple[float, list[AlertFiring]] = (0.0, [])


def firing_now() -> list[AlertFiring]:
    """What fires, latest first, as of a moment ago."""
    global _remembered
    at, found = _remembered
    if time.monotonic() - at > FRESH:
        found = list(AlertFiring.objects.filter(state=AlertFiring.State.FIRING).select_related("rule")[:200])
        _remembered = (time.monotonic(), found)
    return found


def forget() -> None:
    """Look again the next time."""
    global _remembered
    _remembered = (0.0, [])


def is_seen(subject: str, sees: Callable[[Destination], bool]) -> bool:
    """Whether somebody who sees these destinations may know of an alert about this."""
    try:
        destination = Destination.parse(subject) if "://" in subject else None
        if destination is None or sees is everything:
            return True
        if destination.kind is Kind.SUBSCRIPTION:  # who sees one of its topics may know of it
            return destination.name in known_subscriptions([destination], sees)
        return sees(destination)
    except (InvalidDestination, BrokerError):
        return False


def cells(user: AnyUser) -> dict[str, Any]:
    """The live cells of the overview."""
    sees = visible(user)
    found = [each for each in firing_now() if is_seen(each.subject, sees)]
    return {
        "firing_html": render_to_string(
            "console/parts/firing.html", {"firing": found[:MAX_SHOWN], "more": len(found) - MAX_SHOWN}
        ),
    }
