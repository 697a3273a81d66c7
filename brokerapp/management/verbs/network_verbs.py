"""brokerctl's verbs for network connectors, and for bridges from other brokers."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from brokerapp.admin import BrokerAdmin
from brokerapp.management.verbs.declaration import Answer, Subparsers, add_verb
from brokerapp.model import JsonObject
from brokerapp.model.destination import Destination

if TYPE_CHECKING:  # its import takes longer than a verb that is about no network
    from brokerapp.model.network_stats import BridgeConnectionStats, BridgeStats, ConnectorStats, InboundBridgeStats


def add_network_verbs(verbs: Subparsers) -> None:
    """Add these verbs to brokerctl's."""
    add_verb(verbs, "networks", "list network connectors with their bridges, and bridges from other brokers")
    demand = add_verb(
        verbs, "network-demand", "list the subscriptions of a connector's bridges and their remote consumers"
    )
    demand.add_argument("connector", help="name of the connector")
    why = add_verb(verbs, "network-diagnosis", "show why messages of a destination are not forwarded over bridges")
    why.add_argument("destination", help="queue://NAME or topic://NAME")
    why.add_argument("--message", type=int, help="sequence number of a message in the queue, as shown by browse")
    put = add_verb(verbs, "network-put", "create or replace a connector")
    put.add_argument(
        "definition",
        type=_definition,
        help='JSON such as {"name": "to-b", "uri": "static:(tcp://b:61613)", "excluded": ["queue://private.>"], '
        '"options": {"duplex": "true"}}; "password": null keeps the present one',
    )
    for verb, text in (
        ("network-start", "start a connector and its bridges"),
        ("network-stop", "stop a connector until it is started or the broker restarts"),
        ("network-remove", "delete a connector"),
    ):
        add_verb(verbs, verb, text).add_argument("connector", help="name of the connector")


def _definition(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as wrong:
        raise ArgumentTypeError(f"invalid JSON: {wrong}") from None
    if not isinstance(value, dict):
        raise ArgumentTypeError("expected a JSON object")
    return value


async def _networks(admin: BrokerAdmin, _args: Namespace) -> Answer:
    stats = await admin.networks.stats()
    lines = [line for each in stats.connectors for line in _connector_lines(each)]
    lines += [_incoming_line(each) for each in stats.incoming]
    return stats.to_json(), lines or ["No network connectors or bridges"]


def _connector_lines(connector: ConnectorStats) -> Iterator[str]:
    yield f"{connector.name}: {connector.uri}{', duplex' if connector.duplex else ''}"
    yield from (f"    warning: {each}" for each in connector.warnings)
    for way in connector.ways:
        yield f"    {_way_line(way)}"
        yield from (f"        {_bridge_line(each)}" for each in way.bridges)


def _way_line(way: BridgeConnectionStats) -> str:
    from brokerapp.model.network_stats import BridgeConnectionState

    where = (
        f"{way.remote} at {way.address} over {way.protocol}"
        if way.state is BridgeConnectionState.CONNECTED
        else ", ".join(way.addresses)
    )
    error = f": {way.last_error}" if way.last_error and way.state is not BridgeConnectionState.CONNECTED else ""
    return f"{way.state} {where}{error}"


def _bridge_line(bridge: BridgeStats) -> str:
    told = {
        "forwarded": bridge.forwarded, "in flight": bridge.under_way, "queued": bridge.queued,
        "dropped by TTL": bridge.dropped_by_ttl, "duplicates dropped": bridge.duplicates, "rejected": bridge.refused,
        "subscriptions": bridge.demand,
    }  # fmt: skip
    numbers = ", ".join(f"{number:,} {what}" for what, number in told.items() if number or what == "forwarded")
    return f"{bridge.source or '?'} -> {bridge.target or '?'}: {numbers}"


def _incoming_line(incoming: InboundBridgeStats) -> str:
    return (
        f"from {incoming.broker} at {incoming.address}: {incoming.received:,} received, "
        f"{incoming.duplicates:,} duplicates dropped, {incoming.given:,} dispatched to it, including advisories"
    )


async def _demand(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.networks.demand(args.connector)
    result = [
        {"remote": remote, "direction": direction, "demand": list(map(asdict, demand))}
        for (remote, direction), demand in found.items()
    ]
    lines = [
        f"{direction} {remote}  {each.destination}  priority {each.priority}, {each.forwarded:,} forwarded, for "
        + ("static inclusion" if each.static else ", ".join(each.consumers))
        for (remote, direction), demand in found.items()
        for each in demand
    ]
    return result, lines or [f"No subscriptions of the bridges of {args.connector}"]


async def _diagnosis(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.networks.diagnose(Destination.parse(args.destination), args.message)
    lines = [f"{each['connector']} to {each['remote']}: {each['reason'] or 'forwarded'}" for each in found]
    return found, lines or ["No network connectors"]


async def _put(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.put_connector(args.definition)
    return {"put": args.definition.get("name")}, [f"Connector {args.definition.get('name')} saved"]


async def _start(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.start(args.connector)
    return {"started": args.connector}, [f"Connector {args.connector} started"]


async def _stop(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.stop(args.connector)
    return {"stopped": args.connector}, [f"Connector {args.connector} stopped"]


async def _remove(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.remove_connector(args.connector)
    return {"removed": args.connector}, [f"Connector {args.connector} deleted"]


NETWORK_VERBS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]] = {
    "networks": _networks,
    "network-demand": _demand,
    "network-diagnosis": _diagnosis,
    "network-put": _put,
    "network-start": _start,
    "network-stop": _stop,
    "network-remove": _remove,
}
