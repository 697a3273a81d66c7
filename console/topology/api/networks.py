"""REST operations on network connectors with their bridges, incoming bridges, and the cluster."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.model.destination import Destination
from console.access.permissions import pattern_filter, visible
from console.access.roles import Permission, Sees, everything
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.broker.gateway import gateway
from console.routing.api.preview import ClauseOut
from console.topology import bridge_diagnosis, connector_changes
from console.topology.clusters import cluster_now
from console.topology.forms import LISTS

router = Router(tags=["networks"])
#: Sums over all destinations: null for users who do not see all.
_SUMS = ("forwarded", "forwarded_bytes", "dropped_by_ttl", "duplicates", "refused", "under_way", "queued", "demand")
_SUMS_OF_INCOMING = ("received", "duplicates", "given", "dropped_by_ttl")


class BridgeOut(Schema):
    """One direction of a bridge connection. Sums are null for users who do not see all destinations."""

    direction: str
    source: str
    target: str
    forwarded: int | None
    forwarded_bytes: int | None
    dropped_by_ttl: int | None
    duplicates: int | None
    refused: int | None
    under_way: int | None
    queued: int | None
    demand: int | None


class BridgeConnectionOut(Schema):
    """A connector's connection to a broker. Times are Unix times in milliseconds; 0 = never."""

    addresses: list[str]
    state: str
    remote: str
    address: str
    protocol: str
    connected_ms: int
    last_error: str
    last_error_ms: int
    attempts: int
    next_attempt_ms: int
    connections: int
    bridges: list[BridgeOut]


class ConnectorOut(Schema):
    """A network connector without its password."""

    name: str
    uri: str
    running: bool
    duplex: bool
    definition: dict[str, Any]
    ways: list[BridgeConnectionOut]
    warnings: list[str]  #: ineffective or risky settings; for users who see all destinations


class InboundBridgeOut(Schema):
    """An incoming bridge of another broker."""

    broker: str
    connection: str
    client_id: str
    address: str
    user: str
    connected_ms: int
    received: int | None
    duplicates: int | None
    given: int | None
    dropped_by_ttl: int | None


class NetworksOut(Schema):
    """The network connectors and incoming bridges of this broker."""

    connectors: list[ConnectorOut]
    incoming: list[InboundBridgeOut]


class ConnectorIn(RequestBody):
    """A connector's settings; `options` by ActiveMQ's names. A password of null is unchanged."""

    uri: str
    dynamically_included: list[str] = []
    statically_included: list[str] = []
    excluded: list[str] = []
    durable: list[str] = []
    options: dict[str, str | bool | int | None] = {}


class ConnectorCreateIn(ConnectorIn):
    """A new connector with its name."""

    name: str


class ConnectorSwitchIn(RequestBody):
    """Return whether a connector runs."""

    running: bool


class DemandOut(Schema):
    """A subscription of a bridge, and the consumers that it serves."""

    remote: str
    direction: str
    destination: str
    selector: str
    priority: int
    durable: bool
    static: bool
    path: list[str]
    consumers: list[str]
    forwarded: int


class DiagnosisQuery(Schema):
    """The message: any sent to the destination, or the one with this number in the queue."""

    destination: str
    seq: str = ""


class BridgeReasonOut(Schema):
    """A condition of forwarding; `lets` is null if it is unknown or does not decide."""

    lets: bool | None = Field(validation_alias="allows")
    sentence: str
    clause: ClauseOut | None


class BridgeReasonsOut(Schema):
    """The conditions of one connection, up to the first that prevents forwarding."""

    remote: str
    addresses: list[str]
    reasons: list[BridgeReasonOut]


@operation(router, "GET", "", Permission.SEE, response=NetworksOut)
def list_networks(request: HttpRequest) -> Any:
    """List network connectors with their bridges, and incoming bridges."""
    found, sees, knows = (
        connector_changes.network_stats().to_json(),
        visible(request.user),
        pattern_filter(request.user),
    )
    for connector in found["connectors"]:
        connector["definition"] = _visible_definition(connector["definition"], knows)
    if sees is not everything:
        for connector in found["connectors"]:
            connector["warnings"] = []  # they name destinations
        bridges = [each for connector in found["connectors"] for way in connector["ways"] for each in way["bridges"]]
        for each in bridges:
            each.update(dict.fromkeys(_SUMS))
        for each in found["incoming"]:
            each.update(dict.fromkeys(_SUMS_OF_INCOMING))
    return found


