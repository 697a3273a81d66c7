"""Settles what our clients got from logs that other nodes own.

What they acknowledge is removed from the store by this node; the owner is told then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from brokerapp.core.ports import AccountingPort, BrokerContext, Destinations
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.delivery.outbound_accounts import OutboundAccounts, entries_by_log
from brokerapp.nodes.delivery.remote_unacked import RemoteUnacked
from brokerapp.nodes.links.handoff_state import HandoffState
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import ConsumerIdentity, PeerMessageType
from brokerapp.store import PendingWrite


class OutboundSettlement:
    """Tells owners of logs what became of the messages that they sent here."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        accounts: OutboundAccounts,
        queues: Destinations,
        accounting: AccountingPort,
        unacked: RemoteUnacked,
        handoff: HandoffState,
    ) -> None:
        self._commits, self._peers, self._accounts = context.commits, peers, accounts
        self._queues, self._accounting = queues, accounting
        self._unacked, self._handoff = unacked, handoff

    def give_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None:
        """Let owners send a consumer as many messages more of the same logs."""
        self._accounts.give_credit(subscription, entries)

    def take_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None:
        """Take the credit back, as the transaction of the consumer was rolled back."""
        self._accounts.take_credit(subscription, entries)

    def settle(self, entries: Sequence[LogEntry], client: Client) -> None:
        """Remove acknowledged entries from the store, then tell their owners."""

        def on_committed(*_: Any) -> None:
            for name, some in entries_by_log(entries).items():
                self.on_settled(name, some, client)

        settles = [each for each in entries if each.seq]
        self._commits.submit(PendingWrite(settles=settles, callback=on_committed))

    def on_settled(self, name: str, entries: Sequence[LogEntry], client: Client | None) -> None:
        """Tell the owner that the store has removed entries.

        `client` acknowledged them; None: they were removed otherwise, and counted.
        """
        account = self._accounts.of(name)
        for entry in entries:
            account.release(entry.seq)
        log = self._queues.get(name)
        if log is None:
            return
        consumer = ConsumerIdentity(client.client_id, client.bridge) if client is not None else None
        if consumer is not None:
            self._accounting.count_acknowledged(log, entries)
        if not log.is_remote:  # this node owns it by now
            self._unacked.remove_settled(log, entries, consumer)
            return
        numbers = [each.seq for each in entries]
        self._peers.send_to_owner(name, PeerMessageType.SETTLED, name, consumer, numbers)

    def requeue(self, name: str, entries: Sequence[LogEntry], *, seen: bool = True) -> None:
        """Return entries to their log; flagged as redelivered if a consumer may have `seen` them."""
        account = self._accounts.of(name)
        back = [each for each in entries if account.release(each.seq)]
        if seen:
            self._record_redelivery(name, back)
        if back:
            self._peers.send_to_owner(name, PeerMessageType.REQUEUED, name, [each.seq for each in back], seen)

    def _record_redelivery(self, name: str, entries: Sequence[LogEntry]) -> None:
        """Record deliveries in the store, for an owner that does not hear what became of the entries."""
        for entry in entries:
            self._commits.record_redelivery(entry, entry.redelivery_count + 1)
        if self._peers.owner_of(name) == self._peers.session:
            self._handoff.on_requeued(name, entries)
