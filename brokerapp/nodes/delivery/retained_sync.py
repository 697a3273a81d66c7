"""Copies retained messages of topics to a node that joins.

It is asked for page by page, so that neither node stands still and no link is busy with all of it. What comes from then
on all nodes hear of each other. A part of OwnershipCoordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from brokerapp.engine.policy.subscription_recovery import RetainedMessage
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

#: Bytes of messages on a page, before the last of them: telling one takes some milliseconds.
PAGE_BYTES = 1024 * 1024


@dataclass(slots=True)
class RetainedSyncSession:
    """What a node that joins is told. `number` is that of the page that it was told last."""

    pages: Iterator[list[Any]]
    number: int = -1
    rows: list[Any] = field(default_factory=list)

    def page_at(self, number: int) -> list[Any]:
        """The next page, or the last one again, as its link was lost; one without rows comes after all."""
        if number > self.number:
            self.number, self.rows = number, next(self.pages, [])
        return self.rows


class RetainedSync:
    """Exchanges retained messages with other nodes, page by page."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._sessions: dict[str, RetainedSyncSession] = {}  # by the session that is told
        self._received: list[Any] | None = None  # the page that was told since it was asked for
        self._started_ms = 0  # when the first page was asked for: ages on all pages are as of one moment

    # -- learning

    async def fetch(self) -> None:
        """Ask the other nodes, one after the other, until one has told all; who joins itself, or goes, has not."""
        for session in list(self._ownership.other_sessions):
            if await self._learn_from(session):
                return

    async def _learn_from(self, session: str) -> bool:
        """Whether it has told all."""
        number, self._started_ms = 0, clock.now_ms()
        while rows := await self._request_page(session, number):
            number += 1
        return rows is not None

    async def _request_page(self, session: str, number: int) -> list[Any] | None:
        """One page, of which nothing is left to learn; None: it is not told."""
        if session not in self._ownership.other_sessions:
            return None
        self._received, answered = None, asyncio.get_running_loop().create_future()
        self._ownership.propagation.request(
            [session],
            PeerMessageType.GET_RETAINED,
            (number,),
            lambda _refusal: answered.done() or answered.set_result(None),
        )
        await answered
        return self._received

    def on_page(self, _session: str, rows: list[Any]) -> None:
        """Another node tells of some of it."""
        self._received = rows
        for topic, some in groupby(rows, key=itemgetter(0)):
            found = [(_unpacked(topic, *facts, self._started_ms), is_retained) for _, *facts, is_retained in some]
            retained = next((kept for kept, is_retained in found if is_retained), None)
            recent = [kept for kept, is_retained in found if not is_retained]
            self._broker.retained.learn(Destination.parse(topic), retained, recent)

    # -- telling

    def on_page_requested(self, session: str, id: int, number: int) -> None:
        """A node that joins asks for a page. One that joins itself tells nothing."""
        if not number and not self._ownership.is_joining:
            self._sessions[session] = RetainedSyncSession(_pages(self._broker.retained.all(), clock.now_ms()))
        telling = self._sessions.get(session)
        if telling is not None:
            self._ownership.send(session, PeerMessageType.RETAINED, telling.page_at(number))
            if not telling.rows:
                del self._sessions[session]
        self._ownership.send(session, PeerMessageType.CONFIRMED, id, "")

    def forget(self, session: str) -> None:
        """It is no member any more."""
        self._sessions.pop(session, None)


def _pages(remembered: Iterable[tuple[Destination, RetainedMessage, bool]], now_ms: int) -> Iterator[list[Any]]:
    """So much of it at a time as a link may be busy with, packed; of what age now."""
    rows: list[Any] = []
    size = 0
    for topic, kept, is_retained in remembered:
        rows.append(_packed(topic, kept, is_retained, now_ms))
        size += kept.size
        if size >= PAGE_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _packed(topic: Destination, kept: RetainedMessage, is_retained: bool, now_ms: int) -> list[Any]:
    original, shown = (str(each) if each is not None else "" for each in (kept.copy.original, kept.copy.shown))
    return [str(topic), kept.message.stored(), original, shown, now_ms - kept.at_ms, is_retained]


def _unpacked(topic: str, stored: bytes, original: str, shown: str, age_ms: int, now_ms: int) -> RetainedMessage:
    at = [Destination.parse(each) if each else None for each in (original, shown)]
    return RetainedMessage(Message.load(stored), RoutedCopy(Destination.parse(topic), *at), now_ms - age_ms)
