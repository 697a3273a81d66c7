"""Show nodes, network connectors and cluster of the broker; change connectors; diagnose forwarding."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import DemandStats
from console.access import redaction
from console.access.permissions import Permission, pattern_filter, permission_required, require_everywhere, visible
from console.access.roles import everything
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.topology import bridge_diagnosis, connector_changes, node_changes
from console.topology.clusters import cluster_context, cluster_now
from console.topology.diagram import build_diagram, configured_properties, connector_card
from console.topology.forms import LISTS, ConnectorForm
from console.topology.node_facts import NodeSummary, shard_count
from console.topology.refusals import refusals_shown
from console.ui.formatting.number_format import format_integer, pluralize_count

#: What happened to a connector after an action.
ACTION_RESULTS = {"start": "started", "stop": "stopped"}


@require_GET
@permission_required(Permission.SEE)
def topology(request: HttpRequest) -> HttpResponse:
    """Show the broker diagram, connectors, incoming bridges, the cluster and the nodes."""
    picture = mirror().current()
    sees_all = visible(request.user) is everything
    found = build_diagram(settings.SLUICE.broker_name, picture.nodes, picture.cluster, sees_all)
    context = {
        "diagram": found, "trouble": picture.trouble, "sees_all": sees_all,
        "nodes": [NodeSummary(each) for each in picture.nodes], "shard_count": shard_count(picture.nodes),
        "node_rows": [(NodeSummary(each), found.standings[each.node]) for each in picture.nodes],
        **cluster_context(cluster_now(), sees_all),
    }  # fmt: skip
    return render(request, "topology/topology.html", context)


@require_GET
@permission_required(Permission.SEE)
def connector(request: HttpRequest, connector: str) -> HttpResponse:
    """Show a connector: its bridges, configuration and subscriptions, and the forwarding diagnosis."""
    name = connector
    found = connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    sees, knows = visible(request.user), pattern_filter(request.user)
    card = connector_card(found, sees is everything)
    demand = gateway().run(gateway().admin.networks.demand(name))
    shown = {
        way: [each for each in wanted if knows(Destination.parse(each.destination))] for way, wanted in demand.items()
    }
    context = {
        "card": card, "sees_all": sees is everything, "properties": configured_properties(found.definition),
        "lists": [(label, *_visible_patterns(found.definition.get(field, ()), knows)) for field, label, _ in LISTS],
        "demand": [(remote, direction, wanted, len(demand[remote, direction]) - len(wanted))
                   for (remote, direction), wanted in shown.items()],
        "why": _diagnosis_context(request, name, demand),
        "names": sorted(str(each) for each in mirror().current().stats if sees(each))[:500],
    }  # fmt: skip
    return render(request, "topology/connector.html", context)


def _visible_patterns(texts: Any, knows: Any) -> tuple[list[str], int]:
    """Return the patterns that the user may see, and the number of others."""
    shown = [each for each in texts if knows(Destination.parse(each))]
    return shown, len(texts) - len(shown)


def _diagnosis_context(
    request: HttpRequest, name: str, demand: dict[tuple[str, str], list[DemandStats]]
) -> dict[str, Any] | None:
    asked = request.GET.get("destination", "").strip()
    if not asked:
        return None
    try:
        return bridge_diagnosis.diagnose(request, name, asked, request.GET.get("seq", ""), demand)
    except StoreUnavailable:
        raise
    except BrokerError as refused:
        return {"error": redaction.redact_sentence(str(refused), visible(request.user)), "destination": asked}


# -- changes


@require_http_methods(["GET", "POST"])
@permission_required(Permission.BRIDGE)
def edit(request: HttpRequest, connector: str = "") -> HttpResponse:
    """Create or change a connector. It takes effect immediately."""
    require_everywhere(request, Permission.BRIDGE)
    former = (
        connector_changes.get_connector_or_404(connector, connector_changes.network_stats()).definition
        if connector
        else None
    )
    form, error = ConnectorForm.of(former) if former else ConnectorForm(), ""
    if request.method == "POST":
        form = ConnectorForm.read(request.POST, former)
        try:
            connector_changes.put_connector(request, form.definition(former), is_new=former is None)
            messages.success(request, f"Connector {form.name} saved.")
            return redirect("connector", connector=form.name)
        except StoreUnavailable:
            raise
        except BrokerError as refused:
            error = str(refused)
    context = {"form": form, "former": former, "error": error}
    return render(request, "topology/connector_form.html", context, status=400 if error else 200)


@require_POST
@permission_required(Permission.BRIDGE)
def switch(request: HttpRequest, connector: str, action: str) -> HttpResponse:
    """Start or stop a connector."""
    if action not in ("start", "stop"):
        raise Http404(f"Unknown connector action {action}.")
    connector_changes.switch_connector(request, connector, action)
    messages.success(request, f"Connector {connector} {ACTION_RESULTS[action]}.")
    return (
        redirect("topology") if request.POST.get("back") == "topology" else redirect("connector", connector=connector)
    )


@require_http_methods(["GET", "POST"])
@permission_required(Permission.BRIDGE)
def remove(request: HttpRequest, connector: str) -> HttpResponse:
    """Remove a connector, after its name was entered as confirmation."""
    require_everywhere(request, Permission.BRIDGE)
    found = connector_changes.get_connector_or_404(connector, connector_changes.network_stats())
    if request.method == "POST" and request.POST.get("typed") == connector:
        connector_changes.switch_connector(request, connector, "remove")
        messages.success(request, f"Connector {connector} removed. In-transit messages were requeued.")
        return redirect("topology")
    context = {"card": connector_card(found), "failed": request.method == "POST"}
    return render(request, "topology/connector_remove.html", context, status=400 if context["failed"] else 200)


@require_POST
@permission_required(Permission.NODES)
def drain(request: HttpRequest, node: str, action: str) -> HttpResponse:
    """Drain a node, or let a drained one serve again."""
    if action not in ("drain", "end-drain"):
        raise Http404(f"Unknown node action {action}.")
    with refusals_shown(request):
        if action == "drain":
            done = node_changes.drain_node(request, node)
            queues, clients = (
                pluralize_count(done.owned_count, "queue"),
                pluralize_count(done.released_count, "client"),
            )
            messages.success(request, f"Node {node} drained: {queues} handed over, {clients} moved.")
        else:
            node_changes.end_drain(request, node)
            messages.success(request, f"Node {node} serves clients again.")
    return redirect("topology")


@require_POST
@permission_required(Permission.NODES)
def rebalance(request: HttpRequest) -> HttpResponse:
    """Spread queues evenly over the nodes."""
    with refusals_shown(request):
        owned = node_changes.rebalance_nodes(request)
        counts = ", ".join(f"{name} {format_integer(count)}" for name, count in sorted(owned.items()))
        messages.success(request, f"Queues rebalanced. Queues of each node: {counts}.")
    return redirect("topology")
