"""Ports of the parts that take messages from clients to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from brokerapp.core.writes.pending_write import NOTHING, ClientBatchWrite, ClientWrite, Given
from brokerapp.engine.clients.acknowledged import Acknowledged
from brokerapp.engine.clients.client import Client, RoutedMessage
from brokerapp.engine.dispatch.append_group import AppendGroup
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.route_walk import Route
from brokerapp.engine.scheduling.scheduled_job import ScheduledJob
from brokerapp.model.commands import SendCommand
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, Message, RoutedCopy
from brokerapp.store import ScheduledJobChange
from brokerapp.tracing.schema import FORWARD


class BrokerMessages(Protocol):
    """Publishes messages of the broker itself."""

    def prepare(
        self,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        sender: Client | None = None,
        *,
        noted: bool = True,
    ) -> RoutedMessage: ...

    def publish_internal(self, message: Message, destination: Destination) -> None: ...

    def copy_to_log(self, message: Message, copy: RoutedCopy) -> None: ...

    def route(
        self,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        by: str = "",
        held: tuple[str, ...] = (),
        *,
        is_moved: bool = False,
    ) -> tuple[Message, Route]: ...

    def append_groups(self, found: Route) -> list[AppendGroup]: ...

    def next_id(self) -> str: ...


class PublisherPort(BrokerMessages, Protocol):
    """Publishes messages of clients."""

    def send(self, client: Client, send: SendCommand) -> None: ...

    def check(self, destination: Destination) -> None: ...

    def message(self, send: SendCommand) -> Message: ...

    def messages(self, send: SendCommand, bodies: Sequence[bytes]) -> list[Message]: ...

    def pass_through(self, messages: Sequence[Message], group: AppendGroup, sent_to: str) -> bool: ...

    def record_sent(self, placed: Sequence[RoutedMessage], now_us: int) -> None: ...

    def record_rolled_back(self, placed: Sequence[RoutedMessage], why: str) -> None: ...


class MessageWriterPort(Protocol):
    """Submits writes to the store, and acts on their outcome."""

    def submit(
        self,
        client: Client,
        placed: Sequence[RoutedMessage],
        settled: Sequence[tuple[Subscription, str, LogEntry]],
        receipt: str | None,
        undo: Callable[[], None] | None = None,
        jobs: Sequence[ScheduledJobChange] = (),
        given: Given = NOTHING,
        handover: str = "",
        *,
        is_commit: bool = False,
    ) -> None: ...

    def on_result(self, request: ClientWrite, seq: int, refused: str) -> None: ...

    def refuse(self, request: ClientWrite, reason: str) -> None: ...

    def withdraw(self, request: ClientWrite, why: str = "the connection ended") -> None: ...

    def renew(self, request: ClientWrite) -> None: ...

    def restore_queues(self, placed: Sequence[RoutedMessage]) -> bool: ...

    def on_committed(
        self, placed: Sequence[RoutedMessage], seq: int, given: Given = NOTHING, moved_us: int = 0, kind: int = FORWARD
    ) -> None: ...

    def on_appended(
        self,
        messages: Sequence[Message],
        sizes: Sequence[int],
        group: AppendGroup,
        sent_to: str,
        seq: int,
        given: Given = NOTHING,
        moved_us: int = 0,
        kind: int = FORWARD,
    ) -> None: ...

    def count_arrivals(self, log: MessageLog, messages: Sequence[Message], sizes: BodySizes) -> None: ...

    def on_scheduled(self, jobs: Sequence[ScheduledJobChange]) -> None: ...


class ConcurrentDispatchPort(Protocol):
    """Dispatches messages while the store commits them."""

    def offer(self, messages: Sequence[Message], sizes: Sequence[int], groups: Sequence[AppendGroup]) -> Given: ...

    def on_committed(
        self, log: MessageLog, entries: Sequence[LogEntry], numbers: Iterable[int], payloads: Iterable[int]
    ) -> None: ...

    def on_refused(self, given: Given) -> None: ...


class ScheduledJobsPort(Protocol):
    """Carries out jobs when they are due."""

    def note(self, due_ms: int) -> None: ...

    def lose(self, id: str, message: Message, to: Destination, sent_to: str) -> None: ...

    def outcome(self, refused: str, then: Callable[[], None]) -> None: ...


class SchedulerPort(Protocol):
    """Delivers scheduled messages."""

    def deliver(self, id: str, due_ms: int, job: ScheduledJob) -> None: ...


class ProducersPort(Protocol):
    """Knows which clients send to which destinations."""

    def began(self, client: Client, destination: Destination) -> None: ...

    def left(self, client: Client) -> None: ...

    def forget(self, *destinations: Destination) -> None: ...


class TransactionsPort(Protocol):
    """Knows the open transactions of clients."""

    def find(self, client: Client, ack_id: str, subscription: str | None) -> Acknowledged | None: ...

    def hand_back(self, found: Acknowledged) -> None: ...

    def give_up(self, client: Client) -> None: ...


class BatchPublisherPort(Protocol):
    """Publishes SENDs that arrived together."""

    def split(self, run: ClientBatchWrite, places: Iterable[int]) -> list[ClientWrite]: ...
