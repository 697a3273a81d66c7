"""Decides which logs this node dispatches from as members of the broker join and leave.

Decision 14 says why two nodes never dispatch from the same log. A node that is alone owns all logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.delivery.append_notices import AppendNotices
from brokerapp.nodes.links.inbox import PeerInbox
from brokerapp.nodes.links.members import NodeMembers
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers, PeerTransport
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ownership.handoff_in import HandoffIn
from brokerapp.nodes.ownership.handoff_out import HandoffOut
from brokerapp.nodes.ownership.log_reassignment import LogReassignment


class OwnershipCoordinator:
    """Lets logs go and come as members do, and receives what other nodes send. A NodeLinkListener."""

    def __init__(
        self,
        *,
        peers: Peers,
        inbox: PeerInbox,
        append_notices: AppendNotices,
        handoff_in: HandoffIn,
        handoff_out: HandoffOut,
        reassignment: LogReassignment,
        observers: Sequence[NodeObserver],
    ) -> None:
        self._peers, self._inbox, self._append_notices = peers, inbox, append_notices
        self._handoff_in, self._handoff_out, self._reassignment = handoff_in, handoff_out, reassignment
        self._observers = observers

    def on_log_added(self, log: MessageLog) -> None:
        """Say of a new log whether this node owns it."""
        log.shared = bool(self._peers.other_sessions)
        log.is_remote = self._peers.is_joining or not self._peers.is_local(log.name)
        self._handoff_out.suspend_if_leaving(log)

    # -- members come and go

    def attach_transport(self, transport: PeerTransport) -> None:
        """Send through this transport; what others say of logs is deferred until `on_logs_loaded`."""
        self._peers.attach_transport(transport)

    def join(self, members: NodeMembers) -> None:
        """Be one of these members; without others this node owns all logs."""
        self._peers.set_joining(is_joining=bool(members.others))
        self._set_members(members)
        self._handoff_in.take_over()

    def on_logs_loaded(self) -> None:
        """Go on: the logs of the broker are known here."""
        self._peers.set_joining(is_joining=False)
        self._inbox.handle_deferred()
        self._handoff_in.take_over()

    async def on_members_changed(self, members: NodeMembers) -> None:
        """Go by these members from now on; return when all that leaves has left."""
        await self._handoff_out.suspend_leaving(members)
        self._append_notices.send()  # what was stored until now concerns the former owners
        before = list(self._peers.other_sessions)
        self._set_members(members)
        self._handoff_out.release_suspended()
        for session in [each for each in before if each not in members]:
            self._on_member_removed(session)
        for session in [each for each in self._peers.other_sessions if each not in before]:
            self._introduce(session)  # it may have been linked for a while
        self._reassignment.reassign_all()
        for observer in self._observers:
            observer.on_logs_reassigned()
        self._inbox.handle_deferred()
        self._handoff_in.take_over()

    def _set_members(self, members: NodeMembers) -> None:
        self._peers.set_members(members)
        for observer in self._observers:
            observer.on_members_changed()
        for session in self._peers.other_sessions:
            self._peers.send_epoch(session)
            if self._peers.is_joining:
                self._peers.send_epoch_done(session)

    def _on_member_removed(self, session: str) -> None:
        for observer in self._observers:
            observer.on_member_removed(session)

    def _introduce(self, session: str) -> None:
        for observer in self._observers:
            observer.introduce(session)
        self._handoff_in.announce_taken_over(session)

    # -- links come and go

    def on_link_up(self, session: str) -> None:
        """Tell a node all that concerns it."""
        self._inbox.expect_epoch(session)
        self._peers.send_epoch(session)
        for observer in self._observers:
            observer.on_link_up(session)
        self._introduce(session)
        if self._peers.is_joining:
            self._peers.send_epoch_done(session)
        else:
            self._reassignment.announce_to(session)

    def on_link_down(self, session: str) -> None:
        """Forget what a node says again over the next link."""
        for observer in self._observers:
            observer.on_link_down(session)

    def on_message(self, session: str, message_type: PeerMessageType, fields: list[Any]) -> None:
        """Handle a message of another node."""
        self._inbox.on_message(session, message_type, fields)

    def on_epoch_done(self, session: str, epoch: int) -> None:
        """Take over what a node has let go of."""
        for observer in self._observers:
            observer.on_epoch_done(session, epoch)
        self._handoff_in.take_over()
