"""Consumes, for clients of this node, from logs that other nodes own.

The home decides what they get; here they hold it, and what they acknowledge is removed by this node's own commits. The
account of what they hold, by log and number, is what a new home is told.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.errors import RequestRefused
from brokerapp.nodes.links.protocol import ConsumerIdentity, PeerMessageType, pack
from brokerapp.store import PendingWrite

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

#: Entries told of in one word: bounds how long a link is busy with one.
ENTRIES_AT_ONCE = 500


@dataclass(slots=True)
class OutboundAccount:
    """Of one log: who consumes it from here, and what they hold."""

    #: Who does, and whether a home may be told: not before the store has the log.
    consumers: dict[Subscription, bool] = field(default_factory=dict)
    unacked: dict[int, tuple[Subscription, LogEntry]] = field(default_factory=dict)
    credited_seqs: set[int] = field(
        default_factory=set
    )  #: of what is held, acknowledged, so that more may be given for it

    def release(self, number: int) -> bool:
        """It is held no longer; whether it was."""
        self.credited_seqs.discard(number)
        return self.unacked.pop(number, None) is not None


class OutboundConsumers:
    """Keeps our clients' consumers of logs owned elsewhere, and what they have unacknowledged."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership, self.session = broker, ownership, ownership.session
        self._numbers = itertools.count(1)
        self._keys: dict[Subscription, int] = {}
        self._by_key: dict[int, Subscription] = {}
        self._accounts: dict[str, OutboundAccount] = defaultdict(OutboundAccount)
        self._undelivered: dict[Subscription, deque[LogEntry]] = {}  # what came and their clients cannot take yet
        self._due: dict[Subscription, None] = {}  # who may be able to take some of that now
        self._served: set[Subscription] = set()  # whose last messages came from other owners

    # -- consumers

    def attach(self, subscription: Subscription, log: MessageLog) -> None:
        """One of ours consumes a log that is at home elsewhere, or nowhere for a moment."""
        consumers = self._accounts[log.name].consumers
        if subscription in consumers:
            return
        consumers[subscription] = False
        if log not in subscription.logs:
            subscription.logs.append(log)
        if subscription not in self._keys:
            key = self._keys[subscription] = next(self._numbers)
            self._by_key[key] = subscription
        subscription.has_remote_logs = True

        def stored(*_: Any) -> None:  # the log, which may be declared by what was on its way there
            account = self._accounts.get(log.name)
            if account is not None and subscription in account.consumers:
                account.consumers[subscription] = True
                self._send_attach(subscription, log)

        self._broker.commits.submit(PendingWrite(callback=stored))

    def _on_attach_confirmed(self, subscription: Subscription, epoch: int, home: str, refusal: str) -> None:
        """The home took the consumer, or did not."""
        client: Client = subscription.client
        if not refusal and self._ownership.members.epoch == epoch and self._ownership.is_linked(home):
            subscription.takeover = None
        if refusal and client.subscriptions.get(subscription.name) is subscription:
            self._broker.subscriptions.end(client, subscription)
            self._broker.replies.refuse(client, RequestRefused(refusal), None)

    def _send_attach(self, subscription: Subscription, log: MessageLog) -> None:
        """Tell the home, if there is one that hears us: else it is told when it does."""
        home = self._ownership.owner_of(log.name)
        if home != self._ownership.session and self._ownership.is_linked(home):
            facts = (self._keys[subscription], log.name, self._attach_arguments(subscription, home))
            then = partial(self._on_attach_confirmed, subscription, self._ownership.members.epoch, home)
            self._ownership.propagation.request([home], PeerMessageType.ATTACH, facts, then)

    def _attach_arguments(self, subscription: Subscription, home: str) -> dict[str, Any]:
        """What a home needs to know of a consumer."""
        selector, client = subscription.selector, subscription.client
        accounts = [account for name, account in self._accounts.items() if self._ownership.owner_of(name) == home]
        held = sum(
            holder is subscription and number not in account.credited_seqs
            for account in accounts
            for number, (holder, _) in account.unacked.items()
        )
        crossing, claim = isinstance(selector, BridgeEligibility), subscription.takeover
        return {
            "name": subscription.name, "client_id": client.client_id, "prefetch": subscription.prefetch,
            "destinations": [str(each) for each in subscription.destinations],
            "credit": subscription.prefetch - held, "priority": subscription.priority,
            "exclusive": subscription.exclusive, "selector": selector.text if selector is not None else None,
            "crossing": _pack_eligibility(selector) if crossing else None, "bridge": client.bridge,
            "claim": (claim.groups, claim.leads_to) if claim is not None else None,
        }  # fmt: skip

    def detach(self, subscription: Subscription, log: MessageLog) -> None:
        """It consumes that log no longer; what it held was given back before."""
        account = self._accounts[log.name]
        account.consumers.pop(subscription, None)
        self._ownership.send_to_owner(log.name, PeerMessageType.DETACH, self._keys[subscription], log.name)
        if came := self._drop_undelivered(subscription, log.name):
            self._requeue(log.name, came, seen=False)

    def _drop_undelivered(self, subscription: Subscription, log: str) -> list[LogEntry]:
        """What came of a log and its client does not have yet."""
        came = self._undelivered.get(subscription, ())
        if found := [each for each in came if each.log == log]:
            self._undelivered[subscription] = deque(each for each in came if each.log != log)
        return found

    def drop_consumer(self, subscription: Subscription, log: str) -> None:
        """It consumes that log no longer, but others: as many as it holds of it it may be given of those."""
        account = self._accounts[log]
        held = [entry for holder, entry in account.unacked.values() if holder is subscription]
        self.give_credit(subscription, [each for each in held if each.seq not in account.credited_seqs])

    def known_consumers(self, log: MessageLog) -> Iterable[Subscription]:
        """Those of a log that are known here: all of one that is at home here, of others our own clients'."""
        if not log.is_remote:
            return log.consumers
        account = self._accounts.get(log.name)
        return account.consumers if account is not None else ()

    def has_consumers(self, log: str) -> bool:
        """Whether one of ours consumes this log, which is at home elsewhere."""
        account = self._accounts.get(log)
        return account is not None and bool(account.consumers)

    def forget(self, subscription: Subscription) -> None:
        """It is over."""
        self._undelivered.pop(subscription, None)
        self._due.pop(subscription, None)
        self._served.discard(subscription)
        key = self._keys.pop(subscription, None)
        if key is not None:
            del self._by_key[key]

    def on_log_removed(self, log: str) -> None:
        """The log is no more, with all it held."""
        for subscription in self._accounts[log].consumers if log in self._accounts else ():
            self.drop_consumer(subscription, log)
            self._drop_undelivered(subscription, log)
        account = self._accounts.pop(log, None)
        for subscription in account.consumers if account is not None else ():
            if log in [each.name for each in subscription.logs]:
                subscription.detach_log(next(each for each in subscription.logs if each.name == log))
        for subscription in self._undelivered:  # what it held of that log, wherever it was owned, no longer counts
            self.drain(subscription)

    # -- what comes

    def on_delivery(self, session: str, key: int, name: str, entries: Sequence[LogEntry]) -> None:
        """The home gives us these, see remote_deliveries.py."""
        if self._ownership.owner_of(name) != session:
            return  # it is the home no longer: the new one knows only what we have told it
        subscription = self._by_key.get(key)
        account = self._accounts[name]
        if subscription is None or subscription not in account.consumers:
            self._ownership.send(session, PeerMessageType.REQUEUED, name, [each.seq for each in entries], False)
            return
        account.unacked.update((each.seq, (subscription, each)) for each in entries)
        if damaged := [each for each in entries if each.message.is_damaged]:  # as this node read them back itself
            entries = [each for each in entries if not each.message.is_damaged]
            self._dead_letter_damaged(subscription, name, damaged)
        self._undelivered.setdefault(subscription, deque()).extend(entries)
        self.drain(subscription)

    def _dead_letter_damaged(self, subscription: Subscription, name: str, entries: Sequence[LogEntry]) -> None:
        """Let what the store damaged be dead letters; the owner may send others in their place."""
        self.give_credit(subscription, entries)
        for entry in entries:
            self._broker.dead_letters.fail_damaged(self._broker.queues[name], entry)

    def drain(self, subscription: Subscription) -> None:
        """Have what owners sent for a consumer delivered in the next round, as far as it can be."""
        if self._undelivered.get(subscription):
            self._due[subscription] = None
            self._ownership.request_dispatch()

    def deliver_due(self) -> None:
        """Deliver what owners sent to consumers here.

        Only while this node is sure to be a member: else an owner may have given it to another consumer by now.
        """
        due, self._due = self._due, {}
        for subscription in due:
            if self._is_turn_of_local_logs(subscription):
                self.drain(subscription)
            elif subscription.started and not subscription.client.is_socket_full:
                self._deliver(subscription)

    def _is_turn_of_local_logs(self, subscription: Subscription) -> bool:
        """Whether logs that this node owns come first this time, so that none starves beside those of other owners."""
        if subscription not in self._served:
            return False
        self._served.discard(subscription)
        return any(log.ready for log in subscription.logs if not log.is_remote)

    def _deliver(self, subscription: Subscription) -> None:
        """Deliver as much as the prefetch of the consumer allows: each owner grants it a prefetch of its own."""
        came = self._undelivered.get(subscription, ())
        has_limit = subscription.ack_mode != "auto"
        count = min(len(came), max(subscription.credit, 0)) if has_limit else len(came)
        if count:
            self._served.add(subscription)
        for name, entries in _by_log([came.popleft() for _ in range(count)]).items():
            self._write(subscription, name, entries)

    def _write(self, subscription: Subscription, name: str, entries: list[LogEntry]) -> None:
        delivery, client = self._broker.dispatcher, subscription.client
        client.delivered_count += len(entries)
        subscription.delivered_count += len(entries)
        delivery.wake(client)
        if subscription.ack_mode != "auto":
            subscription.credit -= len(entries)
            client.sink.deliver(subscription, entries, delivery.ack_ids(subscription, entries))
            return
        client.sink.deliver(subscription, entries, ())
        self.give_credit(subscription, entries)
        self.settle(entries, client)

    # -- what becomes of it

    def give_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None:
        """It may be given as many more of the same logs."""
        self._change_credit(subscription, entries, 1)

    def take_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None:
        """It holds them again, as a transaction came to nothing."""
        self._change_credit(subscription, entries, -1)

    def _change_credit(self, subscription: Subscription, entries: Iterable[LogEntry], sign: int) -> None:
        counts: dict[str, int] = defaultdict(int)
        for entry in entries:
            if (account := self._accounts.get(entry.log)) is not None and entry.seq in account.unacked:
                (account.credited_seqs.add if sign > 0 else account.credited_seqs.discard)(entry.seq)
                counts[self._ownership.owner_of(entry.log)] += sign
        for home, count in counts.items():
            self._ownership.send(home, PeerMessageType.CREDIT, self._keys.get(subscription, 0), count)

    def settle(self, entries: Sequence[LogEntry], client: Client) -> None:
        """They are acknowledged: the store removes them, then their homes know."""

        def done(*_: Any) -> None:
            for name, some in _by_log(entries).items():
                self.on_settled(name, some, client)

        self._broker.commits.submit(PendingWrite(settles=[each for each in entries if each.seq], callback=done))

    def on_settled(self, name: str, entries: Sequence[LogEntry], client: Client | None) -> None:
        """The store has removed them, as this client acknowledged them; None: they went otherwise, and were counted."""
        account = self._accounts[name]
        for entry in entries:
            account.release(entry.seq)
        log = self._broker.queues.get(name)
        if log is None:
            return
        consumer = ConsumerIdentity(client.client_id, client.bridge) if client is not None else None
        if consumer is not None:
            self._broker.dispatcher.count_acknowledged(log, entries)
        if not log.is_remote:  # it came home meanwhile
            self._ownership.inbound_consumers.remove_settled(log, entries, consumer)
            return
        numbers = [each.seq for each in entries]
        self._ownership.send_to_owner(name, PeerMessageType.SETTLED, name, consumer, numbers)

    def requeue(self, name: str, entries: Sequence[LogEntry]) -> None:
        """Their consumer is gone: they return to their place, flagged."""
        self._requeue(name, entries, seen=True)

    def _requeue(self, name: str, entries: Sequence[LogEntry], *, seen: bool) -> None:
        account = self._accounts[name]
        back = [each for each in entries if account.release(each.seq)]
        if seen:
            self._record_redelivery(name, back)
        if back:
            self._ownership.send_to_owner(name, PeerMessageType.REQUEUED, name, [each.seq for each in back], seen)

    def _record_redelivery(self, name: str, entries: Iterable[LogEntry]) -> None:
        """The home, or the one to come, flags these, also when it does not hear what became of them."""
        for entry in entries:
            self._broker.commits.record_redelivery(entry, entry.redelivery_count + 1)
        if self._ownership.owner_of(name) == self.session:
            self._ownership.handoff_in.on_requeued(name, entries)

    # -- homes change

    def announce_all(self, log: MessageLog) -> None:
        """A new home, or one that hears us again, must know who consumes a log from here, and what is held."""
        account = self._accounts.get(log.name)
        if account is None:
            return
        for subscription, may_be_told in account.consumers.items():
            if may_be_told:
                self._send_attach(subscription, log)
        by_key: dict[int, list[LogEntry]] = defaultdict(list)
        for subscription, entry in account.unacked.values():
            by_key[self._keys.get(subscription, 0)].append(entry)
        for key, entries in by_key.items():
            for start in range(0, len(entries), ENTRIES_AT_ONCE):
                packed = pack(entries[start : start + ENTRIES_AT_ONCE])
                self._ownership.send_to_owner(log.name, PeerMessageType.UNACKED, key, log.name, packed)

    def on_handed_off(self, log: MessageLog) -> None:
        """A log leaves for another home: its consumers among our clients stay what they are, with what they hold."""
        account = self._accounts[log.name]
        for subscription in [each for each in log.consumers if not each.owner_session]:
            account.consumers[subscription] = True
            subscription.has_remote_logs = True
            if subscription not in self._keys:
                key = self._keys[subscription] = next(self._numbers)
                self._by_key[key] = subscription
        for client in self._broker.clients.values():
            for subscription in client.subscriptions.values():
                if subscription.browse_cursor is None:
                    self._add_unacked(account, log, subscription, subscription.unacked.values())
        transactions = (each for client in self._broker.clients.values() for each in client.transactions.values())
        for unit in (
            *transactions,
            *self._broker.flow_control.waiting(),
        ):  # what is acknowledged in them was credited then
            for subscription, _, entry in unit.settled:
                account.credited_seqs |= self._add_unacked(account, log, subscription, (entry,))

    @staticmethod
    def _add_unacked(
        account: OutboundAccount, log: MessageLog, subscription: Subscription, entries: Iterable[LogEntry]
    ) -> set[int]:
        found = {each.seq: (subscription, each) for each in entries if each.log == log.name and each.seq}
        account.unacked.update(found)
        return set(found)

    def on_taken_over(self, log: MessageLog) -> OutboundAccount:
        """A log comes home: its consumers among our clients, and what they hold, are as any here from now on.

        What came and their clients do not have yet waits in the log again.
        """
        account = self._accounts.pop(log.name, None) or OutboundAccount()
        for came in self._undelivered.values():
            for entry in [each for each in came if each.log == log.name]:
                came.remove(entry)
                account.release(entry.seq)
        return account


def _pack_eligibility(crossing: BridgeEligibility) -> list[Any]:
    """What makes the like of it at a home; what it counts it counts there."""
    return [crossing.to, crossing.message_ttl, list(crossing.path), list(crossing.consumers), crossing.yields]


def _by_log(entries: Iterable[LogEntry]) -> dict[str, list[LogEntry]]:
    found: dict[str, list[LogEntry]] = {}
    for entry in entries:
        found.setdefault(entry.log, []).append(entry)
    return found
