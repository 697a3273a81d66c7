"""Lets other nodes know, and reads from the store, what changes with the owner of a log."""

from __future__ import annotations

from brokerapp.core.ports import Destinations, DispatchQueue
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.delivery.depth_recount import DepthRecount
from brokerapp.nodes.delivery.inbound_consumers import InboundConsumers
from brokerapp.nodes.delivery.outbound_consumers import OutboundConsumers
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.ownership.handoff_announcements import HandoffAnnouncements
from brokerapp.nodes.ports import ScheduledJobsOwner


class LogReassignment(NodeObserver):
    """Adapts all logs to the members, and to links that are up again."""

    def __init__(
        self,
        *,
        peers: Peers,
        queues: Destinations,
        dispatcher: DispatchQueue,
        depth_recount: DepthRecount,
        inbound_consumers: InboundConsumers,
        outbound_consumers: OutboundConsumers,
        announcements: HandoffAnnouncements,
        scheduled_jobs: ScheduledJobsOwner,
    ) -> None:
        self._peers, self._queues, self._dispatcher, self._depth_recount = peers, queues, dispatcher, depth_recount
        self._inbound_consumers, self._outbound_consumers = inbound_consumers, outbound_consumers
        self._announcements, self._scheduled_jobs = announcements, scheduled_jobs

    def reassign_all(self) -> None:
        """Go by the members: tell next owners who consumes their logs from here, and that this node has finished."""
        for log in self._queues:
            if not self._peers.other_sessions:
                log.shared = False  # nobody else appends any more
                self._recheck(log)
            elif log.is_remote and not self._peers.is_local(log.name):
                self._inbound_consumers.release_log(log)
                log.consumers.clear()
                self._outbound_consumers.announce_all(log)
        for session in self._peers.other_sessions:
            self._announcements.announce_done(session)

    def on_logs_reassigned(self) -> None:
        """Run scheduled jobs, those of nodes that are gone, too."""
        self._scheduled_jobs.start()

    def announce_to(self, session: str) -> None:
        """Tell a node over a new link who consumes its logs from here, and that this node has finished."""
        for log in self._queues:
            if log.is_remote and self._peers.owner_of(log.name) == session:
                self._outbound_consumers.announce_all(log)
        self._announcements.announce_done(session)

    def on_epoch_done(self, session: str, epoch: int) -> None:
        """Read what a node may have stored without a notice, as the link to it may have been lost before."""
        for log in self._queues:
            self._recheck(log)

    def _recheck(self, log: MessageLog) -> None:
        if not log.is_remote:
            log.recheck_store()
            self._depth_recount.mark_stale(log)
            self._dispatcher.touch(log)
