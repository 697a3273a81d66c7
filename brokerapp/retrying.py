"""Retrying: dead letters go back to where they failed, when an operator wants it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.client import Placed
from brokerapp.delivery import entry_of
from brokerapp.destination import Destination
from brokerapp.engine.dead_letters import CAUSE, revived
from brokerapp.engine.message_log import Entry, MessageLog
from brokerapp.errors import RequestRefused
from brokerapp.store import StoredEntry, Unit

if TYPE_CHECKING:
    from brokerapp.broker import Broker

#: Messages looked at, and moved, at once.
PAGE = 500


class Retrying:
    """Another life for dead letters. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def retry(self, log: MessageLog, then: Callable[[int], None], seq: int | None = None) -> None:
        """Send the dead letters of a queue back (or the one of this number); `then` is told how many.

        Those that consumers hold stay, and what comes to the queue meanwhile.
        """
        after, count = (0, log.depth) if seq is None else (seq - 1, 1)
        self._step(log, after, count, 0, lambda moved: then(moved), seq)

    def _step(
        self, log: MessageLog, after: int, left: int, moved: int, then: Callable[[int], None], seq: int | None
    ) -> None:
        window = log.window

        def found(page: list[StoredEntry]) -> None:
            if not page:
                then(moved)
            elif window != log.window:  # some of it may be settled meanwhile
                self._step(log, after, left, moved, then, seq)
            else:
                back = self._send_back(log, [each for each in page if seq in (None, each.seq)])
                self._step(log, page[-1].seq, left - len(page), moved + back, then, seq)

        if left > 0:
            self._broker.committer.read(log.name, after, min(left, PAGE), found)
        else:
            then(moved)

    def _send_back(self, log: MessageLog, page: list[StoredEntry]) -> int:
        """Move those of these that are dead letters and that nobody holds; how many."""
        ways = {each.seq: way for each in page if (way := self._way(each)) is not None}
        seized = log.seize(list(ways))
        for each in page:
            if each.seq in seized:
                self._move(log, entry_of(log.name, each), ways[each.seq])
        self._broker.delivery.touched[log] = None
        return len(seized)

    def _way(self, stored: StoredEntry) -> Placed | None:
        """Where a dead letter goes back to; None for what is none, and where it cannot go."""
        headers = stored.message.headers
        source = headers.get("original-destination")
        if source is None or CAUSE not in headers:
            return None
        try:
            return self._broker.publishing.on_its_way(revived(stored.message), Destination.parse(source))
        except RequestRefused:
            return None

    def _move(self, log: MessageLog, entry: Entry, way: Placed) -> None:
        log.settled((entry,))
        log.counts.DequeueCount += 1
        self._broker.stats.changed.add(log.counts)
        appends = [(way.stored, group.rows) for group in way.route.groups]
        happened = self._broker.publishing.happened
        self._broker.committer.submit(Unit(appends, [entry], moves=True, then=lambda at, _refused: happened([way], at)))