def _visible_definition(definition: dict[str, Any], knows: Sees) -> dict[str, Any]:
    """Return a definition without the names that the user must not know."""
    lists = [*(field for field, _, _ in LISTS), "durable"]
    return {
        name: [text for text in value if knows(Destination.parse(text))] if name in lists else value
        for name, value in definition.items()
    }


@operation(router, "POST", "/connectors", Permission.BRIDGE, response={201: ConnectorOut})
def create_connector(request: HttpRequest, wanted: ConnectorCreateIn) -> Any:
    """Create a connector. It takes effect immediately."""
    connector_changes.put_connector(request, _definition(wanted.name, wanted), is_new=True)
    return Status(201, _connector_out(wanted.name))


@operation(router, "PUT", "/connectors/{name:name}/running", Permission.BRIDGE, response=ConnectorOut)
def switch_connector(request: HttpRequest, name: str, wanted: ConnectorSwitchIn) -> Any:
    """Start or stop a connector."""
    connector_changes.switch_connector(request, name, "start" if wanted.running else "stop")
    return _connector_out(name)


@operation(router, "GET", "/connectors/{name:name}/demand", Permission.SEE, response=list[DemandOut])
def list_demand(request: HttpRequest, name: str) -> Any:
    """List the subscriptions of a connector's bridges, of destinations that the user may see."""
    connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    knows = pattern_filter(request.user)
    found = gateway().run(gateway().admin.networks.demand(name))
    return [
        {"remote": remote, "direction": direction, **asdict(each), "selector": each.condition}
        for (remote, direction), wanted in found.items()
        for each in wanted
        if knows(Destination.parse(each.destination))
    ]


@operation(router, "GET", "/connectors/{name:name}/why", Permission.SEE, response=list[BridgeReasonsOut])
def explain_bridge(request: HttpRequest, name: str, query: Annotated[DiagnosisQuery, Query()]) -> Any:
    """Explain why a message is or is not forwarded by a connector."""
    connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    demand = gateway().run(gateway().admin.networks.demand(name))
    return [
        {"remote": way.remote, "addresses": way.addresses, "reasons": found}
        for way, found in bridge_diagnosis.diagnose(request, name, query.destination, query.seq, demand)["answers"]
    ]


@operation(router, "PUT", "/connectors/{name:name}", Permission.BRIDGE, response=ConnectorOut)
def change_connector(request: HttpRequest, name: str, wanted: ConnectorIn) -> Any:
    """Replace a connector. It takes effect immediately."""
    connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    connector_changes.put_connector(request, _definition(name, wanted), is_new=False)
    return _connector_out(name)


@operation(router, "DELETE", "/connectors/{name:name}", Permission.BRIDGE, response={204: None})
def delete_connector(request: HttpRequest, name: str) -> Any:
    """Delete a connector. In-transit messages are requeued."""
    connector_changes.switch_connector(request, name, "remove")
    return Status(204, None)


@operation(router, "GET", "/cluster", Permission.SEE, response=dict[str, Any])
def get_cluster(request: HttpRequest) -> Any:
    """Get the cluster as this broker sees it: members, master, and available operations."""
    found = cluster_now()
    if found is None:
        raise Http404("This broker is not part of a cluster.")
    sees = visible(request.user)
    names = [each for each in found.to_json()["temporaries"] if sees is everything]
    return found.to_json() | {"temporaries": names}


def _definition(name: str, wanted: ConnectorIn) -> dict[str, Any]:
    lists = {field: value for field in ("dynamically_included", "statically_included", "excluded", "durable")
             if (value := getattr(wanted, field))}  # fmt: skip
    return {"name": name, "uri": wanted.uri, **lists, "options": wanted.options}


def _connector_out(name: str) -> dict[str, Any]:
    return next(each for each in connector_changes.network_stats().to_json()["connectors"] if each["name"] == name)
