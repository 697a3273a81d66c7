"""TraceRecorder: collects trace events on the broker's hot path and returns them in batches.

Events come in *runs*: the same happened to some messages, each at some destinations, at one time. A run costs little
however many events it stands for: adding converts nothing, it appends references to flat lists, which are packed as
they are (encoding.py).

    _runs       7 references each: ts, kind, destinations, original, consumer, reason, number of messages
    _facts      (id, size, born) of each message of a run; none where they are those of the run before, whose number of
                messages is negative then
    _heads      of each message that was enqueued, when properties are recorded

Synchronous, without clock and I/O; it belongs to one event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from brokerapp.model.message import Message
from brokerapp.tracing.encoding import encode, packed_parts
from brokerapp.tracing.schema import ENQUEUE, RUN_FIELDS, TRACE_CONTEXT

#: Events in a batch: packing them stops the event loop for a millisecond, some when each is a run of its own. A run is
#: never cut, so a batch may hold one run more.
BATCH_EVENTS = 16_384
#: Events that may wait to be taken; beyond it the oldest are dropped and counted.
MAX_PENDING = 16 * BATCH_EVENTS
#: How late an event may be noted after it happened. What is later was stamped by a clock that was set back since.
LATEST_US = 60_000_000

#: The most bytes of one head that are kept for the properties of its message.
MAX_HEAD = 4096

#: The most bytes of a line with the trace context that are kept beyond that: W3C's limit of a tracestate, and its name.
MAX_CONTEXT = 1024
_CONTEXT_LINES = tuple(sorted(f"{name}:".encode() for name in TRACE_CONTEXT))

#: The fields of all runs, which have different types, one after the other.
Runs = list[Any]


def limit_head(head: bytes) -> bytes:
    """Return the head's leading lines, at most MAX_HEAD bytes of them, and its trace context where it is short."""
    if len(head) <= MAX_HEAD:
        return head
    cut = head.rfind(b"\n", 0, MAX_HEAD) + 1
    return head[:cut] + b"".join(_line_after(head, cut, name) for name in _CONTEXT_LINES)


def _line_after(head: bytes, cut: int, name: bytes) -> bytes:
    """Return the first line of this name from a position on that begins a line; empty for none, or a long one."""
    at = cut if head.startswith(name, cut) else head.find(b"\n" + name, cut) + 1
    end = head.find(b"\n", at, at + MAX_CONTEXT)
    return head[at : end + 1] if at and end >= 0 else b""


