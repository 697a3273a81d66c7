"""Accounts for messages that consumers of other nodes hold, from logs that this node owns.

They are kept by node, log and sequence number, whichever consumer holds them, until that node says what became of them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from brokerapp.core.ports import AccountingPort, BrokerContext, Destinations, DispatchQueue
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.destination import Destination
from brokerapp.nodes.delivery.depth_recount import DepthRecount
from brokerapp.nodes.links.handoff_state import HandoffState
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import ConsumerIdentity, PeerMessageType, pack_for_session
from brokerapp.nodes.ports import DamagedMessages, OwnedLogConsumers
from brokerapp.tracing.schema import REDELIVER

#: Entries in one message to another node: bounds how long a link is busy with one.
BATCH_SIZE = 500
#: Why a log dispatches nothing for a moment: the store is asked what is left of what consumers of a lost node held.
CHECKING_STORE = "what was held at a lost node is looked up"


class RemoteUnacked:
    """Unacknowledged messages of consumers at other nodes."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        queues: Destinations,
        consumers: OwnedLogConsumers,
        dispatcher: DispatchQueue,
        accounting: AccountingPort,
        dead_letters: DamagedMessages,
        handoff: HandoffState,
        depth_recount: DepthRecount,
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._peers, self._queues, self._consumers = peers, queues, consumers
        self._dispatcher, self._accounting, self._dead_letters = dispatcher, accounting, dead_letters
        self._handoff, self._depth_recount = handoff, depth_recount
        #: By session, log and sequence number, with the key of the consumer at its node.
        self._unacked: dict[str, dict[str, dict[int, tuple[int, LogEntry]]]] = {}
        #: By session and log, what a node held when its link was lost and has not named since.
        self._unconfirmed: dict[str, dict[str, set[int]]] = {}
        self._evicted_up_to: dict[str, int] = {}  # by session
        self._store_checks = itertools.count(1)

    # -- what is held

    def entries(self, log: str) -> Iterator[tuple[str, int, LogEntry]]:
        """Yield what is held of a log, with session and key of its consumer."""
        for session, logs in self._unacked.items():
            for key, entry in logs.get(log, {}).values():
                yield session, key, entry

    def seqs(self, log: str) -> set[int]:
        """Return the sequence numbers of what is held of a log."""
        return {number for logs in self._unacked.values() for number in logs.get(log, ())}

    def sessions(self, log: str) -> list[str]:
        """Return the nodes whose clients hold something of a log."""
        return [session for session, logs in self._unacked.items() if logs.get(log)]

    def is_held_at(self, session: str, log: str) -> bool:
        """Return whether clients of this node hold something of a log."""
        return bool(self._unacked.get(session, {}).get(log))

    def count(self, session: str, key: int, log: str) -> int:
        """Return how much of a log one consumer holds."""
        return sum(of == key for of, _ in self._unacked.get(session, {}).get(log, {}).values())

    def on_evicted(self, session: str, upto: int) -> None:
        """Send entries up to this sequence number whole to a node: it forgot those that it stored itself."""
        self._evicted_up_to[session] = upto

    def send(self, session: str, key: int, entries: Sequence[LogEntry]) -> None:
        """Send entries of one log to a consumer at another node."""
        log, evicted = entries[0].log, self._evicted_up_to.get(session, 0)
        self._unacked.setdefault(session, {}).setdefault(log, {}).update((each.seq, (key, each)) for each in entries)
        for start in range(0, len(entries), BATCH_SIZE):
            packed = pack_for_session(session, entries[start : start + BATCH_SIZE], evicted)
            self._peers.send(session, PeerMessageType.DELIVER, key, log, packed)
        for each in entries:
            each.cached_at = ""

    def add(self, session: str, key: int, log: str, entries: Iterable[LogEntry]) -> None:
        """Note what a consumer holds, as its node says to a new owner."""
        known = self._unacked.setdefault(session, {}).setdefault(log, {})
        unconfirmed = self._unconfirmed.get(session, {}).get(log, set())
        for entry in entries:
            known.setdefault(entry.seq, (key, entry))
            unconfirmed.discard(entry.seq)

    def _take(self, session: str, log: str, numbers: Iterable[int]) -> list[LogEntry]:
        known = self._unacked.get(session, {}).get(log, {})
        return [found[1] for number in numbers if (found := known.pop(number, None)) is not None]

    # -- what becomes of it

    def on_settled(self, session: str, name: str, consumer: Sequence[str] | None, numbers: Iterable[int]) -> None:
        """Account for removed entries, which a consumer acknowledged, or (None) which could not be delivered."""
        entries, log = self._take(session, name, numbers), self._owned_log(name)
        if entries and log is not None:
            self.remove_settled(log, entries, ConsumerIdentity(*consumer) if consumer is not None else None)

    def remove_settled(self, log: MessageLog, entries: Sequence[LogEntry], consumer: ConsumerIdentity | None) -> None:
        """Do the same for a log that this node owns. The node of the consumer counts them."""
        if consumer is not None:
            self._accounting.on_remote_acknowledged(log, list(entries), consumer, time.time_ns() // 1000)
        else:
            log.remove_settled(entries)
            self._counters.mark_changed(log.counts)

    def on_requeued(self, session: str, name: str, numbers: Iterable[int], seen: bool) -> None:
        """Return entries to their log; those that were not `seen` are as if nobody had had them."""
        entries = self._take(session, name, numbers)
        if entries and self._owned_log(name) is not None:
            self._requeue(entries, "consumer gone", seen=seen)
        elif seen:
            self._handoff.on_requeued(name, entries)

    def _requeue(self, entries: Sequence[LogEntry], cause: str, *, seen: bool) -> None:
        now_us = time.time_ns() // 1000
        for entry in entries:
            if seen:
                self._dead_letters.record(REDELIVER, now_us, entry, None, cause)
                self._counters.of(Destination.parse(entry.log)).RedeliveredCount += 1
            else:
                entry.redelivery_count -= 1  # one is added to what comes back
        self._consumers.requeue(entries)

    def _owned_log(self, name: str) -> MessageLog | None:
        log = self._queues.get(name)
        return log if log is not None and not log.is_remote else None

    # -- nodes and logs come and go

    def on_link_down(self, session: str) -> None:
        """Keep what a node holds until it says over the next link what that is."""
        held = self._unacked.get(session, {})
        self._unconfirmed[session] = {log: set(entries) for log, entries in held.items()}

    def on_epoch_done(self, session: str) -> None:
        """Requeue what a node held when its link was lost and has not named since."""
        for log, numbers in self._unconfirmed.pop(session, {}).items():
            self._requeue_if_stored(log, self._take(session, log, numbers), "its link was lost")

    def on_member_removed(self, session: str) -> None:
        """Requeue all that a node held which is no member any more."""
        self._unconfirmed.pop(session, None)
        self._evicted_up_to.pop(session, None)
        for log, entries in self._unacked.pop(session, {}).items():
            self._requeue_if_stored(log, [entry for _, entry in entries.values()], "its consumer's node left")

    def _requeue_if_stored(self, name: str, entries: Sequence[LogEntry], cause: str) -> None:
        """Requeue, flagged as redelivered, those entries that the store still has."""
        log = self._owned_log(name)
        if log is None:
            self._handoff.on_requeued(name, entries)
            return
        if not entries:
            return
        self._depth_recount.mark_stale(log)
        reason = f"{CHECKING_STORE} {next(self._store_checks)}"
        log.suspend_reasons.add(reason)  # later messages wait for those that come back
        numbers = [entry.seq for entry in entries]
        self._commits.read_with(
            lambda store: store.entries.existing_seqs(name, numbers),
            self._requeue_present(log, entries, cause, reason),
            name,
        )

    def _requeue_present(
        self, log: MessageLog, entries: Sequence[LogEntry], cause: str, reason: str
    ) -> Callable[[set[int]], None]:
        handoff_count = log.handoff_count

        def on_read(present: set[int]) -> None:
            log.suspend_reasons.discard(reason)
            self._dispatcher.touch(log)
            if log.handoff_count != handoff_count or self._owned_log(log.name) is not log:
                return  # it was read anew meanwhile
            log.remove_settled([entry for entry in entries if entry.seq not in present])
            back = [entry for entry in entries if entry.seq in present]
            if back:
                self._requeue(back, cause, seen=True)

        return on_read

    def release_log(self, log: str) -> list[LogEntry]:
        """Forget a log that another node owns from now on; return what was held of it."""
        held = [entry for _, _, entry in self.entries(log)]
        for unacked in self._unacked.values():
            unacked.pop(log, None)
        for unconfirmed in self._unconfirmed.values():
            unconfirmed.pop(log, None)
        return held
