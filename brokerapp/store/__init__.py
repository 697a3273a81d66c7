"""Records that the broker exchanges with its store.

Every operation of the store is atomic. Messages change by `commit` only, which takes a batch of pending writes and does
each one whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from brokerapp.model import JsonObject
from brokerapp.model.message import Message, is_non_persistent
from brokerapp.store.server.disk_space import DiskSpace

#: `kind` among the attributes of a log that is to be removed with its messages.
DISCARDED = "discarded"
#: Refuses a write because the whole store is full, rather than one log.
STORE = "store"
#: Refuses a write because the limit of non-persistent messages is reached.
TEMP = "temp"
#: Reasons that concern all logs.
SHARED = (STORE, TEMP)
#: Refuses a write that changes or ends a scheduled job or a prepared branch which no longer exists, or that prepares a
#: branch once more.
GONE = "job"


class AppendNumbers:
    """Sequence numbers of the appends of a write to several shards, from one of them on."""

    __slots__ = ("_numbers", "_start")

    def __init__(self, numbers: Sequence[int], start: int = 0) -> None:
        self._numbers, self._start = numbers, start

    def __add__(self, count: int) -> AppendNumbers:
        """Return the numbers from so many appends further on."""
        return AppendNumbers(self._numbers, self._start + count)

    def take(self, count: int) -> Sequence[int]:
        """Return the next so many numbers."""
        return self._numbers[self._start : self._start + count]


#: The number of the first append of a write to one store, where they follow each other; or the numbers of all of them.
FirstNumber = int | AppendNumbers


def numbers_from(first: FirstNumber, count: int) -> Sequence[int]:
    """Return the numbers of so many appends."""
    if isinstance(first, AppendNumbers):
        return first.take(count)
    return range(first, first + count)


class SettledEntry(Protocol):
    """An entry to remove from its log."""

    log: str  #: where it is
    seq: int
    payload: int  #: number of the payload it refers to; 0: it holds its message itself
    size: int  #: bytes of the stored message
    message: Message


@dataclass(slots=True)
class ScheduledJobChange:
    """A scheduled job to store until it is due (milliseconds since the epoch), or to remove when it has no record.

    A write that changes or ends a job which no longer exists is refused, unless the job is `new`.
    """

    id: str
    due_ms: int = 0
    record: bytes = b""
    new: bool = False


@dataclass(slots=True)
class BranchChange:
    """A branch of a transaction to keep as prepared, or, without a summary, to end.

    A write that prepares a branch which is prepared already, or ends one which is not, is refused.
    """

    id: str
    summary: bytes = b""
    held: bytes = b""

    @property
    def is_new(self) -> bool:
        """Return whether the branch is prepared with this write."""
        return bool(self.summary)


@dataclass(slots=True)
class IntentChange:
    """What other shards are to do of a write, to keep with the part that is done; or, without content, to end."""

    id: str
    content: bytes = b""


#: A copy of a message: name of the log, original destination or "", shown destination or "".
CopyRow = tuple[str, str, str]


#: Messages in their stored form, and the copies that each of them makes, in one or more appends.
AppendRun = tuple[Sequence[bytes], Sequence[Sequence[CopyRow]]]


class WriteOwner(Protocol):
    """Acts on the outcomes of its writes."""

    def on_stored(self, writes: Sequence[Any], seq: FirstNumber) -> None:
        """Act on writes that follow each other, of which nothing was refused; the first message has this number."""


class PendingWrite:
    """Work of one client, in units of which each is done whole or not at all. `on_done` is called once.

    `runs`: the messages to append. In an atomic write all are one unit, else each message is a unit by itself.
    `settles`: entries to remove, in an atomic write.
    `ignores_limits`: it moves or changes what it settles, so that no limit applies.
    `droppable`: copies to drop rather than refuse the write, as (append, first copy, last copy), counted from 1.
    `dropped`: copies that were dropped, as (append, copy), counted from 1; known when it is done.
    """

    __slots__ = ("callback", "cost", "count", "droppable", "dropped", "ignores_limits", "runs", "settles", "unit_count")

    is_atomic = True
    # Classes of writes that have one of these have a slot for it.
    client: Any = None  #: the client that waits for it; Any, because the store knows no clients
    owner: WriteOwner | None = None  #: who acts on what is stored of several writes at once; None: each by itself
    jobs: Sequence[ScheduledJobChange] = ()  #: changes of scheduled jobs
    branch: BranchChange | None = None  #: what becomes of a prepared branch
    intent: IntentChange | None = None  #: what other shards are to do of it
    given: Mapping[str, Sequence[SettledEntry]] = {}  #: by log: entries that consumers were given early
    dedup_key: str = ""  #: by which the messages of its unit are recognised when another broker forwards them again

    def __init__(
        self,
        appends: Sequence[tuple[bytes, Sequence[CopyRow]]] = (),
        settles: Sequence[SettledEntry] = (),
        ignores_limits: bool = False,
        callback: Callable[[Any, str], None] | None = None,
        droppable: Sequence[tuple[int, int, int]] = (),
        runs: Sequence[AppendRun] = (),
    ) -> None:
        """Make a write of messages with the copies of each, or of `runs` of them."""
        self.set_runs(runs or [((stored,), (rows,)) for stored, rows in appends])
        self.settles, self.ignores_limits, self.callback = settles, ignores_limits, callback
        self.droppable = droppable
        self.dropped: Sequence[tuple[int, int]] = ()

    def set_runs(self, runs: Sequence[AppendRun]) -> None:
        """Set the messages to append, and count what is asked for of a write several times.

        `count`: the appends, each of which takes a sequence number. `cost`: the copies, and the bytes of the messages.
        `unit_count`: the units.
        """
        self.runs = runs
        units = count = copies = size = 0
        for stored, appends in runs:
            units += len(stored)
            count += len(stored) * len(appends)
            copies += len(stored) * sum(map(len, appends))
            size += len(appends) * sum(map(len, stored))
        self.count, self.cost, self.unit_count = count, (copies, size), 1 if self.is_atomic else units

    def on_done(self, seq: FirstNumber, refused: str) -> None:
        """Act on the outcome.

        `seq` is the number of the first message; `refused` is "", what is full (a log, STORE, TEMP), or GONE.
        """
        if self.callback is not None:
            self.callback(seq, refused)

    def on_batch_done(self, seq: FirstNumber, position: int, committed: CommitResult) -> None:
        """Take this write's outcome from that of its batch; its units have positions from this one on, from 1."""
        if committed.dropped and position in committed.dropped:
            self.dropped = committed.dropped[position]
        self.on_done(seq, committed.refused.get(position, ""))

    @property
    def copies(self) -> list[Sequence[CopyRow]]:
        """Return the copies that its messages make, once for messages that make the same."""
        return [rows for _, appends in self.runs for rows in appends]

    @property
    def copies_to_dispatch(self) -> list[Sequence[CopyRow]]:
        """Return those of `copies` that consumers can be given only when they are stored."""
        return [] if self.given else self.copies

    @property
    def is_non_persistent(self) -> bool:
        """Return whether any of its messages is non-persistent."""
        return any(is_non_persistent(each) for stored, _ in self.runs for each in stored)

    def divide(self, _wanted: Callable[[PendingWrite], bool]) -> tuple[Sequence[PendingWrite], PendingWrite | None]:
        """Return the units that are wanted, each as a write, and a write of the others; None when there is none."""
        return [self], None

    def droppable_rows(self, position: int) -> list[tuple[int, int, int, int]]:
        """Return `droppable`, each with the position of its unit, of which the first has this one."""
        return [(position, *each) for each in self.droppable]

    def dedup_keys(self, position: int) -> list[tuple[int, str]]:
        """Return the keys of its units that have one, with their positions, of which the first is this one."""
        return [(position, self.dedup_key)] if self.dedup_key else []


