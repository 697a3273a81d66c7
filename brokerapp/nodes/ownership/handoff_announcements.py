"""Tells other nodes that they may take over the logs that left this one.

A node may do so when the store has what our clients acknowledged and gave back until then: what it reads there is true.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from brokerapp.core.ports.commits import Commits
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.store import PendingWrite


class HandoffAnnouncements(NodeObserver):
    """Announces to next owners that this node has finished, and what it had sent to consumers at other nodes."""

    def __init__(self, *, peers: Peers, commits: Commits) -> None:
        self._peers, self._commits = peers, commits
        self._pending: dict[str, PendingWrite] = {}  # by session, the write after which it is told
        #: By log, (number, deliveries) of what was sent to consumers at other nodes when it left: some of that may have
        #: come too late to be delivered there.
        self._dispatched: dict[str, list[tuple[int, int]]] = {}

    def add_dispatched(self, log: str, entries: Iterable[LogEntry]) -> None:
        """Note what consumers at other nodes were sent of a log that leaves."""
        self._dispatched[log] = [(entry.seq, entry.redelivery_count) for entry in entries]

    def announce_done(self, session: str) -> None:
        """Let a node take over what left this one, once the store has all that was asked of it until now."""
        epoch = self._peers.members.epoch

        def on_committed(*_: Any) -> None:
            if self._pending.get(session) is write and self._peers.members.epoch == epoch:
                self._send_dispatched(session)
                self._peers.send(session, PeerMessageType.EPOCH_DONE, epoch)

        write = self._pending[session] = PendingWrite(callback=on_committed)
        self._commits.submit(write)

    def _send_dispatched(self, session: str) -> None:
        if not self._peers.members.understands(session, PeerMessageType.DISPATCHED):
            return
        for log, sent in self._dispatched.items():
            if sent and self._peers.owner_of(log) == session:
                self._peers.send(session, PeerMessageType.DISPATCHED, log, sent)

    def on_log_removed(self, log: str) -> None:
        """Forget a log that this node owns again, or that is removed."""
        self._dispatched.pop(log, None)

    def on_link_down(self, session: str) -> None:
        """Tell a node nothing; it is told anew over the next link."""
        self._pending.pop(session, None)

    def on_member_removed(self, session: str) -> None:
        """Tell a node nothing that is no member any more."""
        self._pending.pop(session, None)
