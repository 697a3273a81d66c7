"""Handles messages of other nodes in the epoch in which they were sent.

What concerns logs in an epoch to come is deferred until this node has come to it, with all that the same node sends
later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import ABOUT_LOGS, PeerMessageType

#: Handlers of messages: called with the session of the sender and the fields.
Handlers = Mapping[PeerMessageType, Callable[..., None]]
#: Messages that hold in their epoch only.
_IN_ITS_EPOCH = frozenset(
    {
        *ABOUT_LOGS,
        PeerMessageType.APPENDED,
        PeerMessageType.DELIVER,
        PeerMessageType.WANT_ENTRIES,
        PeerMessageType.EPOCH_DONE,
    }
)


class PeerInbox(NodeObserver):
    """Handles messages of peers in order, and defers those of an epoch to come."""

    def __init__(self, *, peers: Peers, handlers: Handlers, request_dispatch: Callable[[], None]) -> None:
        self._peers, self._handlers, self._request_dispatch = peers, handlers, request_dispatch
        self._epochs: dict[str, int] = {}  # session -> epoch of what it sends
        self._deferred: dict[str, list[tuple[PeerMessageType, list[Any]]]] = defaultdict(list)  # by session
        #: Requests for consumers of former epochs, by session. An answer before the sender has come to this epoch would
        #: tell it that the owner knows the consumer; nodes of older versions need one.
        self._unanswered: dict[str, list[int]] = defaultdict(list)

    def expect_epoch(self, session: str) -> None:
        """Wait for the epoch of a node: it is the first that the node sends."""
        self._epochs[session] = -1

    def on_link_down(self, session: str) -> None:
        """Drop what is deferred: the node sends it again over the next link."""
        self._deferred.pop(session, None)
        self._unanswered.pop(session, None)

    def on_member_removed(self, session: str) -> None:
        """Forget a node that is no member any more."""
        self._epochs.pop(session, None)
        self._deferred.pop(session, None)
        self._unanswered.pop(session, None)

    def on_message(self, session: str, message_type: PeerMessageType, fields: list[Any]) -> None:
        """Handle a message of another node, or defer it; dispatch what follows from it."""
        if message_type is PeerMessageType.EPOCH:
            self._epochs[session] = fields[0]
            self._answer_former(session)
        elif message_type is PeerMessageType.LOGS and self._peers.is_joining:
            self._peers.confirm(session, fields[0])  # it must not wait for this node, which reads all logs soon
            self._deferred[session].append((message_type, [0, *fields[1:]]))
        else:
            self._handle(session, message_type, fields)
        self._request_dispatch()

    def _handle(self, session: str, message_type: PeerMessageType, fields: list[Any]) -> None:
        current, epoch = self._peers.members.epoch, self._epochs.get(session, -1)
        at_once = message_type is PeerMessageType.EPOCH_DONE and self._peers.is_joining
        is_early = self._peers.is_joining or epoch > current or self._deferred.get(session)
        if not at_once and is_early and message_type in _IN_ITS_EPOCH:
            self._deferred[session].append((message_type, fields))
        elif epoch == current or message_type not in (PeerMessageType.ATTACH, PeerMessageType.UNACKED):
            self._handlers[message_type](session, *fields)
        elif message_type is PeerMessageType.ATTACH:  # it is sent again in this epoch
            self._unanswered[session].append(fields[0])

    def _answer_former(self, session: str) -> None:
        """Answer what a node asked in former epochs, if it has come to this one: it asks again."""
        if self._epochs[session] >= self._peers.members.epoch:
            for request in self._unanswered.pop(session, ()):
                self._peers.confirm(session, request)

    def handle_deferred(self) -> None:
        """Handle what was deferred until the epoch that this node has come to."""
        for session, deferred in list(self._deferred.items()):
            if self._epochs.get(session, -1) <= self._peers.members.epoch:
                del self._deferred[session]
                for message_type, fields in deferred:
                    self._handle(session, message_type, fields)
