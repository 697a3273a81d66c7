"""ClientUnit: what a client asked of the store in one piece, and whom to tell when that is done or refused.

It knows its client and its messages' ways, because a full place may let it wait and try again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from brokerapp.engine.clients.client import Client, RoutedMessage
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.route_walk import Route
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, encode_messages
from brokerapp.store import BatchWrite, PendingWrite, ScheduledJobChange, SettledEntry

if TYPE_CHECKING:
    from brokerapp.core.writes.wait_queue import BlockedSend


#: What was given early of a unit's messages: all of them, in order, by the name of the log.
Given = Mapping[str, Sequence[LogEntry]]
NOTHING: Given = {}


class WriteOwner(Protocol):
    """Acts on the outcome of a client's write."""

    def on_result(self, request: ClientWrite, seq: int, refused: str) -> None: ...

    def on_scheduled(self, jobs: Sequence[ScheduledJobChange]) -> None: ...


class BatchOwner(Protocol):
    """Acts on the outcome of a client's batch."""

    def on_result(self, run: ClientBatchWrite, seq: int, refused: Mapping[int, str]) -> None: ...


class ClientWrite(PendingWrite):
    """A unit with the client that waits for it. A class of its own because there is one for every message."""

    __slots__ = ("client", "given", "is_commit", "placed", "receipt", "settled", "size", "storing", "undo", "waiting")

    def __init__(
        self,
        storing: WriteOwner,
        client: Client,
        placed: Sequence[RoutedMessage],
        appends: list[tuple[bytes, list[tuple[str, str, str]]]],
        settled: Sequence[tuple[Subscription, str, LogEntry]],
        settles: Sequence[LogEntry],
        receipt: str | None,
        undo: Callable[[], None] | None,
        given: Given = NOTHING,
        *,
        is_commit: bool = False,
    ) -> None:
        self.settled, self.given = settled, given
        self.is_commit = is_commit  #: of a transaction: that its messages were sent is recorded when it is done
        self.appends, self.settles, self.ignores_limits = appends, settles, False
        self.storing, self.client, self.placed, self.receipt, self.undo = storing, client, placed, receipt, undo
        self.size = sum([len(each.stored) or each.message.size for each in placed])
        self.droppable, self.dropped = (), ()
        self.waiting: BlockedSend | None = None  #: its turn at a full place
        for each in placed:
            if each.route.dropping:
                self.droppable = _droppable(placed)
                break

    def on_done(self, seq: int, refused: str) -> None:
        self.storing.on_result(self, seq, refused)


class ScheduledWrite(ClientWrite):
    """A client's unit with messages to be delivered later."""

    __slots__ = ("jobs",)

    def on_done(self, seq: int, refused: str) -> None:
        super().on_done(seq, refused)
        if not refused:
            self.storing.on_scheduled(self.jobs)


class BridgedWrite(ClientWrite):
    """What the bridge of another broker passes on, and may pass on again."""

    __slots__ = ("dedup_key", "duplicates")


class JobWrite(PendingWrite):
    """A unit with jobs."""

    __slots__ = ("jobs",)

    def __init__(
        self,
        jobs: Sequence[ScheduledJobChange],
        appends: Sequence[tuple[bytes, Sequence[tuple[str, str, str]]]] = (),
        ignores_limits: bool = False,
        callback: Callable[[int, str], None] | None = None,
        settles: Sequence[SettledEntry] = (),
    ) -> None:
        super().__init__(appends, settles, ignores_limits, callback)
        self.jobs = jobs


class ClientBatchWrite(BatchWrite):
    """A run with the client that waits for it."""

    __slots__ = ("client", "destination", "given", "messages", "receipts", "route", "runs", "size", "sizes")

    def __init__(
        self,
        runs: BatchOwner,
        client: Client,
        messages: Sequence[Message],
        receipts: Sequence[str | None],
        destination: Destination,
        route: Route,
    ) -> None:
        super().__init__(encode_messages(messages), route.groups[0].rows)
        self.runs, self.client, self.messages, self.receipts = runs, client, messages, receipts
        self.destination, self.route = destination, route
        self.sizes = list(map(len, self.stored))
        self.size = sum(self.sizes)
        self.given = NOTHING  #: early

    def on_done(self, seq: int, refused: Mapping[int, str]) -> None:
        self.runs.on_result(self, seq, refused)


def appends_of(placed: Sequence[RoutedMessage]) -> list[tuple[bytes, list[tuple[str, str, str]]]]:
    """The copies as a unit asks the store for them, see Unit."""
    return [(each.stored, group.rows) for each in placed for group in each.route.groups]


def _droppable(placed: Sequence[RoutedMessage]) -> list[tuple[int, int, int]]:
    """The copies that are rather dropped than refused, see Unit."""
    groups = [group for each in placed for group in each.route.groups]
    return [(number, *each) for number, group in enumerate(groups, start=1) for each in group.droppable]
