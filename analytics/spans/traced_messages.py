"""Remember the trace of each message seen: only its enqueue event has the producer's trace context.

Bounded in number and age. The decision whether a message is sampled is made once, for all its spans.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgpack
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    NonRecordingSpan,
    SpanContext,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from brokerapp.system import atomic_files

#: Messages remembered; about 150 MB. Beyond it the one that was not seen for the longest time is forgotten.
MAX_MESSAGES = 100_000
#: Seconds for which a message is remembered after its last event.
MESSAGE_SECONDS = 3600
#: The properties of a message that hold its trace context.
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"

_propagator = TraceContextTextMapPropagator()
_no_parent = set_span_in_context(NonRecordingSpan(INVALID_SPAN_CONTEXT))


def number_from(*parts: object, bits: int = 64) -> int:
    """Return an id that is always the same for these values: what is exported twice has the same ids."""
    return int.from_bytes(blake2b("\0".join(map(str, parts)).encode(errors="replace"), digest_size=bits // 8).digest())


def producer_context(traceparent: str | None, tracestate: str | None) -> SpanContext | None:
    """Return the trace context that a message carries; None without a valid one."""
    if not traceparent:
        return None
    found = get_current_span(_propagator.extract({TRACEPARENT: traceparent, TRACESTATE: tracestate or ""}, _no_parent))
    context = found.get_span_context()
    return context if context.is_valid else None


@dataclass(slots=True)
class TracedMessage:
    """The trace of one message, and the latest moments of its copies, in microseconds since the epoch."""

    trace_id: int
    is_sampled: bool
    producer: SpanContext | None = None  #: from its traceparent
    is_known: bool = True  #: False: its enqueue event was not seen, so its traceparent is not known
    publish_id: int = 0  #: id of its publish span; 0 for none
    ready: dict[str, int] = field(default_factory=dict)  #: by log: since when its copy there is ready
    #: By log and consumer: when its copy was dispatched, and the id of that span.
    dispatched: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)


class TracedMessages:
    """The messages that were seen lately, by id."""

    def __init__(self, sampler: Sampler, limit: int = MAX_MESSAGES) -> None:
        self._sampler, self._limit = sampler, limit
        self._messages: OrderedDict[str, tuple[int, TracedMessage]] = OrderedDict()
        self.unknown = 0  #: messages whose context is not known, since the start

    def __len__(self) -> int:
        return len(self._messages)

    def enqueued(self, id: str, ts_us: int, traceparent: str | None, tracestate: str | None) -> TracedMessage:
        """Remember a message that arrived with this context. A message that arrives again begins a new trace."""
        producer = producer_context(traceparent, tracestate)
        message = self._traced(id, producer)
        self._keep(id, ts_us, message)
        return message

    def get(self, id: str, ts_us: int) -> TracedMessage:
        """Return the trace of a message; one that is not remembered gets the trace of a message without context."""
        found = self._messages.get(id)
        if found is None:
            self.unknown += 1
            message = self._traced(id, None)
            message.is_known = False
        else:
            message = found[1]
        self._keep(id, ts_us, message)
        return message

    def _traced(self, id: str, producer: SpanContext | None) -> TracedMessage:
        """Decide for a message whether it is sampled; without a context its trace id follows from its message-id."""
        trace_id = producer.trace_id if producer else number_from("trace", id, bits=128)
        parent = set_span_in_context(NonRecordingSpan(producer)) if producer else _no_parent
        is_sampled = self._sampler.should_sample(parent, trace_id, "").decision.is_sampled()
        return TracedMessage(trace_id, is_sampled, producer)

    def _keep(self, id: str, ts_us: int, message: TracedMessage) -> None:
        self._messages[id] = ts_us, message
        self._messages.move_to_end(id)
        if len(self._messages) > self._limit:
            self._messages.popitem(last=False)

    def forget_before(self, ts_us: int) -> None:
        """Forget messages whose last event was before this time."""
        while self._messages and next(iter(self._messages.values()))[0] < ts_us:
            self._messages.popitem(last=False)

    # -- across restarts

    def save(self, path: Path) -> None:
        """Write what is remembered for the next process."""
        atomic_files.replace(path, msgpack.packb(list(self._dump()), unicode_errors="surrogatepass"))

    def restore(self, path: Path) -> None:
        """Remember what the last process wrote when it stopped. The file is used once: it is deleted."""
        if not path.exists():
            return
        rows = msgpack.unpackb(path.read_bytes(), use_list=False, unicode_errors="surrogatepass")
        for id, ts_us, is_known, traceparent, tracestate, publish_id, ready, dispatched in rows:
            message = self.enqueued(id, ts_us, traceparent, tracestate)
            message.is_known, message.publish_id, message.ready = is_known, publish_id, dict(ready)
            message.dispatched = {(log, consumer): (at, span_id) for log, consumer, at, span_id in dispatched}
        path.unlink()

    def _dump(self) -> Iterator[tuple[Any, ...]]:
        for id, (ts_us, each) in self._messages.items():
            carrier: dict[str, str] = {}
            if each.producer is not None:
                _propagator.inject(carrier, set_span_in_context(NonRecordingSpan(each.producer)))
            yield (
                id, ts_us, each.is_known, carrier.get(TRACEPARENT), carrier.get(TRACESTATE), each.publish_id,
                list(each.ready.items()),
                [(log, consumer, *span) for (log, consumer), span in each.dispatched.items()],
            )  # fmt: skip
