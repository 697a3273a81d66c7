"""Serves consumers of other nodes from logs that this node owns.

Each is an ordinary Subscription at its logs; what is dispatched to it goes over the link to its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from brokerapp.core.ports import DispatcherPort, QueueLifecycle
from brokerapp.core.ports.commits import Commits
from brokerapp.engine.clients.client import Client, ClientSink
from brokerapp.engine.dispatch.message_groups import group_of
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility, BridgeFilterCounts
from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.nodes.delivery.remote_unacked import RemoteUnacked
from brokerapp.nodes.delivery.subscription_takeover import SubscriptionTakeover
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import unpack
from brokerapp.nodes.ports import OwnedDurables, OwnedLogConsumers
from brokerapp.selectors import Selector, compile_selector
from brokerapp.store import PendingWrite


class InboundSink(ClientSink):
    """Sends what a consumer of another node gets to that node."""

    def __init__(self, unacked: RemoteUnacked, session: str, key: int) -> None:
        self._unacked, self._session, self._key = unacked, session, key

    def deliver(self, subscription: Subscription, entries: Sequence[LogEntry], _ack_ids: Sequence[str]) -> None:
        """Send messages of one log."""
        subscription.unacked.clear()
        self._unacked.send(self._session, self._key, entries)

    def flush(self) -> None:
        """Links do so by themselves."""

    def close(self) -> None:
        """Its node decides when its client goes."""

    def abort(self) -> None:
        """Its node decides."""

    def end_of_browse(self, subscription: Subscription) -> None:
        """Browsers read at their own node."""

    def receipts(self, ids: Sequence[str]) -> None:
        """It requests nothing here."""

    def refuse(self, error: BrokerError, receipt: str | None) -> None:
        """It requests nothing here."""

    def heart_beat_times(self) -> tuple[int, int, int]:
        """Return zeros: its node exchanges heart-beats with it."""
        return 0, 0, 0

    def pause_reading(self, held: bool) -> None:
        """Nothing is read from it."""


class InboundConsumers(NodeObserver):
    """Consumers of other nodes at logs that this node owns."""

    def __init__(
        self,
        *,
        peers: Peers,
        commits: Commits,
        queues: QueueLifecycle,
        consumers: OwnedLogConsumers,
        durables: OwnedDurables,
        dispatcher: DispatcherPort,
        unacked: RemoteUnacked,
        takeover: SubscriptionTakeover,
    ) -> None:
        self._peers, self._commits, self._queues = peers, commits, queues
        self._consumers, self._durables, self._dispatcher = consumers, durables, dispatcher
        self._unacked, self._takeover = unacked, takeover
        self._subscriptions: dict[tuple[str, int], Subscription] = {}  # by session and key there

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._subscriptions)

    # -- consumers come and go

    def on_attach(self, session: str, id: int, key: int, name: str, about: dict[str, Any]) -> None:
        """Let a consumer of another node begin to consume a log, or go on here."""
        log = self._queues.get(name)
        if not self._peers.is_local(name):  # the sender does not know the owner yet, and will tell it
            self._peers.confirm(session, id)
            return
        if log is None:
            self._peers.confirm(session, id, f"{name} not found")
            return
        durable, consumer = self._durables.known(name), self._subscriptions.get((session, key))
        others: set[str] = set()
        if durable is not None and not durable.identity.shared:
            others = self._takeover.other_consumers(log, consumer, session)
        if durable is not None and others:
            refusal = f"the {durable.identity} has a consumer already"
            again = partial(self.on_attach, session, id, key, name, about)
            self._takeover.attach_or_refuse((session, key, name), id, others, refusal, again)
            return
        if consumer is None:
            consumer = self._subscriptions[session, key] = self._make_subscription(session, key, about)
        if durable is None:
            self._consumers.attach_local(consumer, log)
            self._peers.confirm(session, id)
            return
        if (claim := about.get("claim")) is not None:
            consumer.takeover = durable.identity.for_reader(*claim)
        self._durables.join(consumer, durable)
        # once all nodes know for whom the subscription is kept from now on
        self._commits.submit(PendingWrite(callback=lambda *_: self._peers.confirm(session, id)))

    def _make_subscription(self, session: str, key: int, about: dict[str, Any]) -> Subscription:
        client = Client(
            f"{session}:{key}",
            InboundSink(self._unacked, session, key),
            client_id=about["client_id"],
            is_internal=True,
        )
        condition = compile_selector(about["selector"]) if about["selector"] is not None else None
        selector: Selector | BridgeEligibility | None = condition
        if about["crossing"] is not None:
            to, message_ttl, path, consumers, yields = about["crossing"]
            client.bridge = about["bridge"]
            selector = BridgeEligibility(
                to, message_ttl, tuple(path), condition, BridgeFilterCounts(), frozenset(consumers), yields
            )
        destinations = tuple(map(Destination.parse, about["destinations"]))
        consumer = Subscription(
            None, about["name"], str(key), client, destinations, "client-individual", about["prefetch"], selector,
            priority=about["priority"], exclusive=about["exclusive"],
        )  # fmt: skip
        consumer.credit, consumer.started, consumer.owner_session = about["credit"], True, session
        return consumer

    def on_detach(self, session: str, key: int, name: str) -> None:
        """Let a consumer of another node consume a log no longer."""
        consumer, log = self._subscriptions.get((session, key)), self._queues.get(name)
        self._takeover.on_detached((session, key, name))
        if consumer is not None and log is not None and log in consumer.logs:
            self._detach(consumer, log)
            self._on_detached(name)
            if not consumer.logs:
                del self._subscriptions[session, key]

    def _detach(self, consumer: Subscription, log: MessageLog, *, keeps_groups: bool = False) -> None:
        self._consumers.detach_all(consumer, log, keeps_groups=keeps_groups)
        consumer.logs.remove(log)

    def _on_detached(self, log: str) -> None:
        """Perhaps nobody consumes the log any more."""
        durable = self._durables.known(log)
        if durable is not None and not durable.log.is_remote:
            self._durables.on_consumer_detached(durable)

    def on_credit(self, session: str, key: int, count: int) -> None:
        """Let a consumer get so many messages more."""
        consumer = self._subscriptions.get((session, key))
        if consumer is not None:
            consumer.credit += count
            self._dispatcher.resume(consumer)

    # -- what they hold

    def on_unacked(self, session: str, key: int, name: str, packed: Iterable[Any]) -> None:
        """Note what a consumer holds of a log that this node has come to own."""
        if not self._peers.is_local(name):
            return
        entries = unpack(name, packed)
        self._unacked.add(session, key, name, entries)
        log, consumer = self._queues.get(name), self._subscriptions.get((session, key))
        if log is None or consumer is None:
            return
        for entry in entries:
            if (group := group_of(entry)) is not None:
                log.assign_group(group, consumer)

    def unacked_of(self, log: str) -> Iterator[tuple[Subscription, LogEntry]]:
        """Yield what they hold of a log, each entry with its consumer."""
        for session, key, entry in self._unacked.entries(log):
            if (consumer := self._subscriptions.get((session, key))) is not None:
                yield consumer, entry

    def has_unacked(self, consumer: Subscription, log: str) -> bool:
        """Return whether one of them holds messages of a log."""
        return any(each is consumer for each, _ in self.unacked_of(log))

    # -- nodes and logs come and go

    def on_link_down(self, session: str) -> None:
        """Dispatch nothing to the consumers of a node; what they hold they hold."""
        for key in [key for key in self._subscriptions if key[0] == session]:
            consumer = self._subscriptions.pop(key)
            for log in [self._queues[each.name] for each in consumer.logs]:
                if consumer.exclusive and self._unacked.is_held_at(session, log.name):
                    log.suspend_reasons.add(_exclusive_consumer_lost(session))
                self._detach(consumer, log, keeps_groups=True)
                self._takeover.on_disconnected(session, log.name, consumer)
        self._unacked.on_link_down(session)

    def on_epoch_done(self, session: str, epoch: int) -> None:
        """Let only those consumers of a node go on that it has named since its link was lost."""
        if epoch != self._peers.members.epoch:
            return  # it has not said in this epoch yet what its clients hold
        self._unacked.on_epoch_done(session)
        self._drop_disconnected(session)

    def on_member_removed(self, session: str) -> None:
        """End the consumers of a node that is no member any more; what they held comes back."""
        self.on_link_down(session)
        self._unacked.on_member_removed(session)
        self._drop_disconnected(session)

    def _drop_disconnected(self, session: str) -> None:
        for name, former in self._takeover.take_disconnected(session).items():
            log = self._queues.get(name)
            if log is not None:
                self._restore_exclusive(session, log, former)
            self._on_detached(name)

    def _restore_exclusive(self, session: str, log: MessageLog, former: Iterable[Subscription]) -> None:
        """Give an exclusive queue, and groups, to the consumers that go on, or to others."""
        if _exclusive_consumer_lost(session) in log.suspend_reasons:
            log.suspend_reasons.discard(_exclusive_consumer_lost(session))
            log.consumers.sort(key=lambda each: not self.has_unacked(each, log.name))
        for consumer in former:
            successor = self._subscriptions.get((session, int(consumer.key)))
            if log.groups is None:
                break
            if successor is not None and successor in log.consumers:
                log.groups.reassign(consumer, successor)
            else:
                log.groups.remove_consumer(consumer)
        self._dispatcher.touch(log)

    def release_log(self, log: MessageLog) -> list[LogEntry]:
        """Let go of a log that another node owns from now on; return what consumers of other nodes hold of it.

        Their nodes tell the new owner who consumes it.
        """
        for (session, key), consumer in list(self._subscriptions.items()):
            if log in consumer.logs:
                consumer.logs.remove(log)
                consumer.credit += self._unacked.count(session, key, log.name)
                if not consumer.logs:
                    del self._subscriptions[session, key]
        for session in self._takeover.release_log(log.name):
            log.suspend_reasons.discard(_exclusive_consumer_lost(session))
        return self._unacked.release_log(log.name)


def _exclusive_consumer_lost(session: str) -> str:
    """Return why a log dispatches nothing for a moment: its exclusive consumer holds some behind a lost link."""
    return f"its exclusive consumer is behind the lost link with {session}"
