"""Delivers what the owners of logs send to consumers of this node."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from brokerapp.core.ports import Destinations, DispatcherPort
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.delivery.outbound_accounts import OutboundAccount, OutboundAccounts, entries_by_log
from brokerapp.nodes.delivery.outbound_settlement import OutboundSettlement
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import DamagedMessages


class OutboundDeliveries:
    """Messages of other owners that our clients do not have yet."""

    def __init__(
        self,
        *,
        peers: Peers,
        accounts: OutboundAccounts,
        settlement: OutboundSettlement,
        queues: Destinations,
        dispatcher: DispatcherPort,
        dead_letters: DamagedMessages,
        request_dispatch: Callable[[], None],
    ) -> None:
        self._peers, self._accounts, self._settlement = peers, accounts, settlement
        self._queues, self._dispatcher, self._dead_letters = queues, dispatcher, dead_letters
        self._request_dispatch = request_dispatch
        self._undelivered: dict[Subscription, deque[LogEntry]] = {}  # what came and clients cannot take yet
        self._due: dict[Subscription, None] = {}  # whose clients may be able to take some of that now
        self._served: set[Subscription] = set()  # whose last messages came from other owners

    def on_delivery(self, session: str, key: int, name: str, entries: Sequence[LogEntry]) -> None:
        """Take entries that the owner of a log sends to a consumer, see remote_deliveries.py."""
        if self._peers.owner_of(name) != session:
            return  # it does not own the log any more: the new owner knows only what this node has told it
        subscription, account = self._accounts.with_key(key), self._accounts.of(name)
        if subscription is None or subscription not in account.consumers:
            self._peers.send(session, PeerMessageType.REQUEUED, name, [each.seq for each in entries], False)
            return
        account.unacked.update((each.seq, (subscription, each)) for each in entries)
        if damaged := [each for each in entries if each.message.is_damaged]:  # as this node read them itself
            entries = [each for each in entries if not each.message.is_damaged]
            self._dead_letter_damaged(subscription, name, damaged)
        self._undelivered.setdefault(subscription, deque()).extend(entries)
        self.drain(subscription)

    def _dead_letter_damaged(self, subscription: Subscription, name: str, entries: Sequence[LogEntry]) -> None:
        """Dead-letter what the store damaged; the owner may send others in its place."""
        self._accounts.give_credit(subscription, entries)
        for entry in entries:
            self._dead_letters.fail_damaged(self._queues[name], entry)

    def drain(self, subscription: Subscription) -> None:
        """Deliver to a consumer in the next round, as far as it can take messages."""
        if self._undelivered.get(subscription):
            self._due[subscription] = None
            self._request_dispatch()

    def drain_all(self) -> None:
        """Deliver to all consumers in the next round: a log is gone, and what they held of it counts no longer."""
        for subscription in self._undelivered:
            self.drain(subscription)

    def deliver_due(self) -> None:
        """Deliver what owners sent to consumers here.

        Only while this node is certain to be a member: else an owner may have sent it to another consumer by now.
        """
        due, self._due = self._due, {}
        for subscription in due:
            if self._is_turn_of_local_logs(subscription):
                self.drain(subscription)
            elif subscription.started and not subscription.client.is_socket_full:
                self._deliver(subscription)

    def _is_turn_of_local_logs(self, subscription: Subscription) -> bool:
        """Return whether logs of this node come first this time, so that none starves beside those of other owners."""
        if subscription not in self._served:
            return False
        self._served.discard(subscription)
        return any(log.ready for log in subscription.logs if not log.is_remote)

    def _deliver(self, subscription: Subscription) -> None:
        """Deliver as much as the prefetch of the consumer allows: each owner grants it a prefetch of its own."""
        undelivered = self._undelivered.get(subscription)
        if not undelivered:
            return
        has_limit = subscription.ack_mode != "auto"
        count = min(len(undelivered), max(subscription.credit, 0)) if has_limit else len(undelivered)
        if count:
            self._served.add(subscription)
        for entries in entries_by_log(undelivered.popleft() for _ in range(count)).values():
            self._write(subscription, entries)

    def _write(self, subscription: Subscription, entries: list[LogEntry]) -> None:
        client = subscription.client
        client.delivered_count += len(entries)
        subscription.delivered_count += len(entries)
        self._dispatcher.wake(client)
        if subscription.ack_mode != "auto":
            subscription.credit -= len(entries)
            client.sink.deliver(subscription, entries, self._dispatcher.ack_ids(subscription, entries))
            return
        client.sink.deliver(subscription, entries, ())
        self._accounts.give_credit(subscription, entries)
        self._settlement.settle(entries, client)

    # -- what is not to be delivered any more

    def drop(self, subscription: Subscription, log: str) -> list[LogEntry]:
        """Remove and return what came of a log and its client does not have yet."""
        undelivered = self._undelivered.get(subscription, ())
        if found := [each for each in undelivered if each.log == log]:
            self._undelivered[subscription] = deque(each for each in undelivered if each.log != log)
        return found

    def release_log(self, log: str, account: OutboundAccount) -> None:
        """Forget what came of a log that this node takes over: it waits in the log again."""
        for undelivered in self._undelivered.values():
            for entry in [each for each in undelivered if each.log == log]:
                undelivered.remove(entry)
                account.release(entry.seq)

    def forget(self, subscription: Subscription) -> None:
        """Forget a consumer that ended."""
        self._undelivered.pop(subscription, None)
        self._due.pop(subscription, None)
        self._served.discard(subscription)
