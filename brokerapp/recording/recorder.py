"""Recorder: takes trace events on the broker's hot path and gives them back as Arrow batches.

Adding converts nothing, it appends references to flat lists; `take` turns them into Arrow arrays, a column at a time.
Events that come one by one are rows; events that come in bulk are *runs*: some messages, each at some destinations, at
one time. A run costs little more than a row, however many copies it stands for.

    _rows       9 references each: ts, kind, id, size, born, destination, original, consumer, reason
    _heads      of each enqueue among the rows, when properties are recorded
    _runs       6 references each: ts, kind, destinations, consumer, reason, number of messages
    _messages   4 references for each message of a run: id, size, born, original

Synchronous, without clock and I/O; it belongs to one event loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from brokerapp.message import Message
from brokerapp.recording.encoding import encode_rows, encode_runs
from brokerapp.recording.properties import bounded
from brokerapp.recording.schema import ENQUEUE

#: Events in a batch. A run is never cut, so a batch may hold one run more.
BATCH = 8192
#: Events that may wait to be taken; beyond it the oldest are dropped and counted.
MAX_PENDING = 32 * BATCH

ROW, RUN, MESSAGE = 9, 6, 4
_MAX_LENGTH = MAX_PENDING * ROW


class Recorder:
    """Trace events of one node. Times are microseconds since the epoch, destinations in native form: `queue://N`."""

    def __init__(self, broker: str, properties: bool = True) -> None:
        self.broker, self.properties = broker, properties
        self.dropped = 0  #: events given up because nobody took them
        self._taken = 0
        self._rows: list = []
        self._heads: list[bytes] = []
        self._runs: list = []
        self._messages: list = []
        self._in_runs = 0  # events the runs stand for

    @property
    def pending(self) -> int:
        """Events waiting to be taken."""
        return len(self._rows) // ROW + self._in_runs

    @property
    def recorded(self) -> int:
        """Events noted since the start, those dropped included."""
        return self._taken + self.dropped + self.pending

    def enqueue(self, ts_us: int, message: Message, destination: str) -> None:
        """The message arrived at the broker: once for each SEND, before routing."""
        if self.properties:
            self._heads.append(bounded(message.head))
        self.event(ENQUEUE, ts_us, message, destination, destination, None, None)

    def event(
        self,
        kind: int,
        ts_us: int,
        message: Message,
        destination: str,
        original: str,
        consumer: str | None,
        reason: str | None,
    ) -> None:
        """Something happened to one message at one destination."""
        rows = self._rows
        rows += (ts_us, kind, message.id, len(message.body), message.born_us, destination, original, consumer, reason)
        if len(rows) > _MAX_LENGTH:
            self._bound()

    def copies(self, kind: int, ts_us: int, message: Message, original: str, destinations: Sequence[str]) -> None:
        """The same happened to one message at many destinations: it was forwarded to them.

        `destinations` is kept, not copied: it must not change.
        """
        self._runs += (ts_us, kind, destinations, None, None, 1)
        self._messages += (message.id, len(message.body), message.born_us, original)
        self._in_runs += len(destinations)
        if self._in_runs > MAX_PENDING:
            self._bound()

    def events(
        self,
        kind: int,
        ts_us: int,
        messages: Sequence[Message],
        destination: str,
        originals: Sequence[str],
        consumer: str | None,
        reason: str | None,
    ) -> None:
        """The same happened to many messages at one destination; `originals` are theirs, one each."""
        self._runs += (ts_us, kind, (destination,), consumer, reason, len(messages))
        noted = self._messages
        for message, original in zip(messages, originals, strict=True):
            noted += (message.id, len(message.body), message.born_us, original)
        self._in_runs += len(messages)
        if self._in_runs > MAX_PENDING:
            self._bound()

    def take(self, limit: int = BATCH) -> tuple[bytes, int] | None:
        """The oldest waiting events, about `limit`, as an Arrow IPC stream of one batch, and how many they are."""
        if not self._rows and not self._runs:
            return None
        if self._rows_are_older():
            rows, heads = self._cut_rows(limit)
            count, data = len(rows) // ROW, encode_rows(self.broker, rows, heads)
        else:
            runs, messages, count = self._cut_runs(limit)
            data = encode_runs(self.broker, runs, messages)
        self._taken += count
        return data, count

    def _rows_are_older(self) -> bool:
        return not self._runs or (bool(self._rows) and self._rows[0] <= self._runs[0])

    def _cut_rows(self, limit: int) -> tuple[list, list[bytes]]:
        """Take the first rows out, with the heads that belong to them."""
        rows = self._rows[: limit * ROW]
        del self._rows[: limit * ROW]
        heads = self._heads[: rows[1::ROW].count(ENQUEUE)] if self.properties else []
        del self._heads[: len(heads)]
        return rows, heads

    def _cut_runs(self, limit: int) -> tuple[list, list, int]:
        """Take the first runs out, with their messages, and say how many events they stand for."""
        count = cut = messages = 0
        while count < limit and cut < len(self._runs):
            of_run = self._runs[cut + 5]
            messages += of_run
            count += of_run * len(self._runs[cut + 2])
            cut += RUN
        parts = self._runs[:cut], self._messages[: messages * MESSAGE], count
        del self._runs[:cut], self._messages[: messages * MESSAGE]
        self._in_runs -= count
        return parts

    def _bound(self) -> None:
        """Drop the oldest events, a batch at a time, until the rest is within the limit."""
        while (excess := self.pending - MAX_PENDING) > 0:
            before = self.pending
            if self._rows_are_older():
                self._cut_rows(max(excess, BATCH))
            else:
                self._cut_runs(max(excess, BATCH))
            self.dropped += before - self.pending
