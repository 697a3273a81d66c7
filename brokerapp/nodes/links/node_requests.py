"""Sends requests to other nodes, and calls back when all of them have confirmed or one has refused.

A node that leaves or dies is waited for no longer. What a node was asked when its link was lost is sent again over the
next one, except for consumers: their owners are told of them anew, as they are in each epoch.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import INDEPENDENT_QUESTIONS, PeerMessageType

logger = logging.getLogger(__name__)

#: Called with "", or with the reason of a refusal.
OnConfirmed = Callable[[str], None]


@dataclass(slots=True)
class PendingRequest:
    """A request that not all nodes have answered yet."""

    message_type: PeerMessageType
    fields: tuple[Any, ...]
    waiting: set[str]  #: sessions that did not answer
    callbacks: list[OnConfirmed]
    refusal: str = ""

    def run_callbacks(self) -> None:
        """Report the outcome; a callback that fails does not keep the others from being called."""
        for callback in self.callbacks:
            try:
                callback(self.refusal)
            except Exception:
                logger.exception("what waited for the answers of other nodes could not be done")


class NodeRequests(NodeObserver):
    """Requests of this node that other nodes have to confirm."""

    def __init__(self, *, peers: Peers) -> None:
        self._peers = peers
        self._ids = itertools.count(1)
        self._pending: dict[int, PendingRequest] = {}

    def send(
        self, sessions: Iterable[str], message_type: PeerMessageType, fields: tuple[Any, ...], then: OnConfirmed
    ) -> None:
        """Send a request to these nodes; `then` is called when all have answered."""
        request = PendingRequest(
            message_type, fields, {each for each in sessions if not self._peers.is_lost(each)}, [then]
        )
        if not request.waiting:
            then("")
            return
        id = next(self._ids)
        self._pending[id] = request
        for session in request.waiting:
            self._peers.send(session, message_type, id, *fields)

    def broadcast(self, message_type: PeerMessageType, *fields: Any) -> None:
        """Send a request to all other nodes; whoever must be sure of it waits with `when_confirmed`."""
        self.send(self._peers.other_sessions, message_type, fields, lambda _refusal: None)

    def when_confirmed(self, then: Callable[[], None]) -> None:
        """Call back when all requests sent so far are answered; at once where none is open."""
        pending = {id for id, each in self._pending.items() if each.message_type not in INDEPENDENT_QUESTIONS}
        if not pending:
            then()
            return

        def done(id: int, _refusal: str) -> None:
            pending.discard(id)
            if not pending:
                then()

        for id in pending:
            self._pending[id].callbacks.append(partial(done, id))

    def on_confirmed(self, session: str, id: int, refusal: str) -> None:
        """Take the answer of a node."""
        request = self._pending.get(id)
        if request is None:
            return
        request.waiting.discard(session)
        request.refusal = request.refusal or refusal
        if not request.waiting:
            del self._pending[id]
            request.run_callbacks()

    def on_link_up(self, session: str) -> None:
        """Send a node again what it has not answered."""
        for id, request in self._pending.items():
            if session in request.waiting and request.message_type is not PeerMessageType.ATTACH:
                self._peers.send(session, request.message_type, id, *request.fields)

    def on_link_down(self, session: str) -> None:
        """Give up what a node was told of consumers: it is told anew when it is linked again."""
        attached = [id for id, each in self._pending.items() if each.message_type is PeerMessageType.ATTACH]
        self._confirm_for(session, attached)

    def on_member_lost(self, session: str) -> None:
        """Wait no longer for a node that is no member any more, before logs follow its absence."""
        self._peers.mark_lost(session)
        self._confirm_for(session, list(self._pending))

    def _confirm_for(self, session: str, ids: Iterable[int]) -> None:
        for id in ids:
            if id in self._pending and session in self._pending[id].waiting:
                self.on_confirmed(session, id, "")
