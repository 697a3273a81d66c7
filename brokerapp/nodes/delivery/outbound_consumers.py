"""Consumes, for clients of this node, from logs that other nodes own.

The owner decides what they get; here they hold it. A log that changes hands keeps its consumers: the next owner is told
of them, and of what they hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from brokerapp.core.ports import BrokerContext, Replies, SubscriptionsPort
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.errors import RequestRefused
from brokerapp.nodes.delivery.outbound_accounts import OutboundAccounts
from brokerapp.nodes.delivery.outbound_deliveries import OutboundDeliveries
from brokerapp.nodes.delivery.outbound_settlement import OutboundSettlement
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType, pack
from brokerapp.store import PendingWrite

#: Entries in one message to another node: bounds how long a link is busy with one.
BATCH_SIZE = 500


class OutboundConsumers:
    """Consumers of our clients at logs that other nodes own."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        requests: NodeRequests,
        accounts: OutboundAccounts,
        deliveries: OutboundDeliveries,
        settlement: OutboundSettlement,
        subscriptions: SubscriptionsPort,
        replies: Replies,
    ) -> None:
        self._commits, self._peers, self._requests = context.commits, peers, requests
        self._accounts, self._deliveries, self._settlement = accounts, deliveries, settlement
        self._subscriptions, self._replies = subscriptions, replies

    def attach(self, subscription: Subscription, log: MessageLog) -> None:
        """Consume from a log that another node owns, or none for a moment."""
        if subscription in self._accounts.of(log.name).consumers:
            return
        self._accounts.add_consumer(subscription, log, may_be_told=False)
        if log not in subscription.logs:
            subscription.logs.append(log)

        def on_stored(*_: Any) -> None:  # the log, which may be declared by what was on its way to the store
            account = self._accounts.find(log.name)
            if account is not None and subscription in account.consumers:
                account.consumers[subscription] = True
                self._send_attach(subscription, log)

        self._commits.submit(PendingWrite(callback=on_stored))

    def _send_attach(self, subscription: Subscription, log: MessageLog) -> None:
        """Tell the owner of a consumer, if there is a link to it: else it is told when there is."""
        owner = self._peers.owner_of(log.name)
        if owner != self._peers.session and self._peers.is_linked(owner):
            about = self._attach_arguments(subscription, owner)
            fields = (self._accounts.key_of(subscription), log.name, about)
            then = partial(self._on_attach_answered, subscription, log.name, self._peers.members.epoch, owner)
            self._requests.send([owner], PeerMessageType.ATTACH, fields, then)

    def _on_attach_answered(self, subscription: Subscription, log: str, epoch: int, owner: str, refusal: str) -> None:
        """Take the answer of an owner, or that its answer counts no more: then it is told of the consumer again."""
        client: Client = subscription.client
        if not refusal and self._peers.members.epoch == epoch and self._peers.is_linked(owner):
            subscription.takeover = None
            self._accounts.confirm(subscription, log)
        if refusal and client.subscriptions.get(subscription.name) is subscription:
            self._subscriptions.end(client, subscription)
            # another broker of the cluster has many subscriptions on its link, and must know which one it is
            receipt = subscription.name if client.cluster_member else None
            self._replies.refuse(client, RequestRefused(refusal), receipt)

    def when_known(self, subscription: Subscription, then: Callable[[], None]) -> None:
        """Call back when the owners of all logs of a consumer know it; at once if they do.

        An owner without a link is told of it over the next one, and its successor if it is no member any more.
        """

        def soon() -> None:  # a log may be changing hands
            self._commits.submit(PendingWrite(callback=lambda *_: then()))

        if not self._accounts.when_confirmed(subscription, soon):
            then()

    def _attach_arguments(self, subscription: Subscription, owner: str) -> Mapping[str, Any]:
        """Return what an owner needs to know of a consumer; the names are part of the protocol."""
        selector, client, claim = subscription.selector, subscription.client, subscription.takeover
        may_hold = subscription.prefetch + subscription.extension
        return {
            "name": subscription.name, "client_id": client.client_id, "prefetch": subscription.prefetch,
            "destinations": [str(each) for each in subscription.destinations],
            "credit": may_hold - self._accounts.unacked_count(subscription, owner),
            "priority": subscription.priority, "exclusive": subscription.exclusive,
            "selector": selector.text if selector is not None else None,
            "crossing": _pack_eligibility(selector) if isinstance(selector, BridgeEligibility) else None,
            "bridge": client.bridge, "claim": (claim.groups, claim.leads_to) if claim is not None else None,
        }  # fmt: skip

    def detach(self, subscription: Subscription, log: MessageLog) -> None:
        """Consume from a log no longer; what the client held was given back before."""
        self._accounts.remove_consumer(subscription, log.name)
        key = self._accounts.key_of(subscription)
        self._peers.send_to_owner(log.name, PeerMessageType.DETACH, key, log.name)
        if undelivered := self._deliveries.drop(subscription, log.name):
            self._settlement.requeue(log.name, undelivered, seen=False)

    def drop_consumer(self, subscription: Subscription, log: str) -> None:
        """Let a consumer that ceases to consume a log get as many messages more of others as it holds of this one."""
        account = self._accounts.of(log)
        held = [entry for holder, entry in account.unacked.values() if holder is subscription]
        self._accounts.give_credit(subscription, [each for each in held if each.seq not in account.credited_seqs])

    def drain(self, subscription: Subscription) -> None:
        """Deliver to a consumer in the next round, as far as it can take messages."""
        self._deliveries.drain(subscription)

    def change_credit(self, subscription: Subscription, count: int) -> None:
        """Let the owners of its logs send a consumer so many messages more, or fewer."""
        for owner in {self._peers.owner_of(log.name) for log in subscription.logs if log.is_remote}:
            self._peers.send(owner, PeerMessageType.CREDIT, self._accounts.key_of(subscription), count)

    def forget(self, subscription: Subscription) -> None:
        """Forget a consumer that ended."""
        self._deliveries.forget(subscription)
        self._accounts.forget(subscription)

    def known_consumers(self, log: MessageLog) -> Iterable[Subscription]:
        """Return the consumers of a log that are known here: all if this node owns it, else those of our clients."""
        if not log.is_remote:
            return log.consumers
        account = self._accounts.find(log.name)
        return account.consumers if account is not None else ()

    # -- logs change hands, or are removed

    def on_log_removed(self, log: str) -> None:
        """End consumption of a log that does not exist any more, with all it held."""
        account = self._accounts.find(log)
        for subscription in account.consumers if account is not None else ():
            self.drop_consumer(subscription, log)
            self._deliveries.drop(subscription, log)
        for subscription in self._accounts.take(log).consumers:
            if (former := next((each for each in subscription.logs if each.name == log), None)) is not None:
                subscription.detach_log(former)
        self._deliveries.drain_all()

    def announce_all(self, log: MessageLog) -> None:
        """Tell a new owner, or one whose link is up again, who consumes a log from here, and what they hold."""
        account = self._accounts.find(log.name)
        if account is None:
            return
        for subscription, may_be_told in account.consumers.items():
            if may_be_told:
                self._send_attach(subscription, log)
        by_key: dict[int, list[LogEntry]] = defaultdict(list)
        for subscription, entry in account.unacked.values():
            by_key[self._accounts.key_of(subscription)].append(entry)
        for key, entries in by_key.items():
            for start in range(0, len(entries), BATCH_SIZE):
                packed = pack(entries[start : start + BATCH_SIZE])
                self._peers.send_to_owner(log.name, PeerMessageType.UNACKED, key, log.name, packed)


def _pack_eligibility(eligibility: BridgeEligibility) -> list[Any]:
    """Return what the owner builds an equal one from; each counts for itself what it holds back."""
    return [
        eligibility.to,
        eligibility.message_ttl,
        list(eligibility.path),
        list(eligibility.consumers),
        eligibility.yields,
    ]
