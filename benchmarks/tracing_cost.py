"""Measures what recording costs: `python -m benchmarks.tracing_cost` prints nanoseconds and bytes per event."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

from brokerapp.model.message import Message
from brokerapp.tracing.recorder import BATCH_EVENTS, TraceRecorder
from brokerapp.tracing.schema import ACK, DISPATCH, FORWARD

ROUNDS = 25
TICK = 32  #: messages a tick of the broker handles together
COPIES = 100  #: queues of the fan-out case
START_US = 1_760_000_000_000_000
DESTINATION = "queue://orders.eu"
QUEUES = tuple(f"queue://Consumer.Service{number}.VirtualTopic.Orders" for number in range(COPIES))


def message(number: int) -> Message:
    """An order of 1 KiB with four properties."""
    head = (
        f"message-id:ID\\csluice-5f3a\\c{number}\ncontent-length:1024\nregion:{('eu', 'us', 'apac')[number % 3]}\n"
        f"amount:{number % 997}\npriority:4\npersistent:true\n"
    )
    return Message(f"ID:sluice-5f3a:{number}", head.encode(), b"x" * 1024, True, born_us=START_US + number * 30)


def one_by_one(recorder: TraceRecorder, messages: list[Message]) -> None:
    """A queue: four events a message, each noted on its own."""
    for each in messages:
        now = each.born_us
        recorder.record_enqueue(now, (each,), DESTINATION)
        recorder.record_one(FORWARD, now, each, DESTINATION, DESTINATION, None, None)
        recorder.record_one(DISPATCH, now, each, DESTINATION, DESTINATION, "billing-1", None)
        recorder.record_one(ACK, now, each, DESTINATION, DESTINATION, "billing-1", None)


def in_bulk(recorder: TraceRecorder, messages: list[Message]) -> None:
    """A queue: four events a message, noted by tick."""
    for start in range(0, len(messages), TICK):
        tick = messages[start : start + TICK]
        now = tick[0].born_us
        recorder.record_enqueue(now, tick, DESTINATION)
        recorder.record(FORWARD, now, tick, (DESTINATION,), DESTINATION)
        recorder.record(DISPATCH, now, tick, (DESTINATION,), DESTINATION, "billing-1")
        recorder.record(ACK, now, tick, (DESTINATION,), DESTINATION, "billing-1")


def fan_out(recorder: TraceRecorder, messages: list[Message]) -> None:
    """A virtual topic: one enqueue and a hundred forwards a message."""
    for each in messages[: len(messages) * 4 // COPIES]:
        recorder.record_enqueue(each.born_us, (each,), "topic://VirtualTopic.Orders")
        recorder.record(FORWARD, each.born_us, (each,), QUEUES, "topic://VirtualTopic.Orders")


def measure(case: Callable[[TraceRecorder, list[Message]], None], properties: bool) -> tuple[float, float, float]:
    """Nanoseconds an event for adding and for taking (best of the rounds), and bytes an event."""
    messages = [message(number) for number in range(BATCH_EVENTS // 4)]
    adding = taking = float("inf")
    for _ in range(ROUNDS):
        recorder = TraceRecorder("sluice", properties)
        start = process_time()
        case(recorder, messages)
        added = process_time()
        batches = []
        while batch := recorder.take_encoded():
            batches.append(batch)
        taken = process_time()
        events = sum(count for _, count in batches)
        adding, taking = min(adding, (added - start) / events), min(taking, (taken - added) / events)
    return adding * 1e9, taking * 1e9, sum(len(data) for data, _ in batches) / events


def main() -> None:
    """Print the table of measured costs."""
    out = sys.stdout.write
    out(f"{'case':<28}{'add ns':>8}{'take ns':>9}{'sum ns':>8}{'bytes':>7}\n")
    for case in (one_by_one, in_bulk, fan_out):
        for properties in (True, False):
            adding, taking, size = measure(case, properties)
            name = case.__name__.replace("_", " ") + (", properties" if properties else "")
            out(f"{name:<28}{adding:>8.0f}{taking:>9.0f}{adding + taking:>8.0f}{size:>7.1f}\n")


if __name__ == "__main__":
    main()
