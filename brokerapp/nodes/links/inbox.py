"""Handles messages of other nodes in the epoch in which they were sent.

What is said of logs in an epoch to come waits until this node has come to it, with all that the same node says later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.nodes.links.protocol import ABOUT_LOGS, PeerMessageType

if TYPE_CHECKING:
    from brokerapp.nodes.ports import NodeOwnership

#: Of what a node says, that which holds in its epoch only.
_IN_ITS_EPOCH = frozenset(
    {
        *ABOUT_LOGS,
        PeerMessageType.APPENDED,
        PeerMessageType.DELIVER,
        PeerMessageType.WANT_ENTRIES,
        PeerMessageType.EPOCH_DONE,
    }
)


class PeerInbox:
    """Handles messages of peers in order, and defers those of an epoch to come."""

    def __init__(self, ownership: NodeOwnership, perform: Mapping[PeerMessageType, Callable[..., None]]) -> None:
        self._ownership, self._handlers = ownership, perform
        self._epochs: dict[str, int] = {}  # session -> epoch of what it says
        self._deferred: dict[str, list[tuple[PeerMessageType, list[Any]]]] = defaultdict(
            list
        )  # said in an epoch to come

    def on_link_up(self, session: str) -> None:
        """A node hears us from now on, and says in which epoch it is before it says anything else."""
        self._epochs[session] = -1

    def on_link_down(self, session: str) -> None:
        """It does no more: what it said is said anew."""
        self._deferred.pop(session, None)

    def forget(self, session: str) -> None:
        """It is no member any more."""
        self._epochs.pop(session, None)
        self._deferred.pop(session, None)

    def on_message(self, session: str, word: PeerMessageType, facts: list[Any]) -> None:
        """A node says something."""
        if word is PeerMessageType.EPOCH:
            self._epochs[session] = facts[0]
        elif word is PeerMessageType.LOGS and self._ownership.is_joining:
            self._ownership.send(
                session, PeerMessageType.CONFIRMED, facts[0], ""
            )  # it must not wait for us, who read all logs soon
            self._deferred[session].append((word, [0, *facts[1:]]))
        else:
            self._handle(session, word, facts)

    def _handle(self, session: str, word: PeerMessageType, facts: list[Any]) -> None:
        homes, epoch = self._ownership, self._epochs.get(session, -1)
        at_once = word is PeerMessageType.EPOCH_DONE and homes.is_joining
        is_early = homes.is_joining or epoch > homes.members.epoch or self._deferred.get(session)
        if not at_once and is_early and word in _IN_ITS_EPOCH:
            self._deferred[session].append((word, facts))
        elif epoch == homes.members.epoch or word not in (PeerMessageType.ATTACH, PeerMessageType.UNACKED):
            self._handlers[word](session, *facts)
        elif (
            word is PeerMessageType.ATTACH
        ):  # it says so again when it has come to this epoch: nobody waits for this answer
            homes.send(session, PeerMessageType.CONFIRMED, facts[0], "")

    def handle_deferred(self) -> None:
        """What was said in this epoch before we came to it."""
        for session, said in list(self._deferred.items()):
            if self._epochs.get(session, -1) <= self._ownership.members.epoch:
                del self._deferred[session]
                for word, facts in said:
                    self._handle(session, word, facts)