class Traceable(Protocol):
    """Subject of an event: a message, or what stands in for one."""

    @property
    def facts(self) -> tuple[str, int, int]:
        """Message-id, size and time of birth in microseconds."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events that were taken, as they were noted."""

    broker: str
    runs: Runs
    facts: list[tuple[str, int, int]]
    heads: list[bytes]
    count: int  #: of the events
    #: By where they were sent to: for how many messages those stand that are in it (sampling.py); elsewhere 1.
    weights: dict[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Encode the batch as bytes."""
        return encode(self.broker, self.runs, self.facts, self.heads, self.weights)

    def packed_parts(self) -> Iterator[bytes]:
        """Pack the batch in short parts, for a BatchCompressor."""
        return packed_parts(self.broker, self.runs, self.facts, self.heads, self.weights)


class TraceRecorder:
    """Collects trace events of one node. Times are microseconds since the epoch, destinations native: `queue://N`."""

    def __init__(self, broker: str, properties: bool = True) -> None:
        self.broker, self.properties = broker, properties
        self.dropped = 0  #: events given up because nobody took them, or had no room for them
        self.pending = 0  #: events waiting to be taken
        self.since_us = 0  #: depths were noted then: what is noted from there on did not happen before, see run
        self._taken = 0
        self._runs: Runs = []
        self._facts: list[tuple[str, int, int]] = []
        self._last_facts: list[tuple[str, int, int]] = []  # of the last run; empty where its batch was taken
        self._heads: list[bytes] = []

    @property
    def recorded(self) -> int:
        """Events noted since the start, those dropped included."""
        return self._taken + self.dropped + self.pending

    def record_enqueue(
        self, ts_us: int, messages: Sequence[Message], destination: str, producer: str | None = None
    ) -> None:  # fmt: skip
        """Record the arrival of messages: once for each SEND, before routing.

        `producer` is who sent them, where a client did.
        """
        if self.properties:
            heads = [message.head for message in messages]
            self._heads += heads if max(map(len, heads), default=0) <= MAX_HEAD else map(limit_head, heads)
        self.record(ENQUEUE, ts_us, messages, (destination,), destination, producer)

    def record_one(
        self,
        kind: int,
        ts_us: int,
        message: Message,
        destination: str,
        original: str,
        consumer: str | None,
        reason: str | None,
    ) -> None:
        """Record an event of one message at one destination."""
        self.record(kind, ts_us, (message,), (destination,), original, consumer, reason)

    def record(
        self,
        kind: int,
        ts_us: int,
        messages: Sequence[Traceable],
        destinations: Sequence[str],
        original: str,
        consumer: str | None = None,
        reason: str | None = None,
        *,
        in_depths: bool = False,
    ) -> None:
        """Record that the same happened to these messages at these destinations; `original` is where they were sent.

        `destinations` is kept, not copied: it must not change. `in_depths`: depths that were noted after it happened
        count it already, so it stays before them.
        """
        if ts_us < self.since_us < ts_us + LATEST_US and not in_depths:
            ts_us = self.since_us
        facts, count = [message.facts for message in messages], len(messages)
        if facts == self._last_facts:  # often the very same objects: consumers of a topic, a dispatch and its end
            count = -count
        else:
            self._facts += facts
            self._last_facts = facts
        self._runs += (ts_us, kind, destinations, original, consumer, reason, count)
        self.pending += len(messages) * len(destinations)
        if self.pending > MAX_PENDING:
            self._drop_oldest()

    def take_encoded(self, limit: int = BATCH_EVENTS) -> tuple[bytes, int] | None:
        """Take the oldest events, about `limit`, as an encoded batch with their number."""
        batch = self.take_batch(limit)
        return None if batch is None else (batch.encode(), batch.count)

    def take_batch(self, limit: int = BATCH_EVENTS) -> EventBatch | None:
        """Take the oldest events, about `limit`, as a batch."""
        if not self._runs:
            return None
        runs, facts, heads, count = self._cut(limit)
        self._taken += count
        return EventBatch(self.broker, runs, facts, heads, count)

    def count_lost(self, batch: EventBatch) -> None:
        """Count a batch that was taken and could not be stored as dropped."""
        self._taken -= batch.count
        self.dropped += batch.count

    def _cut(self, limit: int) -> tuple[Runs, list[tuple[str, int, int]], list[bytes], int]:
        """Take the first runs out, with what belongs to them, and say how many events they stand for."""
        oldest = self._runs[: limit * RUN_FIELDS]
        noted = np.fromiter(oldest[6::RUN_FIELDS], np.int64)  # negative where the facts are those of the run before
        copies = np.fromiter(map(len, oldest[2::RUN_FIELDS]), np.int64)
        kinds = np.fromiter(oldest[1::RUN_FIELDS], np.int64)
        events = np.cumsum(np.abs(noted) * copies)
        number = min(len(events), int(np.searchsorted(events, limit)) + 1)
        count, noted = int(events[number - 1]), noted[:number]
        messages = int(noted.clip(min=0).sum())
        enqueued = int(np.abs(noted[kinds[:number] == ENQUEUE]).sum())
        cut = number * RUN_FIELDS
        parts = oldest[:cut], self._facts[:messages], self._heads[:enqueued], count
        del self._runs[:cut], self._facts[:messages], self._heads[:enqueued]
        if not self._runs:
            self._last_facts = []
        elif (shared := -self._runs[6]) > 0:  # they were taken with the run before
            self._runs[6], self._facts[:0] = shared, parts[1][-shared:]
        self.pending -= count
        return parts

    def _drop_oldest(self) -> None:
        """Drop the oldest events, a batch at a time, until the rest is within the limit."""
        while (excess := self.pending - MAX_PENDING) > 0:
            before = self.pending
            self._cut(max(excess, BATCH_EVENTS))
            self.dropped += before - self.pending


class NullTraceRecorder(TraceRecorder):
    """Discards all trace events, where recording is off."""

    def record_enqueue(self, *_events: object, **_named: object) -> None:
        """Discard the arrival of messages."""

    def record_one(self, *_event: object, **_named: object) -> None:
        """Discard an event of one message."""

    def record(self, *_events: object, in_depths: bool = False, **_named: object) -> None:
        """Discard events of several messages."""
