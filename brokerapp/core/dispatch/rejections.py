"""Redeliver, dead-letter or drop messages that clients reject (NACK)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import NackCommand
from brokerapp.model.destination import Destination
from brokerapp.tracing.schema import BRIDGE_REFUSE, DROP

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AcknowledgementsPort,
        BrokerContext,
        DeadLettersPort,
        Destinations,
        DispatchQueue,
        Placement,
        RedeliveryPort,
        Replies,
    )


class Rejections:
    """Takes rejected and expired messages back from clients."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        acknowledgements: AcknowledgementsPort,
        dead_letters: DeadLettersPort,
        dispatcher: DispatchQueue,
        placement: Placement,
        queues: Destinations,
        redelivery: RedeliveryPort,
        replies: Replies,
    ) -> None:
        self._acknowledgements, self._counters, self._dispatcher = acknowledgements, context.counters, dispatcher
        self._dead_letters, self._redelivery, self._replies = dead_letters, redelivery, replies
        self._placement, self._queues = placement, queues

    def reject(self, client: Client, nack: NackCommand) -> None:
        """Redeliver, dead-letter or drop a message that a client cannot use. Raises RequestRefused."""
        if nack.transaction is not None:
            client.transaction(nack.transaction)
            raise RequestRefused("a NACK cannot be part of a transaction")
        held = self._acknowledgements.find_unacked(client, nack.ack_id, nack.subscription)
        if held is not None:
            subscription, key = held
            if subscription.browse_cursor is not None:
                raise RequestRefused("a message that was browsed cannot be rejected (NACK)")
            if nack.reason:
                self._reject_if_in_dlq(subscription.unacked[key])
            self._reject(client, subscription, key, nack.reason)
        self._replies.confirm_after(client, nack.receipt)

    def _reject_if_in_dlq(self, entry: LogEntry) -> None:
        """Raise RequestRefused for what a bridge cannot pass on where dead letters lie: it would be dropped."""
        log = self._queues.get(entry.log)
        if is_from_log(entry) and log is not None and self._dead_letters.is_in_dlq(log, entry):
            raise RequestRefused(
                f"what a bridge cannot pass on of {log.destination} stays there: dead letters that fail are dropped"
            )

    def expire_remote(self, client: Client, ack_id: str) -> None:
        """Expire a message that another broker of the cluster found expired before its consumer there had it."""
        held = client.find_unacked(ack_id, None)
        if held is None:
            return
        subscription, key = held
        entry = subscription.unacked.pop(key)
        self._acknowledgements.grant_credit(subscription, (entry,))
        if (log := self._queues.get(entry.log)) is not None:
            self._dead_letters.expire(log, entry, client.client_id)

    def _reject(self, client: Client, subscription: Subscription, key: str, reason: str) -> None:
        """Take a message back that failed; straight from a topic it is dropped, as in ActiveMQ."""
        entry = subscription.unacked.pop(key)
        subscription.credit += 1
        if subscription.has_remote_logs:
            self._placement.outbound_settlement.give_credit(subscription, (entry,))
        self._dispatcher.resume(subscription)
        cause = f"rejected by {client.client_id} ({reason or 'NACK'})"
        if client.bridge:
            self._dead_letters.record(BRIDGE_REFUSE, time.time_ns() // 1000, entry, client.client_id, reason or None)
        if is_from_log(entry):
            log, again = self._queues[entry.log], not reason
            self._redelivery.reject(log, entry, client.client_id, cause, may_redeliver=again)
        elif isinstance(entry, RemoteLogEntry):
            entry.owner.reject(entry)
        else:
            self._counters.of(Destination.parse(entry.shown_destination)).InFlightCount -= 1
            self._dead_letters.record(DROP, time.time_ns() // 1000, entry, client.client_id, cause)
