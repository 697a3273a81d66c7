"""Find the events that explain a chart: a node started, definitions changed, a queue was purged, an alert fired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from django.urls import reverse

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.time_series import BrokerPoint
from console.alerts.delivery.models import AlertFiring
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.metrics.charts_history import ChartWindow

#: Flags of one kind that a chart may carry; the latest stay.
MOST = 20
#: What an operator does to a destination that shows in its depth.
_SHOWN = ("purge", "delete", "pause", "resume")


@dataclass(frozen=True, slots=True)
class ChartEvent:
    """An event that a chart marks."""

    at: float  #: seconds since the epoch
    kind: str  #: node, routing, change or alert
    text: str
    url: str = ""
    about: str = ""  #: the destination it is about, in native form

    @property
    def flag(self) -> list:
        """Return the event as chart.js reads it."""
        return [round(self.at * 1000), self.kind, self.text, self.url]


def starts_of_nodes(kept: Iterable[BrokerPoint]) -> list[ChartEvent]:
    """Find starts of nodes in the history. Pure."""
    return [
        ChartEvent(after.started, "node", "Node started")
        for before, after in pairwise(kept)
        if after.started > before.started
    ]


def events_of(
    window: ChartWindow, kept: Iterable[BrokerPoint], destination: Destination | None = None
) -> list[ChartEvent]:
    """Return the events of a time range, of the broker or of one destination, in order."""
    found = [*starts_of_nodes(kept), *_definitions(), *_changes(window, destination), *_alerts(window, destination)]
    return sorted((each for each in found if window.start <= each.at <= window.end + 60), key=lambda each: each.at)


def _definitions() -> list[ChartEvent]:
    try:
        versions = gateway().history(limit=MOST)
    except BrokerError:
        return []
    return [
        ChartEvent(
            each["time_ms"] / 1000,
            "routing",
            f"Routing version {each['version']}" + (f" by {each['author']}" if each.get("author") else ""),
            reverse("routing-version", args=[each["version"]]),
        )
        for each in versions
        if "time_ms" in each
    ]


def _changes(window: ChartWindow, destination: Destination | None) -> list[ChartEvent]:
    """Select operations that succeeded: without access to the audit log a user must not learn of attempts."""
    entries = AuditEntry.objects.filter(action__in=_SHOWN, outcome="done", time__gte=_moment(window.start))
    if destination is not None:
        entries = entries.filter(object=str(destination))
    else:
        entries = entries.filter(action__in=("purge", "delete"))
    return [
        ChartEvent(each.time.timestamp(), "change", f"{each.action} of {each.object}", about=each.object)
        for each in entries[:MOST]
    ]


def _alerts(window: ChartWindow, destination: Destination | None) -> list[ChartEvent]:
    firings = AlertFiring.objects.filter(since__gte=_moment(window.start))
    if destination is not None:
        firings = firings.filter(subject=str(destination))
    return [
        ChartEvent(
            each.since.timestamp(), "alert", f"{each.rule_name}: {each.sentence}", reverse("alerts"), each.subject
        )
        for each in firings[:MOST]
    ]


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
