"""brokerctl's verbs about networks: connectors to other brokers, and the bridges of others to this one."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from brokerapp.admin import BrokerAdmin
from brokerapp.model.destination import Destination

if TYPE_CHECKING:  # its import takes longer than a verb that is about no network
    from brokerapp.model.network_stats import BridgeConnectionStats, BridgeStats, ConnectorStats, InboundBridgeStats

Answer = tuple[Any, list[str]]


def add_network_verbs(verbs) -> None:
    """Add these verbs to brokerctl's."""
    verbs.add_parser("networks", help="connectors to other brokers with their bridges, and bridges from others")
    demand = verbs.add_parser("network-demand", help="what the bridges of a connector consume, and for whom")
    demand.add_argument("connector", help="its name")
    why = verbs.add_parser(
        "network-why", help="what keeps the messages of a destination, or one, from crossing bridges"
    )
    why.add_argument("destination", help="queue://NAME or topic://NAME")
    why.add_argument("--message", type=int, help="the number of a message of the queue, as browse shows it")
    put = verbs.add_parser("network-put", help="create or replace a connector")
    put.add_argument(
        "definition",
        type=_definition,
        help='JSON such as {"name": "to-b", "uri": "static:(tcp://b:61613)", "excluded": ["queue://private.>"], '
        '"options": {"duplex": "true"}}; "password": null keeps the one there is',
    )
    for verb, text in (
        ("network-start", "let a connector have its bridges"),
        ("network-stop", "take its bridges down until it is started, or its broker is"),
        ("network-remove", "have no connector of this name any more"),
    ):
        verbs.add_parser(verb, help=text).add_argument("connector", help="its name")


def _definition(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as wrong:
        raise ArgumentTypeError(f"no JSON: {wrong}") from None
    if not isinstance(value, dict):
        raise ArgumentTypeError("a JSON object is expected")
    return value


async def _networks(admin: BrokerAdmin, _args: Namespace) -> Answer:
    stats = await admin.networks.stats()
    lines = [line for each in stats.connectors for line in _connector_lines(each)]
    lines += [_incoming_line(each) for each in stats.incoming]
    return stats.to_json(), lines or ["this broker is in no network"]


def _connector_lines(connector: ConnectorStats) -> Iterator[str]:
    yield f"{connector.name}: {connector.uri}{', duplex' if connector.duplex else ''}"
    yield from (f"    warning: {each}" for each in connector.warnings)
    for way in connector.ways:
        yield f"    {_way_line(way)}"
        yield from (f"        {_bridge_line(each)}" for each in way.bridges)


def _way_line(way: BridgeConnectionStats) -> str:
    from brokerapp.model.network_stats import BridgeConnectionState

    where = (
        f"{way.remote} at {way.address}" if way.state is BridgeConnectionState.CONNECTED else ", ".join(way.addresses)
    )
    error = f": {way.last_error}" if way.last_error and way.state is not BridgeConnectionState.CONNECTED else ""
    return f"{way.state} {where}{error}"


def _bridge_line(bridge: BridgeStats) -> str:
    told = {
        "forwarded": bridge.forwarded, "under way": bridge.under_way, "queued": bridge.queued,
        "dropped by TTL": bridge.dropped_by_ttl, "duplicates stopped": bridge.duplicates, "refused": bridge.refused,
        "subscriptions": bridge.demand,
    }  # fmt: skip
    numbers = ", ".join(f"{number:,} {what}" for what, number in told.items() if number or what == "forwarded")
    return f"{bridge.source or '?'} -> {bridge.target or '?'}: {numbers}"


def _incoming_line(incoming: InboundBridgeStats) -> str:
    return (
        f"from {incoming.broker} at {incoming.address}: {incoming.received:,} received, "
        f"{incoming.duplicates:,} duplicates stopped, {incoming.given:,} given to it, advisories included"
    )


async def _demand(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.networks.demand(args.connector)
    result = [
        {"remote": remote, "direction": direction, "demand": list(map(asdict, demand))}
        for (remote, direction), demand in found.items()
    ]
    lines = [
        f"{direction} {remote}  {each.destination}  priority {each.priority}, {each.forwarded:,} forwarded, for "
        + ("whoever consumes" if each.static else ", ".join(each.consumers))
        for (remote, direction), demand in found.items()
        for each in demand
    ]
    return result, lines or [f"the bridges of {args.connector} consume nothing"]


async def _why(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.networks.why(Destination.parse(args.destination), args.message)
    lines = [f"{each['connector']} to {each['remote']}: {each['reason'] or 'it crosses'}" for each in found]
    return found, lines or ["this broker has no connectors to others"]


async def _put(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.put(args.definition)
    return {"put": args.definition.get("name")}, [f"there is a connector {args.definition.get('name')}"]


async def _start(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.start(args.connector)
    return {"started": args.connector}, [f"{args.connector} is started"]


async def _stop(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.stop(args.connector)
    return {"stopped": args.connector}, [f"{args.connector} is stopped"]


async def _remove(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.networks.remove(args.connector)
    return {"removed": args.connector}, [f"there is no connector {args.connector} any more"]


NETWORK_VERBS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]] = {
    "networks": _networks,
    "network-demand": _demand,
    "network-why": _why,
    "network-put": _put,
    "network-start": _start,
    "network-stop": _stop,
    "network-remove": _remove,
}
