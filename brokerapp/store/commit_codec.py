"""Encodes a commit for the function of the server, and decodes its reply.

The function (functions/batch.lua) gets one flat row of arguments and knows a log by its index in the call's keys: a
name that many units share is sent once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from brokerapp.store import (
    GONE,
    STORE,
    TEMP,
    AppendRun,
    BranchChange,
    CommitBatch,
    CommitResult,
    CopyRow,
    PendingWrite,
    SettledEntry,
    StoreLimits,
)
from brokerapp.store.client.keys import StoreKeys

_log, _seq, _payload, _size = map(attrgetter, ("log", "seq", "payload", "size"))
#: Rows, and SEQs, in one command: Lua hands a command at most some thousand arguments.
ROWS_AT_ONCE = 500
#: Why a unit was refused when no single log is full, see functions/limits.lua.
_REASONS = {-1: STORE, -2: GONE, -3: TEMP}


def decode_result(
    logs: Sequence[str],
    base: int,
    refused: list[list[int]],
    dropped: list[list[int]],
    used: int,
    held: Sequence[Sequence[int]],
    temp: int,
    repeated: list[list[int]],
    last: Sequence[Sequence[int]],
    changes: int,
) -> CommitResult:
    """Return the answer of the commit function, which knows logs by their index, as a CommitResult."""
    by_log, before = ({logs[index]: number for index, number in each} for each in (held, last))
    if not refused and not dropped and not repeated:
        return CommitResult(
            base, used_bytes=used, log_bytes=by_log, temp_bytes=temp, previous_seqs=before, change_count=changes
        )
    reasons = {unit: logs[index] if index >= 0 else _REASONS[index] for unit, index in refused}
    return CommitResult(base, reasons, _by_unit(dropped), used, by_log, temp, _by_unit(repeated), before, changes)


def _by_unit(copies: list[list[int]]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for unit, message, copy in copies:
        found[unit].append((message, copy))
    return dict(found)


def encode_call(
    keys: StoreKeys, session: str, batch: CommitBatch, limits: StoreLimits
) -> tuple[list[str], list[str], list[Any]]:
    """Return the logs a batch touches, and the keys and arguments of the commit call."""
    logs, units = _encode_units(batch.writes)
    prefix = keys.log_prefix
    prefixes = (keys.payload_prefix, prefix, keys.expiring_prefix, keys.returned_prefix, keys.urgent_prefix)
    args: list[Any] = [session, batch.number, limits.accepted_bytes, *prefixes, limits.server, limits.temp]
    args += ("" if batch.previous_batch is None else batch.previous_batch, keys.payload_base)
    args.append(len(batch.declarations))
    for log, attributes in batch.declarations:
        args += (log, prefix + log, attributes or "")
    numbered = batch.numbered_writes
    droppable = [row for position, write in numbered for row in write.droppable_rows(position)]
    args += (*_rows(batch.recovery_marks), *_rows(batch.redelivery_counts), *_encode_jobs(batch))
    args += _rows([(at, each.id, int(each.is_new), each.summary, each.held) for at, each in _branches(batch)])
    args += _rows([(at, each.intent.id, each.intent.content) for at, each in numbered if each.intent is not None])
    args += map(limits.of_log, logs)
    args += _rows(droppable)
    args += _rows([row for position, write in numbered for row in write.dedup_keys(position)])
    args += _rows([(index,) for index, log in enumerate(logs) if batch.wants_previous_seq(log)])
    args += units
    fixed = (
        keys.state, keys.logs, keys.used, keys.marks, keys.expiring, keys.due, keys.jobs, keys.prioritized, keys.audit,
        keys.prepared, keys.prepared_held, keys.intents,
    )  # fmt: skip
    return logs, [*fixed, *(prefix + log for log in logs)], args


def _rows(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the number of rows, followed by their values."""
    return [len(rows), *(each for row in rows for each in row)]


