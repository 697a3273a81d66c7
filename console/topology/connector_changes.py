"""Change network connectors for a page or the REST API: check permissions, write the audit log.

A connector may forward any destination: changing one needs the permission for all.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest

from brokerapp.errors import BrokerError, DefinitionRefused, RequestRefused
from brokerapp.model.network_stats import ConnectorStats, NetworkStats
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import options_of
from brokerapp.network.options.outbound_rules import OutboundRule
from console.access.permissions import Permission, require_everywhere
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror


def network_stats() -> NetworkStats:
    """Read the connectors and their bridges. Raises StoreUnavailable."""
    return gateway().run(gateway().admin.networks.stats())


def get_connector_or_404(name: str, stats: NetworkStats) -> ConnectorStats:
    """Return the connector of this name. Raises Http404."""
    found = next((each for each in stats.connectors if each.name == name), None)
    if found is None:
        raise Http404(f"Network connector {name} not found.")
    return found


def put_connector(request: HttpRequest, definition: Mapping[str, Any], *, is_new: bool) -> None:
    """Create a connector or replace the one of its name. Raises DefinitionRefused, PermissionDenied."""
    require_everywhere(request, Permission.BRIDGE)
    known = {each.name: each.definition for each in network_stats().connectors}
    name = str(definition.get("name", ""))
    if is_new and name in known:
        raise DefinitionRefused(f"network connector {name} already exists")
    _check_addresses(definition, known.get(name))
    action = "create connector" if is_new else "change connector"
    with trail.recording(request, action, name, before=known.get(name)) as change:
        gateway().run(gateway().admin.networks.put_connector(definition, settings.SLUICE.outbound))
        change.after = get_connector_or_404(name, network_stats()).definition
    _wait_for_mirror(lambda stats: any(each.name == name for each in stats.connectors))


def _check_addresses(definition: Mapping[str, Any], former: Mapping[str, Any] | None) -> None:
    """Raise RequestRefused for a new remote host that is not allowed.

    The node checks again whenever it connects. A host that is not found is no error: it may start later.
    """
    if former is not None and former.get("uri") == definition.get("uri"):
        return  # from a configuration file, or checked already
    rule = OutboundRule.read(settings.SLUICE.outbound)
    try:
        terms, _ = options_of(NetworkConnector("", str(definition.get("uri", ""))))
    except BrokerError:  # the broker reports the error
        return
    for each in terms.addresses:
        try:
            found = socket.getaddrinfo(each.host, each.port, type=socket.SOCK_STREAM)
        except OSError:
            continue
        for address in {info[4][0] for info in found}:
            try:
                rule.check(address)
            except RequestRefused as error:
                raise RequestRefused(f"uri: {each.host}: {error}") from error


def switch_connector(request: HttpRequest, name: str, action: str) -> None:
    """Start, stop or remove a connector. Raises RequestRefused, PermissionDenied, Http404."""
    require_everywhere(request, Permission.BRIDGE)
    former, admin = get_connector_or_404(name, network_stats()), gateway().admin.networks
    act = {"start": admin.start, "stop": admin.stop, "remove": admin.remove_connector}[action]
    with trail.recording(request, f"{action} connector", name, before=former.definition):
        gateway().run(act(name))
    _wait_for_mirror(lambda stats: all(_is_so(each, action) for each in stats.connectors if each.name == name))


def _is_so(connector: ConnectorStats, action: str) -> bool:
    return action != "remove" and connector.running is (action == "start")


def _wait_for_mirror(is_so: Any) -> None:
    """Wait briefly until the mirror shows the change."""
    mirror().wait_until(lambda picture: is_so(_all_of([node.network for node in picture.nodes if node.network])))


def _all_of(networks: Iterable[Mapping[str, Any]]) -> NetworkStats:
    """Collect the connectors of all nodes: the leader may change."""
    return NetworkStats([each for network in networks for each in NetworkStats.from_json(network).connectors])
