"""Store: durable storage as the broker needs it, and the records it exchanges with it.

Every verb is atomic. `commit` is what changes messages: it takes a batch of units, each done whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from brokerapp.model.message import Message, is_non_persistent
from brokerapp.store.server.disk_space import DiskSpace

#: `kind` among the attributes of a log that belongs to nobody any more: it goes with all it holds.
DISCARDED = "discarded"
#: What is full when it is no single log.
STORE = "store"
#: The same for messages that are not persistent.
TEMP = "temp"
#: What is full for more than one log.
SHARED = (STORE, TEMP)
#: What refuses a unit that ends a job which is no more.
GONE = "job"


class SettledEntry(Protocol):
    """An entry to remove from its log."""

    log: str  #: where it is
    seq: int
    payload: int  #: number of the payload it refers to; 0: it holds its message itself
    size: int  #: bytes of the stored message
    message: Message


@dataclass(slots=True)
class ScheduledJobChange:
    """A job to keep, under an id and until a moment (milliseconds since the epoch). Without a record: it is done.

    A unit that changes or ends a job that is gone, rather than bringing a new one, is refused.
    """

    id: str
    due_ms: int = 0
    record: bytes = b""
    new: bool = False


#: A copy of a message: name of the log, original destination or "", shown destination or "".
CopyRow = tuple[str, str, str]


class PendingWrite:
    """Work of one client that the store does whole or not at all. `on_done` is called once, with the outcome.

    `appends`: messages in their stored form, each with its copies.
    `ignores_limits`: it appends what it settles, in another form or place, so that limits do not stand in its way.
    `droppable`: copies that are not kept rather than refuse the unit, as (message, first copy, last copy) from 1.
    `dropped`: those that were not kept, as (message, copy) from 1; known when it is done.
    """

    __slots__ = ("appends", "callback", "droppable", "dropped", "ignores_limits", "settles")

    client: Any = None  #: who waits for it; a class of units that have one has a slot for it
    jobs: Sequence[
        ScheduledJobChange
    ] = ()  #: what becomes of jobs in the same moment; a class that has some has a slot for them
    #: What its messages are known by when another broker hands them over, and copies that were not kept because they
    #: had been before, as in `dropped`; a class of such units has slots for them.
    dedup_key: str = ""
    duplicates: Sequence[tuple[int, int]] = ()

    def __init__(
        self,
        appends: Sequence[tuple[bytes, Sequence[CopyRow]]] = (),
        settles: Sequence[SettledEntry] = (),
        ignores_limits: bool = False,
        callback: Callable[[int, str], None] | None = None,
        droppable: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        self.appends, self.settles, self.ignores_limits, self.callback = appends, settles, ignores_limits, callback
        self.droppable, self.dropped = droppable, ()

    def on_done(self, seq: int, refused: str) -> None:
        """Act on the outcome.

        `seq` is the number of the first message; `refused` is "", what is full (a log, STORE, TEMP), or GONE.
        """
        if self.callback is not None:
            self.callback(seq, refused)

    def on_batch_done(self, seq: int, position: int, refused: Mapping[int, str]) -> None:
        """Take this write's outcome from that of its batch; `position` counts from 1."""
        self.on_done(seq, refused.get(position, "") if refused else "")

    @property
    def count(self) -> int:
        """Return the number of messages it appends, each of which takes a sequence number."""
        return len(self.appends)

    @property
    def rows_by_message(self) -> list[Sequence[CopyRow]]:
        """Return the copies of each message."""
        return [rows for _, rows in self.appends]

    @property
    def is_non_persistent(self) -> bool:
        """Return whether any of its messages is non-persistent."""
        return any(map(is_non_persistent, (stored for stored, _ in self.appends)))

    @property
    def cost(self) -> tuple[int, int]:
        """Return the number of copies it makes, and the bytes of its messages."""
        return sum([len(rows) for _, rows in self.appends]), sum([len(stored) for stored, _ in self.appends])


