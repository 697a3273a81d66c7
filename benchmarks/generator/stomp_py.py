"""The client stomp.py as its users write with it: one producer and one consumer, each a process of its own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from queue import Empty
from threading import BrokenBarrierError, Event, Semaphore
from typing import Any

import stomp

from benchmarks.generator.connection import RunFailed
from benchmarks.generator.ledger import faults, sent_in_order
from benchmarks.generator.load import RUN_SECONDS, Outcome
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import Dialect
from benchmarks.scenarios.messages import BODY_START

_Address = tuple[str, int]
#: Seconds in which both processes must be connected.
CONNECT_SECONDS = 60


def run_stomp_py(traffic: Traffic, address: _Address, dialect: Dialect, messages: int) -> Outcome:
    """Send so many messages, consume them and acknowledge each. Raises RunFailed."""
    context, numbers = multiprocessing.get_context("fork"), traffic.numbers(0, messages)
    ready, results = context.Barrier(3), context.Queue()
    arguments = (ready, results, traffic, address, dialect, numbers)
    processes = [context.Process(target=_work, args=(role, *arguments), daemon=True) for role in (_consume, _produce)]
    for each in processes:
        each.start()
    try:
        ready.wait(CONNECT_SECONDS)
        started = time.perf_counter()
        done = [results.get(timeout=RUN_SECONDS) for _ in processes]
        seconds = time.perf_counter() - started
    except (BrokenBarrierError, Empty) as error:
        raise RunFailed(f"{traffic.scenario.name}: no result, {type(error).__name__}") from error
    finally:
        for each in processes:
            each.join(1)
            each.kill()
    received = [number for came, _ in done for number in came]
    if wrong := faults(numbers, [received], sent_in_order(traffic.scenario.route)):
        raise RunFailed(f"{traffic.scenario.name}: {'; '.join(wrong)}")
    return Outcome(len(numbers), seconds, sum(cpu for _, cpu in done))


def _work(role: Callable[..., list[int]], ready: Barrier, results: Any, *arguments: Any) -> None:
    """Play a role in a process: put what it received, and the CPU seconds that it used."""
    began = time.process_time()
    results.put((role(ready, *arguments), time.process_time() - began))


def _produce(
    ready: Barrier, traffic: Traffic, address: _Address, dialect: Dialect, numbers: Sequence[int]
) -> list[int]:
    """Send each message with a receipt, of which a window may be on their way."""
    scenario = traffic.scenario
    window = Semaphore(scenario.window)
    with _connected(address, dialect, _Receipts(window)) as client:
        ready.wait()
        for number in numbers:
            window.acquire()
            headers = {"persistent": "true", "receipt": str(number), **scenario.kind.headers(number)}
            client.send(scenario.route.destination(number), scenario.kind.body(number), "application/json", headers)
        for _ in range(scenario.window):
            window.acquire()
    return []


def _consume(
    ready: Barrier, traffic: Traffic, address: _Address, dialect: Dialect, numbers: Sequence[int]
) -> list[int]:
    """Acknowledge each message until all are here; their numbers."""
    [group] = traffic.scenario.route.groups(dialect)
    messages = _Messages(len(numbers))
    with _connected(address, dialect, messages) as client:
        messages.client = client
        headers = {name: str(value) for name, value in group.subscribe.items() if name != "destination"}
        client.subscribe(group.subscribe["destination"], id=1, ack="client-individual", headers=headers)
        ready.wait()
        messages.all_came.wait(RUN_SECONDS)
    return messages.numbers


class _Receipts(stomp.ConnectionListener):
    """Makes room in the window with each receipt."""

    def __init__(self, window: Semaphore) -> None:
        self._window = window

    def on_receipt(self, frame: Any) -> None:
        self._window.release()


class _Messages(stomp.ConnectionListener):
    """Notes the number of each message and acknowledges it."""

    client: stomp.StompConnection12

    def __init__(self, count: int) -> None:
        self._count = count
        self.numbers: list[int] = []
        self.all_came = Event()

    def on_message(self, frame: Any) -> None:
        start = len(BODY_START)
        self.numbers.append(int(frame.body[start : frame.body.index(",", start)]))
        self.client.ack(frame.headers["ack"])
        if len(self.numbers) >= self._count:
            self.all_came.set()


@contextmanager
def _connected(
    address: _Address, dialect: Dialect, listener: stomp.ConnectionListener
) -> Iterator[stomp.StompConnection12]:
    """A client that is disconnected with a receipt, which comes when all it sent has been dealt with."""
    client = stomp.StompConnection12([address], vhost=str(dialect.connect["host"]))
    client.set_listener("", listener)
    client.connect(dialect.connect.get("login"), dialect.connect.get("passcode"), wait=True)
    try:
        yield client
    finally:
        client.disconnect()
