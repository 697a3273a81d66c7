"""Make spans of trace events, by OpenTelemetry's semantic conventions for messaging.

A publish span is a child of the producer's span, a receive span of the publish span, and a settle span of the receive
span; receive and settle spans also link to the producer's. Of a message's properties only its trace context is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from analytics.spans.traced_messages import TRACEPARENT, TRACESTATE, TracedMessage, TracedMessages, number_from
from brokerapp.model.destination import Destination, DestinationKind

#: Value of messaging.system.
SYSTEM = "sluice"
SCOPE = InstrumentationScope("sluice.spans")


@dataclass(frozen=True, slots=True)
class Operation:
    """What the spans of one kind of event are called."""

    name: str  #: messaging.operation.name
    type: str  #: messaging.operation.type
    kind: SpanKind
    is_failure: bool = False


#: The kinds of events that have a span. `forward`, `return` and `redeliver` also say since when a copy is ready.
OPERATIONS = {
    "enqueue": Operation("publish", "send", SpanKind.PRODUCER),
    "rollback": Operation("publish", "send", SpanKind.PRODUCER, is_failure=True),
    "dispatch": Operation("receive", "receive", SpanKind.CONSUMER),
    "bridge_forward": Operation("forward", "send", SpanKind.PRODUCER),
    "ack": Operation("ack", "settle", SpanKind.CLIENT),
    "redeliver": Operation("redeliver", "settle", SpanKind.CLIENT),
    "dead_letter": Operation("dead_letter", "settle", SpanKind.INTERNAL, is_failure=True),
    "drop": Operation("drop", "settle", SpanKind.INTERNAL, is_failure=True),
    "move": Operation("move", "settle", SpanKind.INTERNAL),
    "remove": Operation("remove", "settle", SpanKind.INTERNAL),
}
#: Values of error.type by how the broker's reason begins; the reason itself may hold text of clients and stays here.
ERROR_TYPES = (
    ("expired", "expired"),
    ("rejected by", "rejected"),
    ("discarded for a slow subscriber", "slow_consumer"),
    ("consumer gone", "consumer_gone"),
)
OTHER_ERROR = "_OTHER"
#: Of spans whose message was not remembered: they are in a trace of their own.
UNKNOWN_CONTEXT = {"sluice.context.known": False}
_READY_AGAIN = ("forward", "return", "redeliver")
_USED = pa.array([*OPERATIONS, "forward", "return"])
_COLUMNS = ("ts", "kind", "msg_id", "destination", "original", "consumer", "size", "born", "reason", "weight")


@dataclass(frozen=True, slots=True)
class _Event:
    """A trace event with the trace context of its message; see docs/data.md."""

    ts: int
    kind: str
    msg_id: str
    destination: str
    original: str
    consumer: str | None
    size: int
    born: int
    reason: str | None
    weight: int
    traceparent: str | None
    tracestate: str | None


class EventSpans:
    """Makes the spans of a broker's events, which come in the order in which they were recorded."""

    def __init__(self, broker: str, resource: Resource, messages: TracedMessages) -> None:
        self._broker, self._resource, self._messages = broker, resource, messages
        self.unsampled = 0  #: spans that the sampler did not select, since the start

    def of(self, events: pa.Table) -> list[ReadableSpan]:
        """Return the sampled spans of these events."""
        return [span for event in _used(events) if (span := self._span_of(event)) is not None]

    def _span_of(self, event: _Event) -> ReadableSpan | None:
        if event.kind == "enqueue":
            message = self._messages.enqueued(event.msg_id, event.ts, event.traceparent, event.tracestate)
        else:
            message = self._messages.get(event.msg_id, event.ts)
        operation = OPERATIONS.get(event.kind)
        if not message.is_sampled:
            self.unsampled += operation is not None
            return None
        span = None if operation is None else self._made(operation, event, message)
        if event.kind in _READY_AGAIN:
            message.ready[event.destination] = event.ts
        return span

    def _made(self, operation: Operation, event: _Event, message: TracedMessage) -> ReadableSpan:
        key = self._broker, event.kind, event.msg_id, event.destination, event.consumer, event.ts
        span_id = number_from(*key)
        begin, parent_id, parent = event.ts, 0, None
        match operation.type:
            case "send" if operation.name == "publish":
                begin, parent = event.born, message.producer
                message.publish_id = span_id
            case "receive":
                begin = message.ready.get(event.destination, event.born)
                parent_id = message.publish_id
                message.dispatched[event.destination, event.consumer or ""] = event.ts, span_id
            case _:
                taken = message.dispatched.get((event.destination, event.consumer or ""))
                begin, parent_id = taken or (message.ready.get(event.destination, event.ts), message.publish_id)
        if parent_id:
            parent = SpanContext(message.trace_id, parent_id, False, TraceFlags(TraceFlags.SAMPLED))
        state = message.producer.trace_state if message.producer else None
        return ReadableSpan(
            f"{operation.name} {_shown_name(event)}",
            SpanContext(message.trace_id, span_id, False, TraceFlags(TraceFlags.SAMPLED), state),
            parent,
            self._resource,
            _attributes(operation, event) | ({} if message.is_known else UNKNOWN_CONTEXT),
            links=[Link(message.producer)] if message.producer and operation.name != "publish" else (),
            kind=operation.kind,
            status=Status(StatusCode.ERROR if operation.is_failure else StatusCode.UNSET),
            start_time=min(begin, event.ts) * 1000,
            end_time=event.ts * 1000,
            instrumentation_scope=SCOPE,
        )


