"""Redeliver, dead-letter or drop messages that clients reject (NACK)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log, partition
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import AckBatchCommand, GiveUpCommand, NackCommand
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

    def settle(self, client: Client, acks: AckBatchCommand) -> None:
        """Acknowledge and reject messages; an ACK or NACK that is refused does not stop the others."""
        rejects = acks.rejects
        if rejects is None:
            self._acknowledgements.acknowledge(client, acks)
            return
        places: Sequence[int] = range(len(rejects))
        if _may_be_in_any_order(client, acks):
            places = sorted(places, key=rejects.__getitem__)
        for is_nack, alike in groupby(places, key=rejects.__getitem__):
            part = acks.part(list(alike))
            if is_nack:
                self._reject_all(client, part)
            else:
                self._acknowledgements.acknowledge(client, part)

    def _reject_all(self, client: Client, nacks: AckBatchCommand) -> None:
        """Redeliver, dead-letter or drop messages that a client cannot use."""
        taken: dict[Subscription, list[LogEntry]] = {}
        receipts: list[str] = []
        for ack_id, named, receipt in nacks.rows:
            try:
                held = self._find(client, ack_id, named)
            except RequestRefused as error:
                self._replies.refuse(client, error, receipt)
                continue
            if held is not None:
                subscription, key = held
                taken.setdefault(subscription, []).append(subscription.unacked.pop(key))
            if receipt is not None:
                receipts.append(receipt)
        for subscription, entries in taken.items():
            self._take_back(client, subscription, entries, _cause_of(client, "NACK"))
        for receipt in receipts:
            self._replies.confirm_after(client, receipt)

    def reject(self, client: Client, nack: NackCommand) -> None:
        """Redeliver, dead-letter or drop a message that a client cannot use. Raises RequestRefused."""
        if nack.transaction is not None:
            client.transaction(nack.transaction)
            raise RequestRefused("a NACK cannot be part of a transaction")
        held = self._find(client, nack.ack_id, nack.subscription)
        if held is not None:
            subscription, key = held
            if nack.reason:
                self._reject_if_in_dlq(subscription.unacked[key])
            cause = _cause_of(client, nack.reason or "NACK")
            entries = [subscription.unacked.pop(key)]
            self._take_back(client, subscription, entries, cause, reason=nack.reason)
        self._replies.confirm_after(client, nack.receipt)

    def give_up(self, client: Client, given_up: GiveUpCommand) -> None:
        """Let messages fail that a client tried to use often enough itself, or expire those it found expired.

        The broker's own redelivery policy, where the queue has one, may let them come again, as in ActiveMQ.
        """
        held: dict[Subscription, list[LogEntry]] = {}
        for ack_id in given_up.ack_ids:
            if (found := client.find_unacked(ack_id, None)) is not None:
                held.setdefault(found[0], []).append(found[0].unacked.pop(found[1]))
        for subscription, entries in held.items():
            if given_up.is_expired:
                self._expire(client, subscription, entries)
            else:
                cause = given_up.cause or _cause_of(client, "poison acknowledgement")
                self._take_back(client, subscription, entries, cause)
        self._replies.confirm_after(client, given_up.receipt)

    def _expire(self, client: Client, subscription: Subscription, entries: Sequence[LogEntry]) -> None:
        """Expire messages that a client found expired, by its clock.

        What never expires failed: it would be found expired again however often it came.
        """
        late, others = partition(entries, lambda entry: entry.message.expires > 0 and is_from_log(entry))
        self._acknowledgements.grant_credit(subscription, late)
        for entry in late:
            if (log := self._queues.get(entry.log)) is not None:
                self._dead_letters.expire(log, entry, client.client_id)
        if others:
            self._take_back(client, subscription, others, _cause_of(client, "expired for its client"))

    def _find(self, client: Client, ack_id: str, named: str | None) -> tuple[Subscription, str] | None:
        """Return who holds a message, and its key; None when nothing is left to do. Raises RequestRefused."""
        held = self._acknowledgements.find_unacked(client, ack_id, named)
        if held is not None and held[0].browse_cursor is not None:
            raise RequestRefused("a message that was browsed cannot be rejected (NACK)")
        return held

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

    def _take_back(
        self, client: Client, subscription: Subscription, entries: Sequence[LogEntry], cause: str, *, reason: str = ""
    ) -> None:
        """Take messages back that failed; straight from a topic they are dropped, as in ActiveMQ.

        With the `reason` of a bridge they are not tried again.
        """
        subscription.credit += len(entries)
        if subscription.has_remote_logs:
            self._placement.outbound_settlement.give_credit(subscription, entries)
        self._dispatcher.resume(subscription)
        now_us = time.time_ns() // 1000
        stored: dict[str, list[LogEntry]] = {}
        for entry in entries:
            if client.bridge:
                self._dead_letters.record(BRIDGE_REFUSE, now_us, entry, client.client_id, reason or None)
            if is_from_log(entry):
                stored.setdefault(entry.log, []).append(entry)
            elif isinstance(entry, RemoteLogEntry):
                entry.owner.reject(entry)
            else:
                self._counters.of(Destination.parse(entry.shown_destination)).InFlightCount -= 1
                self._dead_letters.record(DROP, now_us, entry, client.client_id, cause)
        for name, alike in stored.items():
            self._redelivery.reject(self._queues[name], alike, client.client_id, cause, may_redeliver=not reason)


def _cause_of(client: Client, what: str) -> str:
    return f"rejected by {client.client_id} ({what})"


def _may_be_in_any_order(client: Client, acks: AckBatchCommand) -> bool:
    """Whether it makes no difference what is done first: each names another message, and none includes others."""
    if acks.receipts is not None or acks.subscriptions is not None or len(set(acks.ack_ids)) < len(acks.ack_ids):
        return False
    held_by = {client.by_key.get(ack_id.partition("-")[0]) for ack_id in acks.ack_ids}
    return all(each is not None and each.ack_mode != "client" for each in held_by)
