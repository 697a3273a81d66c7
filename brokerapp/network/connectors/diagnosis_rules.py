"""Explain what keeps a message or destination from being forwarded over a bridge. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokerapp.engine.routing.bridge_eligibility import BridgeDecision
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import BridgeConnectionState
from brokerapp.network.bridge.demand import DemandSubscription
from brokerapp.network.options.destination_filter import exclusion_reason
from brokerapp.network.options.options import ConnectorOptions


@dataclass(frozen=True, slots=True)
class DiagnosisFacts:
    """The facts about a bridge connection and a destination from which a diagnosis is made."""

    terms: ConnectorOptions
    destination: Destination
    state: BridgeConnectionState
    last_error: str
    demand: Sequence[DemandSubscription] = ()  #: what the bridge consumes that takes the destination in
    refusal: str = ""  #: what either broker says that refuses it, for now
    is_suppressed: bool = False  #: it stands aside for another bridge that leads to the same consumers
    is_paused: bool = False  #: the queue gives out nothing
    decision: BridgeDecision | None = None  #: of one message, if one is asked about
    is_unacked: bool = False  #: that message is with a consumer already
    has_no_credit: bool = False  #: the bridge holds as many as it may
    preferred_count: int = 0  #: consumers here with a higher priority, which could take messages now


def block_reason(facts: DiagnosisFacts) -> str:
    """Why nothing, or not this message, crosses; "": it does."""
    return next((said for said in (_connection_reason(facts), _demand_reason(facts), _queue_reason(facts)) if said), "")


def _connection_reason(facts: DiagnosisFacts) -> str:
    if facts.state is BridgeConnectionState.CONNECTED:
        return ""
    if facts.state is BridgeConnectionState.STOPPED:
        return "the connector is stopped"
    return f"not connected: {facts.last_error or facts.state}"


def _demand_reason(facts: DiagnosisFacts) -> str:
    if facts.refusal:
        return facts.refusal
    if facts.demand:
        return (
            "another bridge serves the same consumers (suppressDuplicateQueueSubscriptions)"
            if facts.is_suppressed
            else ""
        )
    if said := exclusion_reason(facts.terms, facts.destination):
        return said
    if facts.terms.static_bridge:
        return "the bridge is static and does not include it (staticallyIncludedDestinations)"
    return f"no consumers within {_bridges(facts.terms.consumer_ttl)} of the remote broker (consumerTTL)"


def _bridges(count: int) -> str:
    return "one bridge" if count == 1 else f"{count} bridges"


def _queue_reason(facts: DiagnosisFacts) -> str:
    if facts.is_unacked:
        return "a consumer holds it"
    if facts.is_paused:
        return "the queue is paused"
    if facts.decision is not None and facts.decision is not BridgeDecision.CROSSES:
        return str(facts.decision)
    if facts.preferred_count:
        return f"{facts.preferred_count} local consumers have priority (decreaseNetworkConsumerPriority)"
    if facts.has_no_credit:
        return f"the bridge has {facts.terms.prefetch_size} unacknowledged messages (prefetchSize)"
    return ""
