"""Collect the facts about a destination, or a message of a queue, that explain why it is not forwarded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from brokerapp.core.ports import Commits, Destinations
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selective_dispatch import SelectorEvaluation
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeDecision
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.network.bridge.connection import OUTBOUND, BridgeConnection
from brokerapp.network.bridge.demand import DemandSubscription
from brokerapp.network.connectors.connectors import ConnectorManager
from brokerapp.network.connectors.diagnosis_rules import DiagnosisFacts, block_reason
from brokerapp.network.options.destination_filter import is_listed


class BridgeDiagnosis:
    """Collects the facts by which diagnosis_rules.py decides what blocks a destination or a message."""

    def __init__(self, connections: ConnectorManager, *, queues: Destinations, commits: Commits) -> None:
        self._connections, self._queues, self._commits = connections, queues, commits

    async def diagnose(self, destination: str, seq: int | None = None) -> list[dict[str, Any]]:
        """Return for each connection: connector, remote, crosses, and the reason where it does not.

        Of all messages of a destination, or of the one with this number in a queue. Raises RequestRefused.
        """
        target = Destination.parse(destination)
        entry = await self._read_entry(target, seq) if seq is not None else None
        found = []
        for connector in self._connections:
            for way in connector.connections:
                said = block_reason(self._collect_facts(way, target, entry))
                remote = way.remote or str(way.addresses[0])
                found.append(
                    {"connector": connector.options.name, "remote": remote, "crosses": not said, "reason": said}
                )
        return found

    async def _read_entry(self, queue: Destination, seq: int) -> LogEntry:
        """Return the message of this number. Raises RequestRefused."""
        log = self._queues.find(queue)
        done = asyncio.get_running_loop().create_future()
        self._commits.read(log.name, seq - 1, 1, done.set_result)
        entries = [log_entry_of(log.name, each) for each in await done if each.seq == seq]
        if not entries:
            raise RequestRefused(f"message {seq} is no longer in {queue}")
        return entries[0]

    def _collect_facts(self, way: BridgeConnection, target: Destination, entry: LogEntry | None) -> DiagnosisFacts:
        wanted = _matching_demand(way, target)
        log = (
            self._queues.get(str(target))
            if target.kind in (DestinationKind.QUEUE, DestinationKind.TEMP_QUEUE)
            else None
        )
        own = [each for each in _subscriptions(way) if _covers(each, target)]
        serving = [each for each in own if log is None or each in log.consumers]
        refused = _refusal_of_all(way, wanted, target)
        facts = DiagnosisFacts(way.terms, target, way.state, way.last_error, wanted, refused, bool(own) and not serving)
        if log is None or not serving:
            return facts
        return DiagnosisFacts(
            way.terms, target, way.state, way.last_error, wanted, _refusal_of_message(way, entry) or refused,
            is_paused=log.is_suspended,
            decision=None if entry is None else _decide(log, serving[0], entry),
            is_unacked=entry is not None and _is_unacked(log, entry),
            has_no_credit=all(not each.credit for each in serving),
            preferred_count=sum(each.is_ready and each.priority > serving[0].priority for each in log.consumers),
        )  # fmt: skip


def _matching_demand(way: BridgeConnection, target: Destination) -> list[DemandSubscription]:
    demand = [wanted for each in way.bridges if each.name == OUTBOUND for wanted in each.demand.subscriptions.values()]
    return [
        each
        for each in demand
        if each.destination.kind is target.kind
        and matches(each.destination.name, target.name)
        and (each.static or not is_listed(target, way.terms.excluded))
    ]


def _refusal_of_all(way: BridgeConnection, wanted: Sequence[DemandSubscription], target: Destination) -> str:
    """Return the reason for which the remote broker refuses all of these; "": some cross."""
    reasons = [
        bridge.block_reason(each, target) for bridge in way.bridges if bridge.name == OUTBOUND for each in wanted
    ]
    return reasons[0] if reasons and all(reasons) else ""


def _refusal_of_message(way: BridgeConnection, entry: LogEntry | None) -> str:
    """Return the reason for which the remote broker refuses this message while it takes others; "": none."""
    if entry is None:
        return ""
    return next(
        (said for each in way.bridges if each.name == OUTBOUND and (said := each.refusal_reason(entry.message.id))), ""
    )


def _subscriptions(way: BridgeConnection) -> list[Subscription]:
    return list(way.local_connection.client.subscriptions.values()) if way.local_connection is not None else []


def _covers(subscription: Subscription, target: Destination) -> bool:
    if subscription.bridge_eligibility is not None and subscription.bridge_eligibility.excludes(target.name):
        return False
    return any(each.kind is target.kind and matches(each.name, target.name) for each in subscription.destinations)


def _is_unacked(log: MessageLog, entry: LogEntry) -> bool:
    return any(
        held.seq == entry.seq for each in log.consumers for held in each.unacked.values() if held.log == log.name
    )


def _decide(log: MessageLog, subscription: Subscription, entry: LogEntry) -> BridgeDecision:
    asks = SelectorEvaluation(entry, log.destination)
    if log.bridge_filter is None or subscription.bridge_eligibility is None:
        return BridgeDecision.CROSSES
    return log.bridge_filter.decide(subscription.bridge_eligibility, entry, asks, log.policy.bridge_filter)
