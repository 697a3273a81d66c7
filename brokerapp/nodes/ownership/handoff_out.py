"""Hands logs off to the node that owns them from now on.

A log that leaves is suspended first; what this node has under way of it is waited for; then it is released, and its
next owner is told who consumes it and what is held.
"""

from __future__ import annotations

from brokerapp.core.ports import Destinations
from brokerapp.core.ports.commits import Commits
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.delivery.inbound_consumers import InboundConsumers
from brokerapp.nodes.links.members import NodeMembers
from brokerapp.nodes.ownership.handoff_announcements import HandoffAnnouncements
from brokerapp.nodes.ownership.outbound_handoff import OutboundHandoff
from brokerapp.nodes.ports import OwnedDurables, OwnedLogConsumers
from brokerapp.tracing.consumers import ConsumerRecorder

#: Why a log dispatches nothing for a moment: another node is about to own it.
HANDOFF = "its home moves"


class HandoffOut:
    """Suspends logs that leave this node, and releases them."""

    def __init__(
        self,
        *,
        commits: Commits,
        queues: Destinations,
        consumers: OwnedLogConsumers,
        durables: OwnedDurables,
        recorder: ConsumerRecorder,
        inbound_consumers: InboundConsumers,
        outbound_handoff: OutboundHandoff,
        announcements: HandoffAnnouncements,
    ) -> None:
        self._commits, self._queues, self._consumers = commits, queues, consumers
        self._durables, self._recorder = durables, recorder
        self._inbound_consumers, self._outbound_handoff = inbound_consumers, outbound_handoff
        self._announcements = announcements
        self._next_members: NodeMembers | None = None  # while what leaves is suspended
        self._logs: list[MessageLog] = []

    async def suspend_leaving(self, members: NodeMembers) -> None:
        """Dispatch nothing more of what leaves with these members; return when nothing of it is under way."""
        self._next_members, self._logs = members, []
        for log in self._queues:
            self.suspend_if_leaving(log)
            if log.consumers:
                self._consumers.mark(log)
        await self._commits.barrier()

    def suspend_if_leaving(self, log: MessageLog) -> None:
        """Do the same for one log, which may be new."""
        if self._next_members is None or not self._next_members.others:
            return
        log.shared = True
        if not log.is_remote and not self._next_members.is_local(log.name):
            log.suspend_reasons.add(HANDOFF)
            self._logs.append(log)

    def release_suspended(self) -> None:
        """Let go of what was suspended: the members are those that it leaves with."""
        self._next_members = None
        for log in filter(self._queues.holds, self._logs):
            self._release_log(log)

    def _release_log(self, log: MessageLog) -> None:
        self._recorder.forget(log.name)
        self._announcements.add_dispatched(log.name, self._inbound_consumers.release_log(log))
        self._outbound_handoff.on_handed_off(log)
        log.is_remote = True
        log.handoff_count += 1
        log.release_ownership()
        log.suspend_reasons.discard(HANDOFF)
        self._durables.moved(log)
