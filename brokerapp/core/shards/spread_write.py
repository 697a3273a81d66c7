"""Divide a write that concerns several shards into a part for each.

One shard, the coordinator, does its part first, and keeps with it what the others are to do: the intent. Then the
others do theirs, and the intent is removed. Where the node dies in between, whoever takes over finds the intent and has
the rest done; each part is recognised by the intent's id, so that none is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from brokerapp.core.shards.ordered_work import Work
from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.engine.entries.log_entry import UNCOMMITTED
from brokerapp.model.message import is_non_persistent
from brokerapp.store import (
    TEMP,
    AppendNumbers,
    AppendRun,
    BranchChange,
    CommitResult,
    CopyRow,
    IntentChange,
    PendingWrite,
    ScheduledJobChange,
    SettledEntry,
)
from brokerapp.store.shards.intent_codec import ShardPart, encode_parts
from brokerapp.store.shards.part_write import PartWrite


def logs_of(unit: PendingWrite) -> set[str]:
    """Return the logs that a write concerns; of messages that no log keeps the topics, which have an order, too."""
    logs = {row[0] for rows in unit.copies for row in rows}
    logs.update([entry.log for entry in unit.settles])
    if isinstance(unit, ClientWrite) and not logs:
        return {str(each.destination) for each in unit.placed}
    return logs


#: What bytes come to: a shard, what it may hold that is not persistent, or a log.
Place = int | tuple[str, int] | str


@dataclass(slots=True)
class _PartContent:
    """What one shard is to do of a write."""

    runs: list[AppendRun] = field(default_factory=list)
    append_indices: list[int] = field(default_factory=list)  #: of its appends among those of the write
    settles: list[SettledEntry] = field(default_factory=list)


def divide(write: PendingWrite, shard_of: Callable[[str], int]) -> dict[int, _PartContent]:
    """Return what each shard is to do of a write. The logs of one append are in one shard."""
    parts: dict[int, _PartContent] = {}
    before = 0  # appends of the runs before this one
    for stored, appends in write.runs:
        by_shard: dict[int, list[int]] = {}
        for place, rows in enumerate(appends):
            by_shard.setdefault(shard_of(rows[0][0]), []).append(place)
        for shard, places in by_shard.items():
            part = parts.setdefault(shard, _PartContent())
            part.runs.append((stored, [appends[place] for place in places]))
            part.append_indices += [
                before + message * len(appends) + place for message in range(len(stored)) for place in places
            ]
        before += len(stored) * len(appends)
    for entry in write.settles:
        if entry.seq:  # else it was never stored
            parts.setdefault(shard_of(entry.log), _PartContent()).settles.append(entry)
    return parts


def coordinator_of(write: PendingWrite, shard_of: Callable[[str], int], is_limited: Callable[[str], bool]) -> int:
    """Return the shard that does its part of a write first: the one that can refuse it.

    Scheduled jobs and prepared branches are in shard 0. Of shards whose logs may be full it is one of those: only the
    store knows what is in them, where other nodes write, too. Of others it is the lowest, so that writes to the same
    shards have the same one, which does its parts of many of them at once.
    """
    if write.jobs or write.branch is not None:
        return 0
    if not write.ignores_limits:
        limited = {shard_of(log) for rows in write.copies for log, _, _ in rows if is_limited(log)}
        if limited:
            return min(limited)
    appended = {shard_of(rows[0][0]) for rows in write.copies if rows}
    return min(appended | {shard_of(entry.log) for entry in write.settles})


class SpreadPart(PartWrite):
    """What one shard does of a write."""

    __slots__ = ("_done", "append_indices", "branch", "jobs", "shard")

    def __init__(
        self,
        shard: int,
        content: _PartContent,
        done: Callable[[SpreadPart, int, int, CommitResult], None],
        *,
        ignores_limits: bool = True,
        droppable: Sequence[tuple[int, int, int]] = (),
        part_of: str = "",
        dedup_key: str = "",
        intent: IntentChange | None = None,
    ) -> None:
        super().__init__(
            runs=content.runs, settles=content.settles, droppable=droppable, ignores_limits=ignores_limits,
            part_of=part_of, dedup_key=dedup_key, intent=intent,
        )  # fmt: skip
        self.shard, self.append_indices, self._done = shard, content.append_indices, done
        self.jobs: Sequence[ScheduledJobChange] = ()
        self.branch: BranchChange | None = None

    def on_batch_done(self, seq: Any, position: int, committed: CommitResult) -> None:
        self._done(self, seq, position, committed)

    @property
    def _rows_of_appends(self) -> Iterator[Sequence[CopyRow]]:
        return (rows for stored, appends in self.runs for _ in stored for rows in appends)

    def bytes_by_log(self) -> dict[str, int]:
        """Return the bytes of the messages that come to each log."""
        found: dict[str, int] = {}
        for stored, appends in self.runs:
            size = sum(map(len, stored))
            for log in [row[0] for rows in appends for row in rows]:
                found[log] = found.get(log, 0) + size
        return found

    @property
    def temp_bytes(self) -> int:
        """Return the bytes of its messages that are not persistent."""
        return sum(
            len(each) * len(appends) for stored, appends in self.runs for each in stored if is_non_persistent(each)
        )

    def last_seqs(self, seq: int) -> dict[str, int]:
        """Return the number of its last message in each log, where this is the number of the first."""
        return {row[0]: number for number, rows in enumerate(self._rows_of_appends, start=seq) for row in rows}


def _stored_part(part: SpreadPart) -> ShardPart:
    appends = [(each, rows) for stored, of_each in part.runs for each in stored for rows in of_each]
    return ShardPart(part.shard, appends, part.settles, part.dedup_key)


class SpreadWrite:
    """A write that concerns several shards, on its way.

    `begin` is the coordinator's part, `others` are its other parts, and `intent_end` is what removes the intent.
    `on_part_stored` is told of the last number that a part took in each log, and returns what stood there before.
    """

    def __init__(
        self,
        id: str,
        write: PendingWrite,
        shard_of: Callable[[str], int],
        *,
        is_limited: Callable[[str], bool],
        on_part_stored: Callable[[Mapping[str, int]], Mapping[str, int]],
        on_coordinated: Callable[[SpreadWrite], None],
        on_done: Callable[[SpreadWrite], None],
    ) -> None:
        self.id, self.write = id, write
        self.first_turn: Work[PendingWrite]  #: of its coordinator's part
        self.turns: list[Work[PendingWrite]] = []  #: of its parts in other shards
        self.is_coordinated = self.has_begun = False
        self._on_part_stored, self._on_coordinated, self._on_done = on_part_stored, on_coordinated, on_done
        self.coordinator = coordinator_of(write, shard_of, is_limited)
        contents = divide(write, shard_of)
        own = contents.pop(self.coordinator, _PartContent())
        place_of = {index: place for place, index in enumerate(own.append_indices, start=1)}
        droppable = [
            (place_of[append - 1], first, last)
            for _, append, first, last in write.droppable_rows(1)
            if append - 1 in place_of
        ]
        self.begin = SpreadPart(
            self.coordinator, own, self._on_begun, ignores_limits=write.ignores_limits, droppable=droppable,
            dedup_key=write.dedup_key,
        )  # fmt: skip
        self.begin.jobs, self.begin.branch = write.jobs, write.branch
        self.others = [
            SpreadPart(shard, content, self._on_part_done, part_of=id, dedup_key=write.dedup_key)
            for shard, content in sorted(contents.items())
        ]
        self.logs = {row[0] for rows in write.copies for row in rows} | {entry.log for entry in write.settles}
        self.coming: dict[Place, int] = {}  #: bytes that come to each other shard, and to its logs
        for part in self.others:
            if size := part.cost[1]:
                self.coming[part.shard], self.coming[TEMP, part.shard] = size, part.temp_bytes
                self.coming.update(part.bytes_by_log())
        self._numbers = [0] * write.count
        self._left = len(self.others)
        self._dropped: list[tuple[int, int]] = []
        self._duplicates: list[tuple[int, int]] = []
        self.previous_seqs: dict[str, int] = {}  #: what stood last in the logs, as far as it was asked for
        self.refused = ""  #: why the coordinator refused it
        self.is_verified = False  #: the other shards were asked how much they hold, as they seemed to be full

    @property
    def is_ready(self) -> bool:
        """Return whether it is known by which numbers its other parts settle."""
        return all(entry.seq != UNCOMMITTED for part in self.others for entry in part.settles)

    def seal(self) -> None:
        """Make the intent, when it is ready; what it settles that came to be stored nowhere is left out."""
        for part in self.others:
            part.settles = [entry for entry in part.settles if entry.seq]
        self.begin.intent = IntentChange(self.id, encode_parts(list(map(_stored_part, self.others))))
        held = b"" if self.begin.branch is None else self.begin.branch.held
        copies, size = self.begin.cost
        self.begin.cost = copies, size + len(self.begin.intent.content) + len(held)
        self.has_begun = True

    def intent_end(self, on_ended: Callable[[SpreadWrite], None]) -> PendingWrite:
        """Return the write that removes the intent."""
        return SpreadPart(self.coordinator, _PartContent(), lambda *_: on_ended(self), intent=IntentChange(self.id))

    def _on_begun(self, part: SpreadPart, seq: int, position: int, committed: CommitResult) -> None:
        self.refused = committed.refused.get(position, "")
        if not self.refused:
            self._note(part, seq, position, committed)
        else:
            self._left = 0
        self.is_coordinated = True
        self._on_coordinated(self)
        if not self._left:
            self._on_done(self)

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to do for other shards."""
        return not self._left

    def _on_part_done(self, part: SpreadPart, seq: int, position: int, committed: CommitResult) -> None:
        self._note(part, seq, position, committed)
        self._left -= 1
        if not self._left:
            self._on_done(self)

    def _note(self, part: SpreadPart, seq: int, position: int, committed: CommitResult) -> None:
        for number, index in enumerate(part.append_indices, start=seq):
            self._numbers[index] = number
        for found, told in ((self._dropped, committed.dropped), (self._duplicates, committed.duplicates)):
            found += [(part.append_indices[append - 1] + 1, copy) for append, copy in told.get(position, ())]
        self.previous_seqs.update(self._on_part_stored(part.last_seqs(seq)))

    def refuse(self, full: str) -> None:
        """Refuse it for what is full of another shard than the coordinator: nothing of it was done."""
        self.refused, self._left, self.is_coordinated = full, 0, True
        self._on_coordinated(self)
        self._on_done(self)

    def report(self) -> None:
        """Tell the write how it ended."""
        refused: Mapping[int, str] = {1: self.refused} if self.refused else {}
        dropped, duplicates = ({1: each} if each else {} for each in (self._dropped, self._duplicates))
        outcome = CommitResult(0, refused, dropped, duplicates=duplicates)
        self.write.on_batch_done(AppendNumbers(self._numbers), 1, outcome)
