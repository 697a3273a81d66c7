"""ReadTurns: handles together what the connections of a node read in one turn of the event loop.

Many clients that each send one message and wait for its receipt send again when the receipts of a commit reach them:
at once. What a batch of messages costs is then paid once for all of them, not once for each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

logger = logging.getLogger(__name__)


class Reader(Protocol):
    """A connection that has read something."""

    def handle_reads(self) -> bool:
        """Handle what was read; return whether it ended with messages, which `publish` publishes."""

    def publish(self) -> None:
        """Publish the messages with which what was read ended."""

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
        self._readers: list[Reader] = []

    def add(self, reader: Reader) -> None:
        """Handle what this connection has read at the end of the turn."""
        if not self._readers:
            self._call_soon(self._run)
        self._readers.append(reader)

    def _run(self) -> None:
        readers, self._readers = self._readers, []
        publishing: list[Reader] = []
        for each in readers:
            try:
                if each.handle_reads():
                    publishing.append(each)
            except Exception as fault:
                _end([each], fault)
        try:
            if publishing:
                with self._joining():
                    for each in publishing:
                        each.publish()
        except Exception as fault:
            _end(publishing, fault)
        self._dispatch()


def _end(readers: Sequence[Reader], fault: Exception) -> None:
    """End connections after a fault of ours, so that their clients know that they get no answer; others go on."""
    logger.error("what %d connections sent could not be handled", len(readers), exc_info=fault)
    for each in readers:
        each.abort()