@dataclass(slots=True)
class CommitBatch:
    """All that one commit carries."""

    number: int
    writes: list[PendingWrite]
    #: Log name and attributes as JSON; None removes the log if it is empty.
    declarations: list[tuple[str, str | None]] = field(default_factory=list)
    recovery_marks: list[tuple[str, str]] = field(default_factory=list)  #: log name, SEQ or `open`
    redelivery_counts: list[tuple[str, int, int]] = field(default_factory=list)  #: log name, SEQ, deliveries so far
    #: Whether the result is to name the last entry that a log had before this batch.
    wants_previous_seq: Callable[[str], bool] = lambda _log: False
    #: Number of the session's last batch that was answered; 0: none; None: not said.
    previous_batch: int | None = None
    #: Whether no replica has confirmed the batch before, so that a primary that took over may lack it.
    follows_unconfirmed: bool = False

    #: The writes with the positions of their first units, from 1.
    numbered_writes: list[tuple[int, PendingWrite]] = field(init=False)

    def __post_init__(self) -> None:
        position, self.numbered_writes = 1, []
        for write in self.writes:
            self.numbered_writes.append((position, write))
            position += write.unit_count

    @property
    def makes_changes(self) -> bool:
        """Return whether anything in it changes the store."""
        if self.declarations or self.recovery_marks or self.redelivery_counts:
            return True
        return any(unit.count or unit.settles or unit.jobs or unit.branch or unit.intent for unit in self.writes)