def _used(events: pa.Table) -> Iterator[_Event]:
    """Yield the events that matter for spans."""
    events = events.filter(pc.is_in(events["kind"].cast(pa.string()), _USED))
    columns: list[Sequence[Any]] = []
    for name in _COLUMNS:
        column = events[name]
        columns.append((column.cast(pa.int64()) if name in ("ts", "born") else column).to_pylist())
    for name in (TRACEPARENT, TRACESTATE):
        columns.append(_property(events["ps"], name))
    return map(_Event, *columns)


def _property(maps: pa.ChunkedArray, name: str) -> list[str | None]:
    """Return the value of one property in each map; None where there is none."""
    return pc.map_lookup(maps, pa.scalar(name), "last").to_pylist() if len(maps) else []


def _shown_name(event: _Event) -> str:
    """Return the destination in the name of a span: few different ones, so temporary destinations have none."""
    found = _named(event.destination, event.original)
    return "(temporary)" if found.is_temporary else found.name


def _attributes(operation: Operation, event: _Event) -> dict[str, str | int | bool]:
    found = _named(event.destination, event.original)
    attributes: dict[str, str | int | bool] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation.name,
        "messaging.operation.type": operation.type,
        "messaging.destination.name": found.name,
        "messaging.message.id": event.msg_id,
        "messaging.message.body.size": event.size,
        "sluice.destination.kind": str(found.kind),
    }
    if found.is_temporary:
        attributes["messaging.destination.temporary"] = True
    if event.original != event.destination:
        attributes["messaging.destination_publish.name"] = _parsed(event.original).name
    if event.destination.startswith("subscription://"):
        attributes["messaging.destination.subscription.name"] = _parsed(event.destination).name
    if event.consumer:
        attributes["messaging.client.id"] = event.consumer
    if event.weight > 1:
        attributes["sluice.weight"] = event.weight
    if event.reason and (operation.is_failure or operation.name == "redeliver"):
        attributes["error.type"] = error_type(event.reason)
    return attributes


def error_type(reason: str) -> str:
    """Return a short name for the reason of a failure, one of few."""
    return next((name for begin, name in ERROR_TYPES if reason.startswith(begin)), OTHER_ERROR)


def _named(destination: str, original: str) -> Destination:
    """Return the destination that a span names: for a subscription its topic."""
    found = _parsed(destination)
    return _parsed(original) if found.kind is DestinationKind.SUBSCRIPTION else found


@lru_cache(maxsize=10_000)  # as many destinations as rollups keep apart
def _parsed(native: str) -> Destination:
    kind, _, name = native.partition("://")
    return Destination(DestinationKind(kind), name)
