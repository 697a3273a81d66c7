"""Networks: connectors to other brokers with their bridges, bridges of others to this one, and the cluster."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema, Status

from brokerapp.model.destination import Destination
from console.access.permissions import pattern_filter, visible
from console.access.roles import Sees, Verb, everything
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.broker.gateway import gateway
from console.routing.api.preview import ClauseOut, clause_out
from console.topology import bridge_diagnosis, connector_changes
from console.topology.clusters import cluster_now
from console.topology.forms import LISTS

router = Router(tags=["networks"])
#: What is a sum over all destinations: nothing for who does not see all.
_SUMS = ("forwarded", "forwarded_bytes", "dropped_by_ttl", "duplicates", "refused", "under_way", "queued", "demand")
_SUMS_OF_INCOMING = ("received", "duplicates", "given", "dropped_by_ttl")


class BridgeOut(Schema):
    """One direction of a way. Sums are null for who does not see all destinations."""

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
    """A connector's way to a broker. Times are milliseconds since the epoch; 0: never."""

    addresses: list[str]
    state: str
    remote: str
    address: str
    connected_ms: int
    last_error: str
    last_error_ms: int
    attempts: int
    next_attempt_ms: int
    connections: int
    bridges: list[BridgeOut]


class ConnectorOut(Schema):
    """A network connector, without its password."""

    name: str
    uri: str
    running: bool
    duplex: bool
    definition: dict[str, Any]
    ways: list[BridgeConnectionOut]
    warnings: list[str]  #: what has no effect, or goes wrong with what it bridges; for who sees all destinations


class InboundBridgeOut(Schema):
    """A bridge of another broker to this one."""

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
    """The place of this broker in its network."""

    connectors: list[ConnectorOut]
    incoming: list[InboundBridgeOut]


class ConnectorIn(RequestBody):
    """What a connector shall be; properties by ActiveMQ's names in `options`. A password of null stays as it is."""

    uri: str
    dynamically_included: list[str] = []
    statically_included: list[str] = []
    excluded: list[str] = []
    durable: list[str] = []
    options: dict[str, str | bool | int | None] = {}


class ConnectorCreateIn(ConnectorIn):
    """A connector with its name."""

    name: str


class ConnectorSwitchIn(RequestBody):
    """Whether it has its bridges."""

    running: bool


class DemandOut(Schema):
    """One subscription of a bridge, and for whom it is there."""

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
    """The message: one sent to the destination, or the one under this number in the queue."""

    destination: str
    seq: str = ""


class BridgeReasonOut(Schema):
    """One thing that decides; `lets` is null where it cannot be told."""

    lets: bool | None
    sentence: str
    clause: ClauseOut | None


class BridgeReasonsOut(Schema):
    """What decides about one way, up to the first thing that keeps the message here."""

    remote: str
    addresses: list[str]
    reasons: list[BridgeReasonOut]


@operation(router, "GET", "", Verb.SEE, response=NetworksOut)
def list_networks(request: HttpRequest) -> Any:
    """Connectors to other brokers with their bridges, and the bridges of other brokers to this one."""
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
    """A definition without the names that somebody may not know of."""
    lists = [*(field for field, _, _ in LISTS), "durable"]
    return {
        name: [text for text in value if knows(Destination.parse(text))] if name in lists else value
        for name, value in definition.items()
    }


@operation(router, "POST", "/connectors", Verb.BRIDGE, response={201: ConnectorOut})
def create_connector(request: HttpRequest, wanted: ConnectorCreateIn) -> Any:
    """Have a new connector; it takes effect at once."""
    connector_changes.put_connector(request, _definition(wanted.name, wanted), is_new=True)
    return Status(201, _connector_out(wanted.name))


@operation(router, "PUT", "/connectors/{name:name}/running", Verb.BRIDGE, response=ConnectorOut)
def switch_connector(request: HttpRequest, name: str, wanted: ConnectorSwitchIn) -> Any:
    """Start or stop a connector."""
    connector_changes.switch_connector(request, name, "start" if wanted.running else "stop")
    return _connector_out(name)


@operation(router, "GET", "/connectors/{name:name}/demand", Verb.SEE, response=list[DemandOut])
def list_demand(request: HttpRequest, name: str) -> Any:
    """What the bridges of a connector consume, and for whom; of destinations one may know of."""
    connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    knows = pattern_filter(request.user)
    found = gateway().run(gateway().admin.networks.demand(name))
    return [
        {"remote": remote, "direction": direction, **asdict(each)}
        for (remote, direction), wanted in found.items()
        for each in wanted
        if knows(Destination.parse(each.destination))
    ]


@operation(router, "GET", "/connectors/{name:name}/why", Verb.SEE, response=list[BridgeReasonsOut])
def explain_bridge(request: HttpRequest, name: str, query: Annotated[DiagnosisQuery, Query()]) -> Any:
    """Why a message crosses the bridges of a connector, or does not."""
    connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    demand = gateway().run(gateway().admin.networks.demand(name))
    answers = bridge_diagnosis.diagnose(request, name, query.destination, query.seq, demand)["answers"]
    return [
        {
            "remote": way.remote, "addresses": way.addresses,
            "reasons": [
                {"lets": each.allows, "sentence": each.sentence, "clause": each.clause and clause_out(each.clause)}
                for each in found
            ],
        }
        for way, found in answers
    ]  # fmt: skip


@operation(router, "PUT", "/connectors/{name:name}", Verb.BRIDGE, response=ConnectorOut)
def change_connector(request: HttpRequest, name: str, wanted: ConnectorIn) -> Any:
    """Have a connector be this; it takes effect at once."""
    connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    connector_changes.put_connector(request, _definition(name, wanted), is_new=False)
    return _connector_out(name)


@operation(router, "DELETE", "/connectors/{name:name}", Verb.BRIDGE, response={204: None})
def delete_connector(request: HttpRequest, name: str) -> Any:
    """Have a connector no more. What its bridges held goes back to its queues."""
    connector_changes.switch_connector(request, name, "remove")
    return Status(204, None)


@operation(router, "GET", "/cluster", Verb.SEE, response=dict[str, Any])
def get_cluster(request: HttpRequest) -> Any:
    """The cluster as this broker sees it: its members, its master, and what may be changed now."""
    found = cluster_now()
    if found is None:
        raise Http404("This broker is in no cluster.")
    sees = visible(request.user)
    names = [each for each in found.to_json()["temporaries"] if sees is everything]
    return found.to_json() | {"temporaries": names}


def _definition(name: str, wanted: ConnectorIn) -> dict[str, Any]:
    lists = {field: value for field in ("dynamically_included", "statically_included", "excluded", "durable")
             if (value := getattr(wanted, field))}  # fmt: skip
    return {"name": name, "uri": wanted.uri, **lists, "options": wanted.options}


def _connector_out(name: str) -> dict[str, Any]:
    return next(each for each in connector_changes.network_stats().to_json()["connectors"] if each["name"] == name)
