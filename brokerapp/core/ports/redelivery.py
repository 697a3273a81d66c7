"""Ports of the parts that treat expired, rejected and failed messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.scheduling.scheduled_job import ScheduledJob
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.store import StoredLogEntry


class DeadLettersPort(Protocol):
    """Dead-letters or drops messages that failed."""

    def expire(self, log: MessageLog, entry: LogEntry, consumer: str | None = None) -> None: ...

    def discard_for_subscriber(self, entry: LogEntry, cause: str, consumer: str, *, expired: bool = False) -> None: ...

    def remove_damaged(
        self, log: MessageLog, found: list[StoredLogEntry], *, dead_letter_damaged: bool = True
    ) -> list[StoredLogEntry]: ...

    def route_damaged_job(self, message: Message, source: Destination) -> RoutedBatch | None: ...

    def fail(
        self, log: MessageLog, entry: LogEntry, cause: str, consumer: str | None, *, expired: bool = False
    ) -> None: ...

    def drop(self, log: MessageLog, entry: LogEntry, cause: str, consumer: str | None) -> None: ...

    def is_in_dlq(self, log: MessageLog, entry: LogEntry) -> bool: ...

    def leave_log(self, log: MessageLog, entries: Sequence[LogEntry]) -> Callable[[], None]: ...

    def failure_source(self, log: MessageLog, entry: LogEntry) -> tuple[Destination, str]: ...

    def record(self, kind: int, now_us: int, entry: LogEntry, consumer: str | None, reason: str | None) -> None: ...


class ExpirationPort(Protocol):
    """Removes expired messages from logs."""

    def expire_on_arrival(self, placed: Iterable[RoutedBatch]) -> None: ...

    def sweep(self, logs: Iterable[MessageLog]) -> None: ...


class RedeliveryPort(Protocol):
    """Redelivers rejected messages, with a delay perhaps."""

    def reject(
        self, log: MessageLog, entries: Sequence[LogEntry], consumer: str, cause: str, *, may_redeliver: bool
    ) -> None: ...

    def on_unacked_at_detach(self, log: MessageLog, entries: Sequence[LogEntry]) -> Sequence[LogEntry]: ...

    def return_message(self, id: str, _due_ms: int, job: ScheduledJob) -> None: ...
