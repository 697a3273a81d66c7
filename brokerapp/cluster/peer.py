"""Represent another broker of the cluster, and send it requests over its link."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from brokerapp.cluster.settings import ClusterMember
from brokerapp.cluster.status import MemberState
from brokerapp.system import clock

logger = logging.getLogger(__name__)

#: Where a broker sends what it has to tell another one: no destination, as on such a link nobody else is heard.
CONTROL = "/cluster"
#: What the client id of a link begins with, before the name of the member that has it.
LINK_PREFIX = "cluster:"
#: What exists that is told in one piece: bounds a frame.
ENTRIES_AT_ONCE = 500
#: What stands in a receipt between the question and the answer.
ANSWER = " "
#: What comes of a question: "" when it was done, else the reason for which it was not.
OnAnswer = Callable[[str], None]


class ClusterPeerLink(Protocol):
    """The link to another broker; see bridge_link.py."""

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None: ...

    def subscribe(self, id: str, destination: str, told: Callable[[Any], None], headers: Mapping[str, str]) -> None: ...

    def unsubscribe(self, id: str) -> None: ...

    def ack(self, ids: Sequence[str]) -> None: ...


class ClusterPeer:
    """Another broker of the cluster, or a node of one. `link` is set while the link to it works."""

    def __init__(self, member: ClusterMember) -> None:
        self.name, self.broker, self.address = member.name, member.broker, member.address
        self.state, self.since_ms, self.last_error = MemberState.DOWN, 0, ""
        self.link: ClusterPeerLink | None = None
        self.received_count = 0  #: messages taken from it
        self.serving: Mapping[
            str, Any
        ] = {}  #: where it serves clients: its `host`, and its `listeners` as in its status
        self.on_subscription_refused: Callable[[str], None] = lambda _receipt: None  #: told of its receipt
        self.reconnect_now: Callable[[], None] = lambda: None  #: try to reach it now
        self._pending: dict[str, tuple[OnAnswer, Callable[[str], None]]] = {}
        self._numbers = itertools.count(1)

    @property
    def is_up(self) -> bool:
        """Return whether the link to it works."""
        return self.link is not None

    # -- the link

    def on_connected(self, link: ClusterPeerLink) -> None:
        """Use this link to it from now on."""
        self.link = link
        self.last_error = ""
        self._set_state(MemberState.UP)
        logger.info("cluster: linked to %s at %s", self.name, self.address)

    def on_lost(self, why: str, *, refused: bool = False) -> None:
        """Note why the link does not work (any more), and fail all requests under way."""
        if self.link is not None or why != self.last_error:
            logger.warning("cluster: no link to %s at %s: %s", self.name, self.address, why)
        self.link, self.last_error = None, why
        self._set_state(MemberState.REFUSED if refused else MemberState.DOWN)
        asked, self._pending = self._pending, {}
        for then, _ in asked.values():
            then(f"the link to {self.name} broke before it answered")

    def _set_state(self, state: MemberState) -> None:
        if state is not self.state or not self.since_ms:
            self.state, self.since_ms = state, clock.now_ms()

    # -- what is asked

    def send(self, **document: Any) -> None:
        """Send it something, if the link works."""
        if self.link is not None:
            self.link.send("SEND", {"destination": CONTROL}, _encoded(document))

    def send_entries(self, verb: str, entries: Sequence[Any], **document: Any) -> None:
        """Send it a list in parts, of which the first and the last are marked."""
        for start in range(0, max(1, len(entries)), ENTRIES_AT_ONCE):
            end = start + ENTRIES_AT_ONCE
            part, last = entries[start:end], end >= len(entries)
            self.send(verb=verb, entries=part, first=not start, last=last, **document)

    def request(self, then: OnAnswer, answered: Callable[[str], None] = lambda _answer: None, **document: Any) -> None:
        """Request something of it; `answered` is called with what it answers beyond a confirmation, then `then`."""
        if self.link is None:
            then(f"{self.name} cannot be reached")
            return
        receipt = f"asked-{next(self._numbers)}"
        self._pending[receipt] = then, answered
        self.link.send("SEND", {"destination": CONTROL, "receipt": receipt}, _encoded(document))

    def on_confirmed(self, receipt: str) -> None:
        """Complete the request with this receipt."""
        receipt, _, answer = receipt.partition(ANSWER)
        if (pending := self._pending.pop(receipt, None)) is not None:
            then, answered = pending
            if answer:
                answered(answer)
            then("")

    def on_refused(self, receipt: str, reason: str) -> None:
        """Fail the request with this receipt; note the reason when it was none."""
        then, _ = self._pending.pop(receipt, (None, None))
        if then is not None:
            then(reason)
            return
        if reason != self.last_error:
            logger.warning("cluster: %s refuses: %s", self.name, reason)
        self.last_error = reason
        self.on_subscription_refused(receipt)


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
