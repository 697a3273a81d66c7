"""ClientWrite: what clients asked of the store in one piece, and whom to tell when that is done or refused.

It knows its clients and the routes of its messages, because a full place may let it wait and try again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.store import (
    AppendRun,
    BranchChange,
    CommitResult,
    CopyRow,
    FirstNumber,
    PendingWrite,
    ScheduledJobChange,
    SettledEntry,
    WriteOwner,
)

if TYPE_CHECKING:
    from brokerapp.core.writes.wait_queue import BlockedSend


class ClientWriteOwner(WriteOwner, Protocol):
    """Acts on the outcomes of clients' writes."""

    def on_result(self, write: ClientWrite, seq: FirstNumber, position: int, committed: CommitResult) -> None: ...


class ClientWrite(PendingWrite):
    """Messages that clients sent at once. Each is stored or refused by itself, as a write of its only client."""

    __slots__ = ("bytes_by_client", "client", "duplicates", "owner", "placed", "size", "waiting")

    is_atomic = False
    owner: ClientWriteOwner
    settled: Sequence[tuple[Subscription, str, LogEntry]] = ()  #: what consumers acknowledge with it
    is_commit = False  #: of a transaction: that its messages were sent is recorded when it is done
    undo: Callable[[], None] | None = None  #: to be called when a limit refuses it

    def __init__(self, owner: ClientWriteOwner, client: Client, placed: Sequence[RoutedBatch]) -> None:
        """Make a write of messages; `client` sent the first of them."""
        super().__init__(runs=_runs_of(placed))
        self.owner, self.client, self.placed = owner, client, placed
        self.bytes_by_client = self._divide_bytes()
        self.size = sum(self.bytes_by_client.values())
        self.duplicates: Sequence[tuple[int, int]] = ()  #: copies that were stored before, as in `dropped`
        self.waiting: BlockedSend | None = None  #: its turn at a full place

    def _divide_bytes(self) -> dict[Client, int]:
        """Return the bytes of the messages of each client."""
        found = {self.client: 0}
        for each in self.placed:
            for sender, part in each.by_sender():
                client = sender or self.client
                found[client] = found.get(client, 0) + each.size_of(part)
        return found

    def on_started(self) -> None:
        """Count it as under way for its clients."""
        for client, size in self.bytes_by_client.items():
            client.on_write_started(size)

    def on_ended(self) -> None:
        """Count it as under way no more."""
        for client, size in self.bytes_by_client.items():
            client.on_write_done(size)

    def refresh_runs(self) -> None:
        """Take the copies from the routes of the messages."""
        self.set_runs(_runs_of(self.placed))

    def regroup(self, shard_of: Callable[[str], int]) -> None:
        """Let the logs of each append be in one shard: some may have moved since the routes were found."""
        changed = False
        for each in self.placed:
            groups = [part for group in each.route.groups for part in group.divide_by(shard_of)]
            if len(groups) > len(each.route.groups):
                each.route, changed = replace(each.route, groups=groups), True
        if changed:
            self.refresh_runs()

    @property
    def given(self) -> Mapping[str, Sequence[LogEntry]]:
        """Return what was given to consumers early, by the names of the logs."""
        given: dict[str, list[LogEntry]] = {}
        for each in self.placed:
            if each.given:
                given.setdefault(each.given[0].log, []).extend(each.given)
        return given

    @property
    def copies_to_dispatch(self) -> list[Sequence[CopyRow]]:
        return [rows for each in self.placed if not each.given for rows in each.rows]

    @property
    def receipts(self) -> Sequence[str | None]:
        """Return what the client wants to be told, for each message."""
        return [receipt for each in self.placed for receipt in each.receipts]

    def receipts_by_client(self) -> Iterable[tuple[Client, Sequence[str | None]]]:
        """Return what each client wants to be told."""
        if len(self.bytes_by_client) == 1:
            return ((self.client, self.receipts),)
        found: dict[Client, list[str | None]] = {client: [] for client in self.bytes_by_client}
        for each in self.placed:
            for sender, receipt in zip(each.senders, each.receipts, strict=True):
                found[sender].append(receipt)
        return found.items()

    @property
    def receipt(self) -> str | None:
        """Return the first of them."""
        return next(iter(self.receipts), None)

    @property
    def is_droppable(self) -> bool:
        """Return whether any of its copies is rather dropped than refused."""
        return any(each.route.dropping for each in self.placed)

    def on_batch_done(self, seq: FirstNumber, position: int, committed: CommitResult) -> None:
        self.owner.on_result(self, seq, position, committed)

    def split(self) -> list[ClientWrite]:
        """Return a write for each unit, on its way instead of this one."""
        if self.unit_count == 1:
            return [self]
        parts = [part for each in self.placed for part in each.split()]
        units = [ClientWrite(self.owner, part.sender or self.client, [part]) for part in parts]
        self.on_ended()
        for unit in units:
            unit.on_started()
        return units

    def divide(self, wanted: Callable[[PendingWrite], bool]) -> tuple[Sequence[ClientWrite], ClientWrite | None]:
        units = self.split()
        taken = [unit for unit in units if wanted(unit)]
        rest = [unit for unit in units if not wanted(unit)]
        if not rest:
            return taken, None
        left = ClientWrite(self.owner, rest[0].client, [each for unit in rest for each in unit.placed])
        for unit in rest:
            unit.on_ended()
        left.on_started()
        return taken, left

    def divide_by(self, shards_of: Callable[[RoutedBatch], Collection[int]]) -> list[ClientWrite]:
        """Return writes on their way instead, in order: of messages to one shard, or of one message to several."""
        parts: list[ClientWrite] = []
        alike: dict[int, list[RoutedBatch]] = {}

        def close() -> None:
            parts.extend(ClientWrite(self.owner, placed[0].sender or self.client, placed) for placed in alike.values())
            alike.clear()

        for each in self.placed:
            shards = shards_of(each)
            if len(shards) == 1:
                alike.setdefault(next(iter(shards)), []).append(each)
                continue
            close()
            for one in each.split():
                parts.append(part := AtomicWrite(self.owner, one.sender or self.client, [one], one.receipts))
                part.dedup_key = next(iter(one.dedup_keys), "")
        close()
        if self.waiting is not None:  # one message
            [part] = parts
            part.waiting, self.waiting.unit = self.waiting, part
        self.on_ended()
        for part in parts:
            part.on_started()
        return parts

    def droppable_rows(self, position: int) -> list[tuple[int, int, int, int]]:
        rows = []
        for each in self.placed:
            if each.route.dropping:
                for unit in range(position, position + len(each.messages)):
                    rows += [(unit, *row) for row in _droppable([each])]
            position += len(each.messages)
        return rows

    def dedup_keys(self, position: int) -> list[tuple[int, str]]:
        if not any(each.dedup_keys for each in self.placed):
            return []
        keys = [key for each in self.placed for key in each.dedup_keys or [""] * len(each.messages)]
        return [(unit, key) for unit, key in enumerate(keys, position) if key]