class _UnitArguments:
    """Units of writes as arguments of the commit function."""

    def __init__(self) -> None:
        self.indices: dict[str, int] = {}  #: of the logs that they touch
        self.args: list[Any] = []
        self.count = 0  #: of units, and of runs of units that are alike

    def add_unit(self, runs: Sequence[AppendRun], write: PendingWrite) -> None:
        """Add one unit; what it settles is that of its write."""
        self.count += 1
        count = sum([len(stored) * len(appends) for stored, appends in runs])
        self.args.append(f"-{count}" if write.ignores_limits else count)
        for stored, appends in runs:
            copies = [self._copies(rows) for rows in appends]
            for each in stored:
                for copy in copies:
                    self.args += (each, *copy)
        if write.settles:
            _encode_settles(write.settles, self.indices, self.args)
        else:
            self.args += _NO_SETTLES

    def add_run(self, stored: Sequence[bytes], rows: Sequence[CopyRow]) -> None:
        """Add messages with the same copies, each of which is a unit."""
        self.count += 1
        self.args += (_RUN, len(stored))
        self.args += self._copies(rows)
        self.args += stored

    def _copies(self, rows: Sequence[CopyRow]) -> list[Any]:
        """Return what says which copies a message makes."""
        indices = self.indices
        copies: list[Any] = [len(rows)]
        for log, original, shown in rows:
            copies += (indices.setdefault(log, len(indices)), original, shown)
        return copies


def _encode_units(writes: Sequence[PendingWrite]) -> tuple[list[str], list[Any]]:
    """Return the logs the writes touch, and their units as arguments of the commit function."""
    units = _UnitArguments()
    for write in writes:
        if write.is_atomic:
            units.add_unit(write.runs, write)
            continue
        for stored, appends in write.runs:
            if len(appends) == 1:
                units.add_run(stored, appends[0])
                continue
            for each in stored:
                units.add_unit([((each,), appends)], write)
    return list(units.indices), [units.count, *units.args]


def _encode_jobs(batch: CommitBatch) -> list[Any]:
    """Return the job changes of the writes as arguments of the commit function."""
    changes = [(position, each) for position, unit in batch.numbered_writes if unit.jobs for each in unit.jobs]
    return _rows([(position, each.id, int(each.new), each.due_ms, each.record) for position, each in changes])


def _branches(batch: CommitBatch) -> list[tuple[int, BranchChange]]:
    """Return what becomes of prepared branches, with the positions of the units."""
    return [(position, unit.branch) for position, unit in batch.numbered_writes if unit.branch is not None]


#: Entries that follow each other from which the store looks whether they are the first of their log: then it removes
#: them as one. For copies of a virtual topic in 100 queues that took a fifth off the CPU of the store.
LEAST_SEQUENCE = 8
#: Where other units have their number of messages.
_RUN = "run"
#: No groups of settled entries, no payloads, no bytes freed, nor volatile ones.
_NO_SETTLES = (0, 0, 0, 0)


def _encode_settles(settles: Sequence[SettledEntry], indices: dict[str, int], args: list[Any]) -> None:
    groups: dict[str, list[SettledEntry]] = defaultdict(list)
    for log, of_log in groupby(settles, _log):
        groups[log] += of_log
    payloads = Counter(map(_payload, settles))
    inline = volatile = 0
    if payloads.pop(0, 0):
        own = [each for each in settles if not each.payload]
        inline = sum(map(_size, own))
        volatile = sum([each.size for each in own if not each.message.persistent])
    chunks = [
        (log, group[at : at + ROWS_AT_ONCE])
        for log, group in groups.items()
        for at in range(0, len(group), ROWS_AT_ONCE)
    ]
    args.append(len(chunks))
    for log, chunk in chunks:
        args += (indices.setdefault(log, len(indices)), sum(map(_size, chunk)))
        args += _numbers_of(list(map(_seq, chunk)))
    args.append(len(payloads))
    for payload in payloads.items():
        args += payload
    args += (inline, volatile)


def _numbers_of(seqs: list[int]) -> Sequence[int]:
    """Return how many numbers these are and the numbers; of many that follow each other the first, and `-` how many."""
    if len(seqs) >= LEAST_SEQUENCE:
        seqs.sort()
        if seqs == list(range(seqs[0], seqs[0] + len(seqs))):
            return -len(seqs), seqs[0]
    return len(seqs), *seqs
