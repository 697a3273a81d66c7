"""Ports of the parts that limit producers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.core.writes.wait_queue import BlockedSend, WaitQueue
from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.model.definitions import PolicyEntry


class FlowControlPort(Protocol):
    """Lets sends wait while a limit is reached."""

    @property
    def is_active(self) -> bool: ...

    def is_free(self, placed: Sequence[RoutedBatch]) -> bool: ...

    def is_full(self, logs: Collection[str]) -> bool: ...

    def limit_reading(self, write: ClientWrite) -> None: ...

    def submit(self, unit: ClientWrite) -> None: ...

    def block(self, unit: ClientWrite, full: str) -> str | None: ...

    def release(self, waiting: BlockedSend) -> None: ...

    def waiting(self) -> Iterator[ClientWrite]: ...

    def on_unblocked(self, client: Client, then: Callable[[], None]) -> None: ...

    def on_client_gone(self, client: Client) -> None: ...

    def on_topics_drained(self) -> None: ...

    places: dict[str, WaitQueue]


class LimitsPort(Protocol):
    """Knows the limits of destinations and store."""

    @property
    def is_disk_low(self) -> bool: ...

    def full_topic(self, placed: Sequence[RoutedBatch]) -> str | None: ...

    def describe(self, place: str) -> str: ...

    def policy_of(self, name: str) -> PolicyEntry | None: ...

    def room(self, place: str) -> float: ...

    def of_log(self, name: str) -> int: ...

    of_topics: bool
    of_logs: bool
