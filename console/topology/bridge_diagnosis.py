"""Diagnose why a message is or is not forwarded by a connector, within the user's permissions."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import DemandStats
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import options_of
from console.access.masking import mask_message
from console.access.permissions import Permission, require
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.topology import connector_changes
from console.topology.bridge_reasons import BridgeQuestion, bridge_reasons

Demand = dict[tuple[str, str], list[DemandStats]]


def diagnose(request: HttpRequest, name: str, destination: str, seq: str, demand: Demand) -> dict[str, Any]:
    """Explain for each connection whether a message is forwarded: the one with the number `seq`, or any sent there.

    Raises BrokerError, PermissionDenied, Http404.
    """
    connector = connector_changes.get_connector_or_404(name, connector_changes.network_stats())
    target = Destination.parse(destination)
    require(request, Permission.SEE, target)
    asked = _read_message(request, target, seq) if seq else BridgeQuestion(target)
    terms, _ = options_of(NetworkConnector.from_json(connector.definition))
    stats = mirror().current().stats.get(target)
    bridging = sum(
        1 for (_, direction), wanted in demand.items() for each in wanted if direction == "out" and _is(each, target)
    )
    own = max(0, stats.ConsumerCount - bridging) if stats else 0
    answers = [
        (way, bridge_reasons(asked, terms, way, demand.get((way.remote, "out"), []), own)) for way in connector.ways
    ]
    return {"destination": destination, "seq": seq, "answers": answers, "asked": asked}


def _is(demand: DemandStats, target: Destination) -> bool:
    return demand.destination == str(target)


def _read_message(request: HttpRequest, queue: Destination, seq: str) -> BridgeQuestion:
    if not (seq.isdecimal() and len(seq) < 19):
        raise RequestRefused(f"invalid message number {seq[:40]!r}")
    require(request, Permission.BROWSE, queue)
    found = gateway().message(queue, int(seq)).messages
    if not found:
        raise RequestRefused(f"message {seq} not found in {queue}: it was forwarded, consumed or deleted")
    return BridgeQuestion(queue, mask_message(request.user, found[0], queue).headers, found[0].path)
