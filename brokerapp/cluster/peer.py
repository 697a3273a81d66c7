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
#: What exists that is told in one piece: bounds a frame.
ENTRIES_AT_ONCE = 500
#: What stands in a receipt between the question and the answer.
ANSWER = " "
#: What comes of a question: "" when it was done, else the reason for which it was not.
Then = Callable[[str], None]


class ClusterPeerLink(Protocol):
    """The link to it; see bridge_link.py."""

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None: ...

    def subscribe(self, id: str, destination: str, told: Callable[[Any], None], headers: Mapping[str, str]) -> None: ...

    def unsubscribe(self, id: str) -> None: ...

    def ack(self, ids: Sequence[str]) -> None: ...


class ClusterPeer:
    """`link` is there while it is up."""

    def __init__(self, member: ClusterMember) -> None:
        self.name, self.address = member.name, member.address
        self.state, self.since_ms, self.last_error = MemberState.DOWN, 0, ""
        self.link: ClusterPeerLink | None = None
        self.taken = 0  #: messages taken from it
        self.reconnect_now: Callable[[], None] = lambda: None  #: try to reach it now
        self._pending: dict[str, tuple[Then, Callable[[str], None]]] = {}
        self._numbers = itertools.count(1)

    @property
    def is_up(self) -> bool:
        """Whether it can be told something."""
        return self.link is not None

    # -- the link

    def came(self, link: ClusterPeerLink) -> None:
        """The link works from now on."""
        self.link = link
        self.last_error = ""
        self._set_state(MemberState.UP)
        logger.info("cluster: linked to %s at %s", self.name, self.address)

    def went(self, why: str, *, refused: bool = False) -> None:
        """It does not work (any more)."""
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

    def tell(self, **document: Any) -> None:
        """Tell it something, if it is there to hear it."""
        if self.link is not None:
            self.link.send("SEND", {"destination": CONTROL}, _encoded(document))

    def send_entries(self, verb: str, entries: Sequence[Any], **document: Any) -> None:
        """Tell it what there is, in as many pieces as it takes; it knows the first and the last of them."""
        for start in range(0, max(1, len(entries)), ENTRIES_AT_ONCE):
            end = start + ENTRIES_AT_ONCE
            part, last = entries[start:end], end >= len(entries)
            self.tell(verb=verb, entries=part, first=not start, last=last, **document)

    def ask(self, then: Then, answered: Callable[[str], None] = lambda _answer: None, **document: Any) -> None:
        """Ask it to do something; when it answers more than that it did, `answered` is told what, before `then` is."""
        if self.link is None:
            then(f"{self.name} cannot be reached")
            return
        receipt = f"asked-{next(self._numbers)}"
        self._pending[receipt] = then, answered
        self.link.send("SEND", {"destination": CONTROL, "receipt": receipt}, _encoded(document))

    def confirmed(self, receipt: str) -> None:
        """It has done what it was asked."""
        receipt, _, answer = receipt.partition(ANSWER)
        if (pending := self._pending.pop(receipt, None)) is not None:
            then, answered = pending
            if answer:
                answered(answer)
            then("")

    def refused(self, receipt: str, reason: str) -> None:
        """It does not do what it was asked, or told."""
        then, _ = self._pending.pop(receipt, (None, None))
        if then is not None:
            then(reason)
            return
        self.last_error = reason
        logger.warning("cluster: %s refuses: %s", self.name, reason)


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
