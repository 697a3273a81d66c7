"""ReadTurns: handles together what the connections of a node read in one turn of the event loop.

Many clients that each send one message and wait for its receipt send again when the receipts of a commit reach them:
at once. What a batch of messages costs is then paid once for all of them, not once for each. What is read beyond
TURN_BYTES is handled in the next turns, so that the store commits the first messages while the others are parsed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

logger = logging.getLogger(__name__)

#: Bytes of reads from which a turn handles no more of them: some 90 orders. With no limit, clients, node and store
#: worked in turn, each on all that the windows of the clients allow: 24,000 orders a second instead of 34,000. With
#: half of it a message costs more, as the batches are smaller.
TURN_BYTES = 128 * 1024


class Reader(Protocol):
    """A connection that has read something."""

    @property
    def has_reads(self) -> bool:
        """Return whether something was read that can be handled and is not yet."""

    def handle_reads(self, limit: int) -> int:
        """Handle what was read, up to the read that reaches this number of bytes; return the number of bytes."""

    def publish(self) -> None:
        """Publish the messages with which what was handled ended."""

    def abort(self) -> None:
        """End the connection, whatever state it is in."""


class ReadTurns:
    """Collects connections that have read something, and handles what they read at the end of the turn.

    `joining` is entered while their messages are published; `dispatch` runs a round of dispatch; `call_soon` is the
    event loop's.
    """

    def __init__(
        self,
        *,
        joining: Callable[[], AbstractContextManager[None]],
        dispatch: Callable[[], None],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._joining, self._dispatch, self._call_soon = joining, dispatch, call_soon
        self._readers: deque[Reader] = deque()
        self._is_scheduled = False

    def add(self, reader: Reader) -> None:
        """Handle what this connection has read at the end of the turn, or after what others read before."""
        self._readers.append(reader)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        handled = self._handle(TURN_BYTES)
        try:
            with self._joining():
                for each in handled:
                    each.publish()
        except Exception as fault:
            _end(handled, fault)
        if self._readers:
            self._schedule()
        self._dispatch()

    def _handle(self, limit: int) -> Sequence[Reader]:
        """Let connections handle so many bytes of their reads, or somewhat more, in turn; return which did."""
        handled: list[Reader] = []
        while self._readers and limit > 0:
            each = self._readers.popleft()
            try:
                limit -= each.handle_reads(limit)
            except Exception as fault:
                _end([each], fault)
                continue
            handled.append(each)
            if each.has_reads:
                self._readers.append(each)
        return handled


def _end(readers: Sequence[Reader], fault: Exception) -> None:
    """End connections after a fault of ours, so that their clients know that they get no answer; others go on."""
    logger.error("what %d connections sent could not be handled", len(readers), exc_info=fault)
    for each in readers:
        each.abort()
