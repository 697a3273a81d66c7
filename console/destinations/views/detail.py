"""Page of one queue or topic, with tabs; each tab loads only what it shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from csp.decorators import csp_update
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from analytics.model.routing_coverage import policy_of
from analytics.results import charts
from analytics.rollups.queries import width_for
from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.permissions import (
    Permission,
    destination_from_url,
    has_permission,
    pattern_filter,
    permission_required,
)
from console.analyses.charts import Plot
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.live.channels import numbers_of
from console.broker.snapshot import BrokerSnapshot
from console.destinations.clients.clients import consumers_of, current_connections, producers_of
from console.destinations.lists import COLUMNS
from console.destinations.placement import node_of_connection, owner_node
from console.destinations.queue_health import delivery_issues
from console.destinations.services import consumer_gone_since, get_stats
from console.destinations.views.deleted import deleted_page
from console.metrics import charts_history, rollup_history
from console.metrics.charts.chart_data import chart_of
from console.routing.definitions.definition_values import non_default_values
from console.routing.definitions.visibility import is_visible, visible_definitions
from console.routing.map.graph import feeds_into
from console.ui.formatting import number_format
from console.ui.preferences.favourites import favourites_of
from console.ui.staticfiles import PLOTLY_STYLES

#: Audit entries of a destination that its page shows.
MAX_CHANGES = 30
LATENCY_TITLE = "Acknowledgement latency"


@require_GET
@permission_required(Permission.SEE, destination_from_url)
@csp_update({"style-src": PLOTLY_STYLES, "img-src": "blob:"})
def detail(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Show a tab of the page of a queue or topic; of a deleted one, its history."""
    destination = Destination(DestinationKind(kind), name).physical
    try:
        picture, stats = get_stats(destination)
    except Http404:
        return deleted_page(request, destination)
    tab = FORMER_TABS.get(tab := request.GET.get("tab", ""), tab)
    tab = tab if tab in TABS and kind in TABS[tab][1] else ""
    window = charts_history.ChartWindow.read(request.GET, time.time())
    numbers = numbers_of(picture, stats)
    context = {
        "destination": destination,
        "stats": stats,
        "delete_url": reverse(f"delete-{kind}", args=[name]),
        "numbers": numbers,
        "home": owner_node(picture.nodes, destination),
        "is_starred": str(destination) in favourites_of(request.user),
        "tab": tab,
        "tabs": [(each, label) for each, (label, kinds, _) in TABS.items() if kind in kinds],
        "window": window,
        "tab_template": f"destinations/tabs/{tab or 'overview'}.html",
        **TABS[tab][2](request, picture, stats, window),
    }
    return render(request, "destinations/destination.html", context)


def _overview(
    request: HttpRequest, picture: BrokerSnapshot, stats: DestinationStats, window: charts_history.ChartWindow
) -> dict[str, Any]:
    is_queue = stats.destination.kind is DestinationKind.QUEUE
    shown = [COLUMNS[each] for each in COLUMNS if is_queue or each not in ("DeadLetterCount", "DequeueRate")]
    numbers = numbers_of(picture, stats)
    return {
        "columns": [(column, numbers[column.name]) for column in shown if column.is_jmx],
        "oldest": _oldest(stats),
        "gone_since": consumer_gone_since([stats]).get(stats.destination),
        "chart": chart_of(request, window, stats.destination),
    }


def _oldest(stats: DestinationStats) -> str:
    """Return the age of a queue's first message as text; "" for an empty queue."""
    if not stats.destination.is_queue or not stats.QueueSize:
        return ""
    try:
        found = gateway().run(gateway().admin.peers.oldest([stats.destination]))
    except BrokerError:
        return ""
    came = found.get(stats.destination)
    return number_format.format_duration(max(0, int(time.time() - came / 1000))) if came else ""


def _consumers(request: HttpRequest, picture: BrokerSnapshot, stats: DestinationStats, window: Any) -> dict[str, Any]:
    nodes = picture.nodes
    found = consumers_of(current_connections(), stats.destination)
    return {
        "consumers": [(peer, each, node_of_connection(nodes, peer.stats.id)) for peer, each in found],
        "several": len(nodes) > 1,
    }


