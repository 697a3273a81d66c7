"""Ports of the parts that take messages from clients to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.engine.clients.acknowledged import Acknowledged
from brokerapp.engine.clients.client import Client, RoutedBatch, Transaction
from brokerapp.engine.clients.prepared_branch import PreparedSummary
from brokerapp.engine.dispatch.append_group import AppendGroup
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.route_walk import Route
from brokerapp.engine.scheduling.scheduled_job import ScheduledJob
from brokerapp.errors import BrokerError
from brokerapp.model.commands import SendCommand, TransactionCommand
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, Message, RoutedCopy
from brokerapp.store import FirstNumber, ScheduledJobChange
from brokerapp.tracing.schema import FORWARD


class MessageFactoryPort(Protocol):
    """Makes messages of what clients send, and gives ids."""

    @property
    def last_id(self) -> str: ...

    def next_id(self) -> str: ...

    def message(self, send: SendCommand) -> Message: ...

    def template(self, send: SendCommand, now_us: int, held: tuple[str, ...] = ()) -> MessageTemplatePort: ...


class MessageTemplatePort(Protocol):
    """Makes messages that are sent alike."""

    def make(self, properties: str, body: bytes) -> Message: ...

    def stored(self, message: Message) -> bytes: ...


class MessageRouterPort(Protocol):
    """Routes messages, and publishes those of the broker itself."""

    def plan(self, destination: Destination) -> Route | None: ...

    def prepare(
        self,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        sender: Client | None = None,
        *,
        noted: bool = True,
    ) -> RoutedBatch: ...

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

    def restore_queues(self, placed: Sequence[RoutedBatch]) -> bool: ...

    def publish_internal(self, message: Message, destination: Destination) -> None: ...

    def copy_to_log(self, message: Message, copy: RoutedCopy) -> None: ...

    def record_sent(self, placed: Sequence[RoutedBatch], now_us: int) -> None: ...

    def record_rolled_back(self, placed: Sequence[RoutedBatch], why: str) -> None: ...


class SendAdmissionPort(Protocol):
    """Decides whether clients may send to destinations."""

    def admit(self, client: Client, targets: Sequence[Destination]) -> None: ...

    def check(self, destination: Destination) -> None: ...


class MessageWriterPort(Protocol):
    """Submits writes to the store, and acts on their outcome."""

    def send(self, placed: Sequence[RoutedBatch]) -> None: ...

    def perform(
        self,
        client: Client,
        placed: Sequence[RoutedBatch],
        receipts: Sequence[str | None],
        *,
        settled: Sequence[tuple[Subscription, str, LogEntry]] = (),
        jobs: Sequence[ScheduledJobChange] = (),
        undo: Callable[[], None] | None = None,
        is_commit: bool = False,
        dedup_key: str = "",
    ) -> None: ...

    def refuse(self, write: ClientWrite, reason: str) -> None: ...

    def withdraw(self, write: ClientWrite, why: str = "the connection ended") -> None: ...

    def renew(self, write: ClientWrite) -> None: ...


class HeldSendsPort(Protocol):
    """Holds messages that need not be stored while consumers have no room for a moment."""

    def holds(self, queues: Iterable[str]) -> bool: ...

    def take(self, client: Client, batch: RoutedBatch, *, is_behind: bool) -> bool: ...

    def retry(self, queue: str, *, is_consumed: bool) -> None: ...

    def store(self, queues: Iterable[str]) -> None: ...

    def store_of(self, client: Client) -> None: ...


class ArrivalsPort(Protocol):
    """Hands messages that come to logs and topics to those who consume."""

    def offer_early(self, placed: Sequence[RoutedBatch]) -> list[RoutedBatch]: ...

    def on_refused(self, given: Mapping[str, Sequence[LogEntry]]) -> None: ...

    def may_pass(self, each: RoutedBatch, *, is_behind: bool) -> bool: ...

    def pass_through(self, each: RoutedBatch, *, is_behind: bool) -> int: ...

    def on_committed(
        self,
        placed: Sequence[RoutedBatch],
        seq: FirstNumber,
        moved_us: int = 0,
        kind: int = FORWARD,
        reason: str | None = None,
    ) -> None: ...

    def count_arrivals(self, log: MessageLog, messages: Sequence[Message], sizes: BodySizes) -> None: ...


class ConcurrentDispatchPort(Protocol):
    """Dispatches messages while the store commits them."""

    def offer(self, batch: RoutedBatch) -> list[RoutedBatch]: ...

    def on_committed(
        self, log: MessageLog, entries: Sequence[LogEntry], numbers: Iterable[int], payloads: Iterable[int]
    ) -> None: ...

    def on_refused(self, given: Mapping[str, Sequence[LogEntry]]) -> None: ...


class ScheduledJobsPort(Protocol):
    """Carries out jobs when they are due."""

    def note(self, due_ms: int) -> None: ...

    def lose(self, id: str, message: Message, to: Destination, sent_to: str) -> None: ...

    def outcome(self, refused: str, then: Callable[[], None]) -> None: ...


class SchedulerPort(Protocol):
    """Keeps messages that are to be delivered later, and delivers them."""

    def applies_to(self, send: SendCommand) -> bool: ...

    def take(self, client: Client, send: SendCommand) -> bool: ...

    def deliver(self, id: str, due_ms: int, job: ScheduledJob) -> None: ...


class ProducersPort(Protocol):
    """Knows which clients send to which destinations."""

    def began(self, client: Client, destination: Destination) -> None: ...

    def opened(self, client: Client, producer: str, destinations: Sequence[Destination]) -> None: ...

    def closed(self, client: Client, producer: str) -> None: ...

    def left(self, client: Client) -> None: ...

    def forget(self, *destinations: Destination) -> None: ...


class PreparedBranchesPort(Protocol):
    """Knows prepared branches of transactions, and ends them."""

    known: dict[str, PreparedSummary]

    def note(
        self, name: str, summary: PreparedSummary, settled: Sequence[tuple[Subscription, str, LogEntry]]
    ) -> None: ...

    def note_part(self, id: str, node: str) -> None: ...

    def refresh(self) -> None: ...

    def end(self, name: str, *, is_committed: bool, then: Callable[[BrokerError | None], None]) -> None: ...

    def end_part(self, id: str, *, is_committed: bool, then: Callable[[BrokerError | None], None]) -> None: ...


class TransactionsPort(Protocol):
    """Knows the open transactions of clients."""

    def perform(self, client: Client, command: TransactionCommand) -> None: ...

    def add(
        self, client: Client, transaction: Transaction, placed: Sequence[RoutedBatch], receipts: Sequence[str | None]
    ) -> None: ...

    def find(self, client: Client, ack_id: str, subscription: str | None) -> Acknowledged | None: ...

    def hand_back(self, found: Acknowledged) -> None: ...

    def give_up(self, client: Client) -> None: ...

    def join_branch(self, client: Client, name: str, *, is_prepared: bool) -> None: ...

    def branch(self, name: str) -> Transaction | None: ...

    def branches(self) -> Iterable[tuple[str, Transaction]]: ...

    def take_branch(self, name: str) -> Transaction: ...

    def commit(self, client: Client, transaction: Transaction, receipt: str | None) -> None: ...

    def settled_there(self, transaction: Transaction) -> list[tuple[Subscription, str, LogEntry]]: ...

    def roll_back(self, transaction: Transaction, why: str) -> None: ...

    def hold_again(self, subscription: Subscription, entries: Mapping[str, LogEntry]) -> None: ...
