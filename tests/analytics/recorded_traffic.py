"""Build traffic as the broker records it, and wait for other processes."""

import time

import redis

from brokerapp.model.message import Message
from brokerapp.store.client.keys import trace_key
from brokerapp.tracing.recorder import TraceRecorder

BROKER = "sluice"
DEADLINE = 20.0


def wait_until(condition, seconds: float = DEADLINE):
    """The first true answer of the condition; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{condition} did not come true in {seconds} s"
        time.sleep(0.02)
    return answer


def message(number: int, born_us: int, size: int = 10, **properties: str) -> Message:
    """A message as the broker makes it."""
    lines = "".join(f"{name}:{value}\n" for name, value in properties.items())
    head = f"message-id:ID\\csluice-1\\c{number}\n{lines}".encode()
    return Message(f"ID:sluice-1:{number}", head, b"x" * size, True, born_us=born_us)


def send(store: redis.Redis, recorder: TraceRecorder) -> None:
    """Do what a node does once a second."""
    while batch := recorder.take_encoded():
        store.xadd(trace_key(BROKER), {"b": batch[0], "n": batch[1]})
