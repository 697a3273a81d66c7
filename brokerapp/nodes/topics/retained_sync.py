"""Copies retained messages of topics to a node that joins.

The node asks page by page, so that neither node stands still and no link is busy with all of it. What is retained from
then on all nodes hear of each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from brokerapp.engine.policy.subscription_recovery import RetainedMessage
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import RetainedSource
from brokerapp.system import clock

#: Bytes of messages on a page, before the last of them: sending one takes some milliseconds.
PAGE_BYTES = 1024 * 1024
#: A retained message, packed as `_pack` does.
Row = list[Any]


@dataclass(slots=True)
class RetainedSyncSession:
    """The pages for a node that joins. `number` is that of the page that it got last."""

    pages: Iterator[list[Row]]
    number: int = -1
    rows: list[Row] = field(default_factory=list)

    def page_at(self, number: int) -> list[Row]:
        """Return the next page, or the last one again if its link was lost; a page without rows ends the list."""
        if number > self.number:
            self.number, self.rows = number, next(self.pages, [])
        return self.rows


class RetainedSync(NodeObserver):
    """Exchanges retained messages with other nodes, page by page."""

    def __init__(self, *, peers: Peers, requests: NodeRequests, retained: RetainedSource) -> None:
        self._peers, self._requests, self._retained = peers, requests, retained
        self._sessions: dict[str, RetainedSyncSession] = {}  # by the session that asks
        self._received: list[Row] | None = None  # the page that came since it was asked for
        self._started_ms = 0  # when the first page was asked for: ages on all pages are as of one moment

    # -- asking

    async def fetch(self) -> None:
        """Ask the other nodes, one after the other, until one has sent all. A node that joins or goes sends nothing."""
        for session in list(self._peers.other_sessions):
            if await self._fetch_from(session):
                return

    async def _fetch_from(self, session: str) -> bool:
        """Return whether this node has sent all it has."""
        number, self._started_ms = 0, clock.now_ms()
        while rows := await self._request_page(session, number):
            number += 1
        return rows is not None

    async def _request_page(self, session: str, number: int) -> list[Row] | None:
        """Fetch one page, empty after the last one; None if the node does not send it."""
        if session not in self._peers.other_sessions:
            return None
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._received = None

        def on_confirmed(_refusal: str) -> None:
            if not answered.done():
                answered.set_result(None)

        self._requests.send([session], PeerMessageType.GET_RETAINED, (number,), on_confirmed)
        await answered
        return self._received

    def on_page(self, _session: str, rows: list[Row]) -> None:
        """Take a page of retained messages from another node."""
        self._received = rows
        for topic, some in groupby(rows, key=itemgetter(0)):
            found = [(_unpack(row, self._started_ms), row[-1]) for row in some]
            retained = next((kept for kept, is_retained in found if is_retained), None)
            recent = [kept for kept, is_retained in found if not is_retained]
            self._retained.learn(Destination.parse(topic), retained, recent)

    # -- answering

    def on_page_requested(self, session: str, id: int, number: int) -> None:
        """Send a page to a node that joins. A node that joins itself sends nothing."""
        if not number and not self._peers.is_joining:
            self._sessions[session] = RetainedSyncSession(_pages(self._retained.all(), clock.now_ms()))
        sync = self._sessions.get(session)
        if sync is not None:
            self._peers.send(session, PeerMessageType.RETAINED, sync.page_at(number))
            if not sync.rows:
                del self._sessions[session]
        self._peers.confirm(session, id)

    def on_member_removed(self, session: str) -> None:
        """Forget what a node was about to get."""
        self._sessions.pop(session, None)


def _pages(retained: Iterable[tuple[Destination, RetainedMessage, bool]], now_ms: int) -> Iterator[list[Row]]:
    """Yield packed messages, as many at a time as a link may be busy with; ages are as of now."""
    rows: list[Row] = []
    size = 0
    for topic, kept, is_retained in retained:
        rows.append(_pack(topic, kept, is_retained, now_ms))
        size += kept.size
        if size >= PAGE_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _pack(topic: Destination, kept: RetainedMessage, is_retained: bool, now_ms: int) -> Row:
    original, shown = (str(each) if each is not None else "" for each in (kept.copy.original, kept.copy.shown))
    return [str(topic), kept.message.stored(), original, shown, now_ms - kept.at_ms, is_retained]


def _unpack(row: Row, now_ms: int) -> RetainedMessage:
    topic, stored, original, shown, age_ms, _ = row
    at = (Destination.parse(each) if each else None for each in (original, shown))
    return RetainedMessage(Message.load(stored), RoutedCopy(Destination.parse(topic), *at), now_ms - age_ms)
