"""Past: what topics remember for retroactive consumers, as a node that joins learns it from one that is there.

What comes from then on all nodes hear of each other. A part of Homes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from brokerapp import clock
from brokerapp.destination import Destination
from brokerapp.engine.recovery import Kept
from brokerapp.message import Copy, Message
from brokerapp.nodes.words import Word

if TYPE_CHECKING:
    from brokerapp.broker import Broker
    from brokerapp.nodes.homes import Homes

#: Bytes of messages told of in one word: bounds how long a link is busy with one.
BYTES_AT_ONCE = 1024 * 1024


class Past:
    """That of one node."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes

    async def learn(self) -> None:
        """Ask another node; returns when it has told all, or is gone."""
        told = asyncio.get_running_loop().create_future()

        def then(_refusal: str) -> None:
            if not told.done():
                told.set_result(None)

        self._homes.known.ask(self._homes.others[:1], Word.PAST_WANTED, (), then)
        await told

    def wanted(self, session: str, id: int) -> None:
        """A node that joins asks."""
        rows: list[Any] = []
        size = 0
        for topic, kept, is_retained in self._broker.recovery.all():
            rows.append(_packed(topic, kept, is_retained))
            size += kept.size
            if size >= BYTES_AT_ONCE:
                self._homes.tell(session, Word.PAST, rows)
                rows, size = [], 0
        self._homes.tell(session, Word.PAST, rows)
        self._homes.tell(session, Word.KNOWN, id, "")

    def heard(self, _session: str, rows: Iterable[Any]) -> None:
        """Another node tells of some of it."""
        for topic, some in groupby(rows, key=itemgetter(0)):
            found = [(_unpacked(topic, *facts), is_retained) for _, *facts, is_retained in some]
            retained = next((kept for kept, is_retained in found if is_retained), None)
            recent = [kept for kept, is_retained in found if not is_retained]
            self._broker.recovery.learn(Destination.parse(topic), retained, recent)


def _packed(topic: Destination, kept: Kept, is_retained: bool) -> list[Any]:
    original, shown = (str(each) if each is not None else "" for each in (kept.copy.original, kept.copy.shown))
    return [str(topic), kept.message.stored(), original, shown, clock.now_ms() - kept.at_ms, is_retained]


def _unpacked(topic: str, stored: bytes, original: str, shown: str, age_ms: int) -> Kept:
    at = [Destination.parse(each) if each else None for each in (original, shown)]
    return Kept(Message.load(stored), Copy(Destination.parse(topic), *at), clock.now_ms() - age_ms)