class Confirmation(Protocol):
    """Ends when replicas of the store have a batch, too."""

    def __await__(self) -> Generator[Any, None, None]: ...

    def done(self) -> bool:
        """Return whether it has ended, well or not."""


@dataclass(slots=True)
class CommitResult:
    """Outcome of a commit. Positions of writes count from 1."""

    base_seq: int  #: sequence number before that of the first message
    refused: Mapping[int, str] = field(default_factory=dict)  #: by position: the full log, STORE, TEMP or GONE
    #: Copies that were dropped, by position, as in PendingWrite.
    dropped: Mapping[int, list[tuple[int, int]]] = field(default_factory=dict)
    used_bytes: int = 0  #: of all messages in the store now
    log_bytes: Mapping[str, int] = field(default_factory=dict)  #: the same of those logs of the batch that have a limit
    temp_bytes: int = 0  #: of the non-persistent messages
    duplicates: Mapping[int, list[tuple[int, int]]] = field(default_factory=dict)  #: by position: copies stored before
    previous_seqs: Mapping[str, int] = field(default_factory=dict)  #: last entry before, by log asked for; 0: none
    change_count: int = 0  #: changes made to the store so far
    #: To wait for before it counts; fails with StoreUnavailable. None: it counts as it is.
    confirmation: Confirmation | None = None


@dataclass(slots=True)
class StoredLogEntry:
    """An entry of a log as read: `payload` is 0 when it holds its message itself."""

    seq: int
    message: Message
    payload: int
    size: int  #: bytes of the stored form
    original: str
    shown: str


@dataclass(slots=True)
class StoredJob:
    """A scheduled job as read from the store."""

    id: str
    due_ms: int  #: milliseconds since the epoch
    record: bytes


@dataclass(slots=True)
class LogState:
    """State of a log as found when a node starts."""

    name: str
    attributes: JsonObject
    depth: int
    mark: str  #: SEQ up to which messages may have been delivered, `open`: all, or ""
    last_seq: int = 0  #: of the last message in any log of its store
    returned: dict[int, int] = field(default_factory=dict)  #: SEQ -> deliveries, of entries that came back


@dataclass(slots=True)
class StoreLimits:
    """Limits of the store in bytes, 0 for unlimited, and what was written since the disk was last checked."""

    total: int = 0
    temp: int = 0  #: of that, what is not persistent; each message counts once, however many copies it has
    server: int = 0  #: bytes the server may use, whatever takes them
    of_log: Callable[[str], int] = lambda _log: 0
    disk: DiskSpace = field(default_factory=DiskSpace)  #: of a store of our own
    committed_bytes: int = 0  #: bytes, since the start
    committed_at_disk_check: int = 0  #: the same when the disk was last checked
    committing_bytes: int = 0  #: bytes on their way to the server
    needed_bytes: int = 0  #: bytes of the commit that waits for disk space
    wanted_bytes: int = 0  #: bytes of messages that did not fit since then

    def has_space_for(self, size: int) -> bool:
        """Return whether the disk has space for a commit of this many bytes."""
        self.needed_bytes = 0 if self.disk.has_space_for(size + self._uncounted_bytes) else size
        return not self.needed_bytes

    @property
    def accepted_bytes(self) -> int:
        """Return the bytes that may be stored now (0: unlimited); 1 while the disk is almost full: none fits."""
        if not self.is_disk_low:
            return self.total
        self.wanted_bytes = max(self.wanted_bytes, self._uncounted_bytes)
        return 1

    @property
    def is_disk_low(self) -> bool:
        """Return whether no messages are accepted because disk space is low."""
        return not self.disk.accepts(self._uncounted_bytes)

    @property
    def _uncounted_bytes(self) -> int:
        """Return the bytes that may have been written since the disk was last checked."""
        return self.committing_bytes + self.committed_bytes - self.committed_at_disk_check