def _producers(request: HttpRequest, picture: BrokerSnapshot, stats: DestinationStats, window: Any) -> dict[str, Any]:
    return {"producers": producers_of(current_connections(), stats.destination)}


def _routing(request: HttpRequest, picture: BrokerSnapshot, stats: DestinationStats, window: Any) -> dict[str, Any]:
    found, sees = gateway().definitions(), pattern_filter(request.user)
    feeders = feeds_into(stats.destination, found)
    return {
        "feeders": [each for each in feeders if is_visible(each.definition, sees)],
        "unnamed": sum(not is_visible(each.definition, sees) for each in feeders),
        "selectors": _cached_selectors(stats.destination),
    }


def _cached_selectors(destination: Destination) -> list[tuple[str, datetime]]:
    """Return the selectors of a queue's past consumers with the time of their last use."""
    if not destination.is_queue:
        return []
    found = gateway().selectors_of(destination)
    return [(selector, datetime.fromtimestamp(used / 1000, UTC)) for selector, used in found.items()]


def _policy(request: HttpRequest, picture: BrokerSnapshot, stats: DestinationStats, window: Any) -> dict[str, Any]:
    definitions = visible_definitions(gateway().definitions(), pattern_filter(request.user))
    entry = policy_of(definitions, stats.destination)
    if entry is None:
        return {"policy": None}
    options = non_default_values(entry) | {name: f"{value} (no effect)" for name, value in entry.options}
    return {"policy": entry, "options": options}


def _history(
    request: HttpRequest, picture: BrokerSnapshot, stats: DestinationStats, window: charts_history.ChartWindow
) -> dict[str, Any]:
    if not request.GET.get("window") and window.is_live:
        window = charts_history.ChartWindow.read({"window": "24h"}, time.time())
    may_read = has_permission(request.user, Permission.AUDIT)
    changes = AuditEntry.objects.filter(object=str(stats.destination))[:MAX_CHANGES] if may_read else ()
    return {
        "window": window,
        "chart": chart_of(request, window, stats.destination),
        **_latency(window, stats.destination),
        "changes": changes,
        "may_read_changes": may_read,
    }


def _latency(window: charts_history.ChartWindow, destination: Destination) -> dict[str, Any]:
    """Return the acknowledgement latency from the rollups: by consumer and over time."""
    rollups = rollup_history.rollups()
    width = window.resolution.step if window.is_rolled_up else width_for(window.start, window.end, time.time())
    points = rollups.points(window.start, window.end, width, str(destination))
    series = rollup_history.delays_over_time(points)
    plot = (
        Plot("delays", LATENCY_TITLE, charts.lines(series.pop("at"), series, "milliseconds")) if series["at"] else None
    )
    return {"delays": rollup_history.delays(rollups, window.start, window.end, width, destination), "delays_plot": plot}


def _issues(request: HttpRequest, picture: BrokerSnapshot, stats: DestinationStats, window: Any) -> dict[str, Any]:
    return delivery_issues(stats)


#: Names of tabs in URLs of former versions.
FORMER_TABS = {"losses": "issues"}

_BOTH = frozenset({"queue", "topic"})
_Tab = Callable[[HttpRequest, BrokerSnapshot, DestinationStats, charts_history.ChartWindow], dict[str, Any]]
#: Tabs: name in the URL, label, kinds of destinations, and the function that loads the context.
TABS: dict[str, tuple[str, frozenset[str], _Tab]] = {
    "": ("Overview", _BOTH, _overview),
    "consumers": ("Consumers", _BOTH, _consumers),
    "producers": ("Producers", _BOTH, _producers),
    "routing": ("Routing", _BOTH, _routing),
    "policy": ("Policy", _BOTH, _policy),
    "issues": ("Delivery issues", frozenset({"queue"}), _issues),
    "history": ("History", _BOTH, _history),
}
