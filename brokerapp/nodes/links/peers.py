"""Knows the members of the broker as this node sees them, and sends messages to the others."""

from __future__ import annotations

from typing import Any, Protocol

from brokerapp.nodes.links.members import NodeMembers
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.protocol import PeerMessageType


class PeerTransport(Protocol):
    """Carries messages to other nodes."""

    def send(self, session: str, message_type: PeerMessageType, *fields: Any) -> None: ...

    def is_linked(self, session: str) -> bool: ...

    def unsent_bytes(self, session: str) -> int: ...

    def reconnect(self, session: str) -> None: ...


class Peers(NodeObserver):
    """The nodes of one broker, of which `session` is this one.

    A node that has no transport, or no other members, owns all logs and sends nothing.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.members = NodeMembers(0, (), session)
        self.other_sessions: list[str] = []
        self.is_joining = False  #: the logs of the broker are not known here yet
        self._transport: PeerTransport | None = None
        self._lost: set[str] = set()  # no members any more, though `members` does not say so yet

    # -- members

    def attach_transport(self, transport: PeerTransport) -> None:
        """Send through this transport; what others say of logs is deferred until this node has joined."""
        self._transport, self.is_joining = transport, True

    def set_members(self, members: NodeMembers) -> None:
        """Go by these members from now on."""
        self.members, self.other_sessions = members, [each.session for each in members.others]

    def set_joining(self, *, is_joining: bool) -> None:
        """Note whether the logs of the broker are yet to be read."""
        self.is_joining = is_joining

    def send_epoch(self, session: str) -> None:
        """Tell a node in which epoch this one sends what follows."""
        self.send(session, PeerMessageType.EPOCH, self.members.epoch)

    def send_epoch_done(self, session: str) -> None:
        """Tell a node that this one dispatches nothing which that one could take over."""
        self.send(session, PeerMessageType.EPOCH_DONE, self.members.epoch)

    def is_other_member(self, session: str) -> bool:
        """Return whether this is another live member."""
        return bool(session) and session in self.other_sessions

    def mark_lost(self, session: str) -> None:
        """Wait for nothing that this node is asked: it is no member any more."""
        self._lost.add(session)

    def is_lost(self, session: str) -> bool:
        """Return whether a node is no member any more, though `members` may still name it."""
        return session in self._lost

    def on_member_removed(self, session: str) -> None:
        """Forget a node that `members` does not name any more."""
        self._lost.discard(session)

    # -- owners of logs

    def owner_of(self, log: str) -> str:
        """Return the session of the node that dispatches from a log, or is about to."""
        return self.members.owner_of(log)

    def is_local(self, log: str) -> bool:
        """Return whether this node owns a log."""
        return not self.other_sessions or self.members.is_local(log)

    # -- messages

    def send(self, session: str, message_type: PeerMessageType, *fields: Any) -> None:
        """Send a message to a node; it is lost where there is no link."""
        if self._transport is not None:
            self._transport.send(session, message_type, *fields)

    def confirm(self, session: str, request: int, refusal: str = "") -> None:
        """Answer a request of another node: it is done, or refused for this reason."""
        self.send(session, PeerMessageType.CONFIRMED, request, refusal)

    def send_to_owner(self, log: str, message_type: PeerMessageType, *fields: Any) -> None:
        """Send a message to the owner of a log."""
        self.send(self.owner_of(log), message_type, *fields)

    def is_linked(self, session: str) -> bool:
        """Return whether there is a link to a node."""
        return self._transport is not None and self._transport.is_linked(session)

    def unsent_bytes(self, session: str) -> int:
        """Return how many bytes wait for a node to read them."""
        return self._transport.unsent_bytes(session) if self._transport is not None else 0

    def reconnect(self, session: str) -> None:
        """Close the link to a node, so that both say again all that concerns the other."""
        if self._transport is not None:
            self._transport.reconnect(session)