class BatchWrite:
    """Messages with the same copies, each stored or refused by itself; the outcome of all is reported at once.

    `rows`: the copies of each, as in Unit.
    """

    __slots__ = ("rows", "stored")

    settles = jobs = droppable = ()
    dedup_key = ""

    def __init__(self, stored: Sequence[bytes], rows: Sequence[CopyRow]) -> None:
        self.stored, self.rows = stored, rows

    def on_done(self, seq: int, refused: Mapping[int, str]) -> None:
        """Act on the outcome. `seq` is the number of the first message; `refused` the reason by index in the batch."""

    def on_batch_done(self, seq: int, position: int, refused: Mapping[int, str]) -> None:
        """Take the outcome of these messages from that of the commit; the first has this `position`."""
        places = range(len(self.stored)) if refused else ()
        self.on_done(seq, {place: refused[position + place] for place in places if position + place in refused})

    @property
    def count(self) -> int:
        """Return the number of messages."""
        return len(self.stored)

    @property
    def rows_by_message(self) -> list[Sequence[CopyRow]]:
        """Return the copies that every message makes, once."""
        return [self.rows]

    @property
    def is_non_persistent(self) -> bool:
        """Return whether its messages are non-persistent: they differ in head and body only."""
        return is_non_persistent(self.stored[0])

    @property
    def cost(self) -> tuple[int, int]:
        """Return the number of copies it makes, and the bytes of its messages."""
        return len(self.stored) * len(self.rows), sum(map(len, self.stored))


@dataclass(slots=True)
class CommitBatch:
    """All that one commit carries."""

    number: int
    writes: list[PendingWrite | BatchWrite]
    declarations: list[tuple[str, str | None]] = field(
        default_factory=list
    )  #: log name, JSON; None: it is removed if empty
    recovery_marks: list[tuple[str, str]] = field(default_factory=list)  #: log name, SEQ or `open`
    redelivery_counts: list[tuple[str, int, int]] = field(default_factory=list)  #: log name, SEQ, deliveries so far
    #: Whether the answer is to say of a log that it appends to what stood last in it before.
    wants_previous_seq: Callable[[str], bool] = lambda _log: False
    previous_batch: int | None = (
        None  #: the number of the session's last batch that was answered; 0: none; None: not said
    )

    @property
    def numbered_writes(self) -> Iterator[tuple[int, PendingWrite | BatchWrite]]:
        """Yield the writes with their positions, from 1: a batch of messages takes one position for each."""
        position = 1
        for unit in self.writes:
            yield position, unit
            position += unit.count if isinstance(unit, BatchWrite) else 1


@dataclass(slots=True)
class CommitResult:
    """The outcome of a commit: SEQ before the first message, and by position of the unit (from 1) what refused it (the
    name of a full log, STORE or TEMP) and its copies that were not kept (see Unit). Then bytes: what the store holds
    now, what those logs of the batch do that have a limit, and what is not persistent of all. Then, by position of the
    unit, its copies that had been kept before. Then, by log that the batch asks about, the SEQ of what stood last in
    it before (0: nothing). Last, how many changes were made to the store so far.
    """

    base_seq: int
    refused: Mapping[int, str] = field(default_factory=dict)
    dropped: Mapping[int, list[tuple[int, int]]] = field(default_factory=dict)
    used_bytes: int = 0
    log_bytes: Mapping[str, int] = field(default_factory=dict)
    temp_bytes: int = 0
    duplicates: Mapping[int, list[tuple[int, int]]] = field(default_factory=dict)
    previous_seqs: Mapping[str, int] = field(default_factory=dict)
    change_count: int = 0


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
    attributes: dict[str, Any]
    depth: int
    mark: str  #: SEQ up to which messages may have been delivered, `open`: all, or ""
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
    committed_at_disk_check: int = 0  #: the same when the last look at the disk began
    committing_bytes: int = 0  #: bytes on their way to the server
    needed_bytes: int = 0  #: bytes of the commit that waits for disk space
    wanted_bytes: int = 0  #: bytes of messages that did not fit since the last look at the disk

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
