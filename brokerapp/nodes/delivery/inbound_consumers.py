"""Serves consumers of other nodes from logs that this node owns.

Each is an ordinary Subscription to its logs; what it is given goes over the link of its node. What each node holds is
kept by log and number, whichever consumer it was for, until that node says what became of it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_groups import group_of
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility, BridgeFilterCounts
from brokerapp.model.destination import Destination
from brokerapp.nodes.links.protocol import ConsumerIdentity, PeerMessageType, pack_for_session, unpack
from brokerapp.selectors import compile_selector
from brokerapp.store import PendingWrite
from brokerapp.tracing.schema import REDELIVER

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

#: Entries told of in one word: bounds how long a link is busy with one.
ENTRIES_AT_ONCE = 500
#: Why a log gives out nothing for a moment: the store is asked what is left of what consumers of a lost node held.
CHECKING_STORE = "what was held at a lost node is looked up"


class InboundSink:
    """Where the client of a guest is told things: its node. A Sink."""

    def __init__(self, guests: InboundConsumers, session: str, key: int) -> None:
        self._consumers, self._session, self._key = guests, session, key

    def deliver(self, subscription: Subscription, entries: Sequence[LogEntry], _ack_ids: Sequence[str]) -> None:
        """Messages of one log."""
        subscription.unacked.clear()
        self._consumers.send_entries(self._session, self._key, entries)

    def flush(self) -> None:
        """Links do so by themselves."""

    def close(self) -> None:
        """Its node decides when its client goes."""

    abort = close

    def pause_reading(self, held: bool) -> None:
        """Nothing is read from it."""


class InboundConsumers:
    """Serves other nodes' consumers of logs that this node owns."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._subscriptions: dict[tuple[str, int], Subscription] = {}  # by session and key there
        self._unacked: dict[
            str, dict[str, dict[int, tuple[int, LogEntry]]]
        ] = {}  # by session, log, number; with the key
        self._unconfirmed: dict[
            str, dict[str, set[int]]
        ] = {}  # what a node held when its link was lost, not named since
        #: By session and log, who consumed there when its link was lost, and whether it may still do so: their groups
        #: wait for what becomes of them.
        self._disconnected: dict[str, dict[str, dict[Subscription, bool]]] = {}
        self._store_checks = itertools.count(1)

    # -- consumers

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._subscriptions)

    def on_attach(self, session: str, id: int, key: int, name: str, facts: dict[str, Any]) -> None:
        """A consumer of another node begins to consume a log, or goes on here."""
        log = self._broker.queues.get(name)
        if not self._ownership.is_local(name):  # said by who does not know yet: it says so again, elsewhere
            self._ownership.send(session, PeerMessageType.CONFIRMED, id, "")
            return
        if log is None:
            self._ownership.send(session, PeerMessageType.CONFIRMED, id, f"{name} not found")
            return
        durable, guest = self._broker.durables.known(name), self._subscriptions.get((session, key))
        if durable is not None and not durable.identity.shared:
            contending = self._ownership.subscription_takeover
            if rivals := contending.other_consumers(log, guest, session):
                refusal = f"the {durable.identity} has a consumer already"
                again = partial(self.on_attach, session, id, key, name, facts)
                contending.attach_or_refuse((session, key, name), id, rivals, refusal, again)
                return
        if guest is None:
            guest = self._subscriptions[session, key] = self._make_subscription(session, key, facts)
        if durable is not None:
            if (claim := facts.get("claim")) is not None:
                guest.takeover = durable.identity.for_reader(*claim)
            self._broker.durables.join(guest, durable)
        else:
            self._broker.consumers.attach_local(guest, log)
        self._confirm(session, id, waits=durable is not None)

    def _confirm(self, session: str, id: int, *, waits: bool) -> None:
        """It is served; `waits`: when all nodes know for whom that is kept from now on."""

        def say(*_: Any) -> None:
            self._ownership.send(session, PeerMessageType.CONFIRMED, id, "")

        if waits:
            self._broker.commits.submit(PendingWrite(callback=say))
        else:
            say()

    def _make_subscription(self, session: str, key: int, facts: dict[str, Any]) -> Subscription:
        client = Client(
            f"{session}:{key}", InboundSink(self, session, key), client_id=facts["client_id"], is_internal=True
        )
        selector = compile_selector(facts["selector"]) if facts["selector"] is not None else None
        if facts["crossing"] is not None:
            to, message_ttl, path, consumers, yields = facts["crossing"]
            client.bridge = facts["bridge"]
            selector = BridgeEligibility(
                to, message_ttl, tuple(path), selector, BridgeFilterCounts(), frozenset(consumers), yields
            )
        destinations = tuple(map(Destination.parse, facts["destinations"]))
        guest = Subscription(
            None, facts["name"], str(key), client, destinations, "client-individual", facts["prefetch"], selector,
            priority=facts["priority"], exclusive=facts["exclusive"],
        )  # fmt: skip
        guest.credit, guest.started, guest.owner_session = facts["credit"], True, session
        return guest

    def on_detach(self, session: str, key: int, name: str) -> None:
        """A consumer of another node consumes a log no longer."""
        guest, log = self._subscriptions.get((session, key)), self._broker.queues.get(name)
        self._ownership.subscription_takeover.on_detached((session, key, name))
        left = self._disconnected.get(session, {}).get(name, {})
        for former in left:
            if former.key == str(key):
                left[former] = False
        if guest is not None and log is not None and log in guest.logs:
            self._detach(guest, log)
            self._on_detached(name)
            if not guest.logs:
                del self._subscriptions[session, key]

    def _detach(self, guest: Subscription, log: MessageLog, *, keeps_groups: bool = False) -> None:
        self._broker.consumers.detach_all(guest, log, keeps_groups=keeps_groups)
        guest.logs.remove(log)

    def _on_detached(self, log: str) -> None:
        """One consumes it no longer: perhaps nobody does."""
        durable = self._broker.durables.known(log)
        if durable is not None and not durable.log.is_remote:
            self._broker.durables.parted(durable)

    def sessions_maybe_consuming(self, log: str) -> list[str]:
        """The members behind lost links where somebody may consume a log."""
        gone = self._ownership.propagation.is_lost
        return [
            session
            for session, logs in self._disconnected.items()
            if any(logs.get(log, {}).values()) and not gone(session)
        ]

    def maybe_consumed(self, log: str) -> bool:
        """Whether somebody may consume a log behind a lost link."""
        return bool(self.sessions_maybe_consuming(log))

    def on_credit(self, session: str, key: int, count: int) -> None:
        """It may be given so many messages more."""
        guest = self._subscriptions.get((session, key))
        if guest is not None:
            guest.credit += count
            self._broker.dispatcher.resume(guest)

    # -- what they hold

    def has_unacked(self, guest: Subscription, log: str) -> bool:
        """Whether one of them holds messages of a log."""
        return any(each is guest for each, _ in self.unacked_of(log))

    def unacked_of(self, log: str) -> Iterator[tuple[Subscription, LogEntry]]:
        """What they hold of a log, each with the guest that it was given to."""
        for session, logs in self._unacked.items():
            for key, entry in logs.get(log, {}).values():
                if (guest := self._subscriptions.get((session, key))) is not None:
                    yield guest, entry

    def holding_sessions(self, log: str) -> list[str]:
        """The nodes whose clients hold some of a log."""
        return [session for session, logs in self._unacked.items() if logs.get(log)]

    def send_entries(self, session: str, key: int, entries: Sequence[LogEntry]) -> None:
        """A guest is given these."""
        log = entries[0].log
        self._unacked.setdefault(session, {}).setdefault(log, {}).update((each.seq, (key, each)) for each in entries)
        forgotten = self._ownership.remote_appends.evicted_up_to(session)
        for start in range(0, len(entries), ENTRIES_AT_ONCE):
            packed = pack_for_session(session, entries[start : start + ENTRIES_AT_ONCE], forgotten)
            self._ownership.send(session, PeerMessageType.DELIVER, key, log, packed)
        for each in entries:
            each.cached_at = ""

    def unacked_entries(self, log: str) -> Iterator[LogEntry]:
        """What was sent to guests of all nodes and is not settled."""
        for logs in self._unacked.values():
            yield from (entry for _, entry in logs.get(log, {}).values())

    def unacked_seqs(self, log: str) -> set[int]:
        """The numbers of what guests of all nodes hold of a log."""
        return {number for logs in self._unacked.values() for number in logs.get(log, ())}

    def on_unacked(self, session: str, key: int, log: str, packed: Iterable[Any]) -> None:
        """A node holds these: it says so to a home that does not know."""
        if not self._ownership.is_local(log):
            return
        known = self._unacked.setdefault(session, {}).setdefault(log, {})
        former = self._unconfirmed.get(session, {}).get(log, set())
        here, guest = self._broker.queues.get(log), self._subscriptions.get((session, key))
        for entry in unpack(log, packed):
            known.setdefault(entry.seq, (key, entry))
            former.discard(entry.seq)
            group = group_of(entry)
            if group is not None and guest is not None and here is not None:
                here.assign_group(group, guest)

    def _take_unacked(self, session: str, log: str, numbers: Iterable[int]) -> list[LogEntry]:
        known = self._unacked.get(session, {}).get(log, {})
        return [found[1] for number in numbers if (found := known.pop(number, None)) is not None]

    def on_settled(self, session: str, name: str, consumer: Sequence[str] | None, numbers: Iterable[int]) -> None:
        """The store has removed these: a consumer there acknowledged them, or, without one, could not use them."""
        entries, log = self._take_unacked(session, name, numbers), self._local_log(name)
        if entries and log is not None:
            self.remove_settled(log, entries, ConsumerIdentity(*consumer) if consumer is not None else None)

    def remove_settled(self, log: MessageLog, entries: Sequence[LogEntry], consumer: ConsumerIdentity | None) -> None:
        """The same of a log that is at home here. It was counted where its consumer is."""
        if consumer is not None:
            self._broker.dispatcher.on_remote_acknowledged(log, list(entries), consumer, time.time_ns() // 1000)
        else:
            log.remove_settled(entries)
            self._broker.counters.mark_changed(log.counts)

    def on_requeued(self, session: str, name: str, numbers: Iterable[int], *, seen: bool) -> None:
        """These come back; without being `seen` they are as if nobody had had them."""
        entries = self._take_unacked(session, name, numbers)
        if entries and self._local_log(name) is not None:
            self._requeue(entries, "consumer gone", seen=seen)
        elif seen:
            self._ownership.handoff_in.on_requeued(name, entries)

    def _requeue(self, entries: Sequence[LogEntry], cause: str, *, seen: bool) -> None:
        now_us = time.time_ns() // 1000
        for entry in entries:
            if seen:
                self._broker.dead_letters.record(REDELIVER, now_us, entry, None, cause)
                self._broker.counters.of(Destination.parse(entry.log)).RedeliveredCount += 1
            else:
                entry.redelivery_count -= 1  # one is added to what comes back
        self._broker.consumers.requeue(entries)

    def _local_log(self, name: str) -> MessageLog | None:
        log = self._broker.queues.get(name)
        return log if log is not None and not log.is_remote else None

    # -- nodes come and go

    def on_link_down(self, session: str) -> None:
        """A node cannot be told anything: its consumers are given nothing, what they hold they hold."""
        for key in [key for key in self._subscriptions if key[0] == session]:
            guest = self._subscriptions.pop(key)
            for log in list(guest.logs):
                if guest.exclusive and self._unacked.get(session, {}).get(log.name):
                    log.suspend_reasons.add(_exclusive_consumer_lost(session))
                self._detach(guest, log, keeps_groups=True)
                self._disconnected.setdefault(session, {}).setdefault(log.name, {})[guest] = True
        held = self._unacked.get(session, {})
        self._unconfirmed[session] = {log: set(entries) for log, entries in held.items()}

    def on_epoch_done(self, session: str) -> None:
        """A node has said all that it holds: of what it held before, the rest is looked up and comes back."""
        for log, numbers in self._unconfirmed.pop(session, {}).items():
            self._requeue_if_stored(log, self._take_unacked(session, log, numbers), "its link was lost")
        self._drop_disconnected(session)

    def _drop_disconnected(self, session: str) -> None:
        """Who consumed there when the link was lost and does not go on consumes no longer."""
        for name, former in self._disconnected.pop(session, {}).items():
            log = self._broker.queues.get(name)
            if log is not None:
                self._restore_exclusive(session, log, former)
            self._on_detached(name)

    def _restore_exclusive(self, session: str, log: MessageLog, former: Iterable[Subscription]) -> None:
        """An exclusive queue, and groups, are again those of who goes on, or go to others."""
        if _exclusive_consumer_lost(session) in log.suspend_reasons:
            log.suspend_reasons.discard(_exclusive_consumer_lost(session))
            log.consumers.sort(key=lambda each: not self.has_unacked(each, log.name))
        for guest in former if log.groups is not None else ():
            successor = self._subscriptions.get((session, int(guest.key)))
            if successor in log.consumers:
                log.groups.reassign(guest, successor)
            else:
                log.groups.remove_consumer(guest)
        self._broker.dispatcher.touch(log)

    def on_member_removed(self, session: str) -> None:
        """A node is no member any more: what it held comes back."""
        self.on_link_down(session)
        self._unconfirmed.pop(session, None)
        for log, entries in self._unacked.pop(session, {}).items():
            self._requeue_if_stored(log, [entry for _, entry in entries.values()], "its consumer's node is gone")
        self._drop_disconnected(session)

    def _requeue_if_stored(self, name: str, entries: Sequence[LogEntry], cause: str) -> None:
        """What is still there of what a lost node held comes back, flagged."""
        log = self._local_log(name)
        if log is None:
            self._ownership.handoff_in.on_requeued(name, entries)
        if log is None or not entries:
            return
        self._ownership.depth_recount.mark_stale(log)
        tenure, numbers = log.handoff_count, [entry.seq for entry in entries]
        reason = f"{CHECKING_STORE} {next(self._store_checks)}"
        log.suspend_reasons.add(reason)  # what came later waits for what comes back

        def found(present: set[int]) -> None:
            log.suspend_reasons.discard(reason)
            self._broker.dispatcher.touch(log)
            if log.handoff_count != tenure or self._local_log(name) is not log:
                return  # it was read anew meanwhile
            log.remove_settled([entry for entry in entries if entry.seq not in present])
            back = [entry for entry in entries if entry.seq in present]
            if back:
                self._requeue(back, cause, seen=True)

        self._broker.commits.read_with(lambda store: store.entries.existing_seqs(name, numbers), found)

    def release_log(self, log: MessageLog) -> None:
        """A log is at home elsewhere from now on, where the nodes say again who consumes it."""
        for (session, key), guest in list(self._subscriptions.items()):
            if log in guest.logs:
                guest.logs.remove(log)
                held = self._unacked.get(session, {}).get(log.name, {})
                guest.credit += sum([of == key for of, _ in held.values()])
                if not guest.logs:
                    del self._subscriptions[session, key]
        for session, left in self._disconnected.items():
            left.pop(log.name, None)
            log.suspend_reasons.discard(_exclusive_consumer_lost(session))
        for logs in (*self._unacked.values(), *self._unconfirmed.values()):
            logs.pop(log.name, None)


def _exclusive_consumer_lost(session: str) -> str:
    """Why a log gives out nothing for a moment: it is all for one that cannot be told anything and holds some."""
    return f"its exclusive consumer is behind the lost link with {session}"
