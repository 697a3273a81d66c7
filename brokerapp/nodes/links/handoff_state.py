"""Keeps what other nodes said of logs before this node takes them over.

A node takes over its logs when all other members have said that they dispatch nothing any more from logs that they do
not own in this epoch. Until then it notes what comes back from consumers of those logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from brokerapp.core.ports import Destinations
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers

#: Deliveries of entries so far, by sequence number.
DeliveriesBySeq = dict[int, int]


class HandoffState(NodeObserver):
    """Progress of the handoff to this node: who has finished, and what came back before it."""

    def __init__(self, *, peers: Peers, queues: Destinations) -> None:
        self._peers, self._queues = peers, queues
        self._epoch_done_by_session: dict[str, int] = {}
        self._taken_over_by_session: dict[str, int] = {}
        self._requeued: dict[str, DeliveriesBySeq] = defaultdict(dict)  # by log
        self._dispatched: dict[str, DeliveriesBySeq] = defaultdict(dict)  # by log

    # -- progress of other nodes

    def on_epoch_done(self, session: str, epoch: int) -> None:
        """Note that a node dispatches nothing any more from logs that left it in this epoch."""
        self._epoch_done_by_session[session] = epoch

    def on_taken_over(self, session: str, epoch: int) -> None:
        """Note that a node dispatches from all logs that it owns in this epoch."""
        self._taken_over_by_session[session] = epoch

    @property
    def others_took_over(self) -> bool:
        """Whether all other members dispatch from what they own in this epoch."""
        return all(
            self._taken_over_by_session.get(each, -1) >= self._peers.members.epoch
            for each in self._peers.other_sessions
        )

    def on_link_down(self, session: str) -> None:
        """Forget what a node said; it says so again over the next link."""
        self._epoch_done_by_session.pop(session, None)

    def on_member_removed(self, session: str) -> None:
        """Forget what a node said that is no member any more."""
        self._epoch_done_by_session.pop(session, None)
        self._taken_over_by_session.pop(session, None)

    @property
    def all_done(self) -> bool:
        """Whether no other member dispatches any more from a log that this node owns."""
        return all(
            self._epoch_done_by_session.get(each, -1) >= self._peers.members.epoch
            for each in self._peers.other_sessions
        )

    @property
    def can_take_over(self) -> bool:
        """Whether, besides, the logs of the broker are known here."""
        return not self._peers.is_joining and self.all_done

    def is_pending(self, log: str | None) -> bool:
        """Return whether this node owns a log and has not taken it over yet."""
        known = self._queues.get(log) if log is not None else None
        return known is not None and known.is_remote and self._peers.is_local(known.name)

    # -- what concerns logs that were not taken over yet

    def on_requeued(self, log: str, entries: Iterable[LogEntry]) -> None:
        """Note entries that consumers gave back to this owner."""
        requeued = {each.seq: each.redelivery_count + 1 for each in entries}
        if requeued and self._peers.is_local(log) and self._queues.get(log) is not None:
            self._requeued[log].update(requeued)

    def on_dispatched(self, _session: str, log: str, sent: Iterable[tuple[int, int]]) -> None:
        """Note what the former owner of a log sent to consumers.

        What none of them turns out to hold was dropped on its way. Another consumer may have got later messages by now:
        it is flagged as redelivered, as all that is dispatched out of order.
        """
        if self.is_pending(log):
            self._dispatched[log].update((number, deliveries + 1) for number, deliveries in sent)

    def on_log_removed(self, log: str) -> None:
        """Forget what concerns a log that is removed."""
        self._requeued.pop(log, None)
        self._dispatched.pop(log, None)

    def on_members_changed(self) -> None:
        """Forget what concerns logs that this node does not own any more."""
        for noted in (self._requeued, self._dispatched):
            for log in [each for each in noted if not self._peers.is_local(each)]:
                del noted[log]

    def take(self, log: str) -> tuple[DeliveriesBySeq, DeliveriesBySeq]:
        """Remove and return what was given back of a log, and what its former owner sent to consumers."""
        return self._requeued.pop(log, {}), self._dispatched.pop(log, {})
