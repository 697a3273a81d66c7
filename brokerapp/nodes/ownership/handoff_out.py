"""Hands logs off to the node that owns them from now on.

A log that leaves is stopped first; what this node has under way of it is waited for; then it is let go, and its new
home is told who consumes it and what is held. That may take it when the store has, too, what our clients acknowledged
and gave back meanwhile: what it reads there is true then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.links.members import NodeMembers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.store import PendingWrite

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

#: Why a log gives out nothing for a moment: its home is about to be another node.
HANDOFF = "its home moves"


class HandoffOut:
    """Suspends logs that leave this node, and tells their next owner to take over."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._next_members: NodeMembers | None = None  # who the members are to be, while what leaves is stopped
        self._logs: list[MessageLog] = []
        self._announcements: dict[str, PendingWrite] = {}  # session -> what the store does before that node is told
        #: Log -> (number, deliveries) of what was sent to consumers at other nodes when it left: some of that may have
        #: come too late to be delivered there.
        self._dispatched: dict[str, list[tuple[int, int]]] = {}

    async def suspend_leaving(self, members: NodeMembers) -> None:
        """Give out nothing more of what leaves with these members; returns when nothing of it is under way."""
        self._next_members, self._logs = members, []
        for log in self._broker.queues:
            self.suspend_if_leaving(log)
            if log.consumers:
                self._broker.consumers.mark(log)
        await self._broker.commits.barrier()

    def suspend_if_leaving(self, log: MessageLog) -> None:
        """The same of one log, which may have come to be just now."""
        if self._next_members is None or not self._next_members.others:
            return
        log.shared = True
        if not log.is_remote and not self._next_members.is_local(log.name):
            log.suspend_reasons.add(HANDOFF)
            self._logs.append(log)

    def release_suspended(self) -> None:
        """The members are those: what was stopped is at home elsewhere from now on."""
        self._next_members = None
        for log in filter(self._broker.queues.holds, self._logs):
            self._release_log(log)

    def _release_log(self, log: MessageLog) -> None:
        self._dispatched[log.name] = [
            (entry.seq, entry.redelivery_count) for entry in self._ownership.inbound_consumers.unacked_entries(log.name)
        ]
        self._broker.dispatcher.consumer_recorder.forget(log.name)
        self._ownership.inbound_consumers.release_log(log)
        self._ownership.outbound_consumers.on_handed_off(log)
        log.is_remote = True
        log.handoff_count += 1
        log.release_ownership()
        log.suspend_reasons.discard(HANDOFF)
        self._broker.durables.moved(log)

    def announce_done(self, session: str) -> None:
        """Let a node take what left us, once the store has what our clients acknowledged and gave back until now."""
        epoch = self._ownership.members.epoch

        def say(*_: Any) -> None:
            if self._announcements.get(session) is unit and self._ownership.members.epoch == epoch:
                self._send_dispatched(session)
                self._ownership.send(session, PeerMessageType.EPOCH_DONE, epoch)

        unit = self._announcements[session] = PendingWrite(callback=say)
        self._broker.commits.submit(unit)

    def _send_dispatched(self, session: str) -> None:
        """Tell the next owner of logs what their consumers at other nodes may never have got."""
        if not self._ownership.members.understands(session, PeerMessageType.DISPATCHED):
            return
        for log, sent in self._dispatched.items():
            if sent and self._ownership.owner_of(log) == session:
                self._ownership.send(session, PeerMessageType.DISPATCHED, log, sent)

    def forget_log(self, log: str) -> None:
        """Forget what was said of a log that this node owns again, or that is gone."""
        self._dispatched.pop(log, None)

    def forget(self, session: str) -> None:
        """A node hears us no longer: what it is to be told is told anew when it does."""
        self._announcements.pop(session, None)