class AtomicWrite(ClientWrite):
    """What happens whole or not at all: a transaction, an acknowledgement, a message to several destinations."""

    __slots__ = ("dedup_key", "is_commit", "jobs", "settled", "undo", "wanted_receipts")

    is_atomic = True

    def __init__(
        self,
        owner: ClientWriteOwner,
        client: Client,
        placed: Sequence[RoutedBatch],
        receipts: Sequence[str | None],
        *,
        settled: Sequence[tuple[Subscription, str, LogEntry]] = (),
        jobs: Sequence[ScheduledJobChange] = (),
        undo: Callable[[], None] | None = None,
        is_commit: bool = False,
    ) -> None:
        super().__init__(owner, client, placed)
        self.wanted_receipts, self.settled, self.jobs, self.undo = receipts, settled, jobs, undo
        self.settles = [entry for _, _, entry in settled if entry.seq]
        self.is_commit, self.dedup_key = is_commit, ""

    def _divide_bytes(self) -> dict[Client, int]:
        return {self.client: sum([each.size for each in self.placed])}

    @property
    def receipts(self) -> Sequence[str | None]:
        return self.wanted_receipts

    def droppable_rows(self, position: int) -> list[tuple[int, int, int, int]]:
        return [(position, *row) for row in _droppable(self.placed)]

    def dedup_keys(self, position: int) -> list[tuple[int, str]]:
        return [(position, self.dedup_key)] if self.dedup_key else []


class JobWrite(PendingWrite):
    """A unit with jobs."""

    __slots__ = ("jobs",)

    def __init__(
        self,
        jobs: Sequence[ScheduledJobChange],
        appends: Sequence[tuple[bytes, Sequence[CopyRow]]] = (),
        ignores_limits: bool = False,
        callback: Callable[[int, str], Any] | None = None,
        settles: Sequence[SettledEntry] = (),
    ) -> None:
        super().__init__(appends, settles, ignores_limits, callback)
        self.jobs = jobs


class BranchWrite(PendingWrite):
    """Prepare a branch of a transaction, or end it; with all that goes with it."""

    __slots__ = ("branch", "jobs")

    def __init__(
        self,
        branch: BranchChange,
        appends: Sequence[tuple[bytes, Sequence[CopyRow]]] = (),
        *,
        settles: Sequence[SettledEntry] = (),
        jobs: Sequence[ScheduledJobChange] = (),
        callback: Callable[[int, str], Any],
    ) -> None:
        """Make a write that keeps its promise when the branch ends: no limit applies then."""
        super().__init__(appends, settles, not branch.is_new, callback)
        self.branch, self.jobs = branch, jobs
        copies, size = self.cost
        self.cost = copies, size + len(branch.held)


def _runs_of(placed: Sequence[RoutedBatch]) -> list[AppendRun]:
    return [(each.stored, each.rows) for each in placed]


def _droppable(placed: Sequence[RoutedBatch]) -> list[tuple[int, int, int]]:
    """The copies that are rather dropped than refused, see PendingWrite."""
    groups = [group for each in placed for group in each.route.groups]
    return [(number, *each) for number, group in enumerate(groups, start=1) for each in group.droppable]
