"""Committer: the group commit. What all clients asked during one round trip to the store goes into the next one.

One batch is under way at a time, so what is asked later is done later. A batch whose answer was lost is sent again
until the store answers; the store does it once.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Protocol

from brokerapp.errors import Fenced, StoreUnavailable
from brokerapp.store import DISCARDED, Batch, Committed, Limits, Settled, StoredEntry, Unit

logger = logging.getLogger(__name__)

#: Units in one batch: bounds how long the store is busy with one call (some 10 ms).
MAX_UNITS = 2_000
#: Copies and bytes of messages in one batch, for the same reason.
MAX_COPIES = 10_000
MAX_BYTES = 8 * 1024 * 1024
#: Pages read in one round: the next commit waits for them.
MAX_READS = 16
#: Seconds between attempts to reach a store that does not answer.
RETRY_SECONDS = 0.1

ReadCallback = Callable[[list[StoredEntry]], None]


class CommitStore(Protocol):
    """What the committer needs of the store."""

    async def commit(self, session: str, batch: Batch, limits: Limits) -> Committed: ...

    async def read(self, log: str, after: int, count: int) -> list[StoredEntry]: ...

    async def drop(self, log: str, session: str) -> int: ...


class Committer:
    """Takes units and reads from the broker, in order; calls back when they are done."""

    def __init__(self, store: CommitStore, session: str, limits: Limits, after_batch: Callable[[], None]) -> None:
        self._store, self._session, self._limits, self._after_batch = store, session, limits, after_batch
        self._units: list[Unit] = []
        self._under_way: list[Unit] = []  # in the store's hands
        self._settles: list[Settled] = []
        self._declarations: list[tuple[str, str | None]] = []
        self._marks: dict[str, str] = {}
        self._reads: list[tuple[str, int, int, ReadCallback]] = []
        self._doomed: asyncio.Queue[tuple[str, Callable[[], None]]] = asyncio.Queue()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._number = 0
        self.waiting_since: float | None = None  #: loop time at which the store stopped answering

    # -- what the broker asks; none of it waits

    def submit(self, unit: Unit) -> None:
        """Do this unit."""
        self._units.append(unit)
        self._rouse()

    def settle(self, entry: Settled) -> None:
        """Remove one entry, if it was ever stored; nobody waits for it."""
        if entry.seq:
            self._settles.append(entry)
            self._rouse()

    def create(self, log: str, attributes: str) -> None:
        """Let a log exist, with these attributes, before anything submitted later."""
        self._declarations.append((log, attributes))
        self._rouse()

    def remove(self, log: str) -> None:
        """Let a log exist no longer, if it is empty; before anything submitted later."""
        self._declarations.append((log, None))
        self._rouse()

    def discard(self, log: str, then: Callable[[], None]) -> None:
        """Remove a log with all it holds, some time after everything submitted so far is done.

        It is lost from the next batch on: whoever finds its attributes goes on with that.
        """
        self.create(log, json.dumps({"kind": DISCARDED}))
        self.submit(Unit(then=lambda *_: self._doomed.put_nowait((log, then))))

    def mark(self, log: str, mark: str) -> None:
        """Set a log's mark, before anything submitted later."""
        self._marks[log] = mark
        self._rouse()

    def read(self, log: str, after: int, count: int, callback: ReadCallback) -> None:
        """Read entries of a log as they are after all that was submitted before."""
        self._reads.append((log, after, count, callback))
        self._rouse()

    @property
    def busy(self) -> bool:
        """Whether anything submitted is not done yet."""
        return not self._idle.is_set()

    def brings_to(self, log: str) -> bool:
        """Whether messages for this log are on their way to the store."""
        units = (*self._under_way, *self._units)
        return any(row[0] == log for unit in units for _, rows in unit.appends for row in rows)

    async def barrier(self) -> None:
        """Wait until everything submitted so far is done, whatever is submitted meanwhile."""
        done = asyncio.get_running_loop().create_future()
        self.submit(Unit(then=lambda *_: done.done() or done.set_result(None)))
        await done

    async def drain(self) -> None:
        """Wait until everything submitted is done."""
        await self._idle.wait()

    def _rouse(self) -> None:
        if not self._wake.is_set():
            self._wake.set()
            self._idle.clear()

    # -- the loop

    async def run(self) -> None:
        """Serve until cancelled. Raises Fenced when another node took over."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._units or self._settles or self._declarations or self._marks or self._reads:
                await self._round()
            if not self._wake.is_set():
                self._idle.set()

    async def run_discards(self) -> None:
        """Remove what is to be discarded, beside the batches, until cancelled."""
        while True:
            log, then = await self._doomed.get()
            await self._until_answered(lambda log=log: self._store.drop(log, self._session))
            then()

    async def _round(self) -> None:
        batch, reads = self._take()
        if batch is not None:
            self._under_way = batch.units
            committed = Committed(0, frozenset())
            if _writes(batch):
                committed = await self._until_answered(lambda: self._store.commit(self._session, batch, self._limits))
            self._under_way = []
            _report(batch, committed)
        if reads:
            answers = await self._until_answered(
                lambda: asyncio.gather(*(self._store.read(log, after, count) for log, after, count, _ in reads))
            )
            for (_, _, _, callback), found in zip(reads, answers, strict=True):
                callback(found)
        self._after_batch()

    def _take(self) -> tuple[Batch | None, list[tuple[str, int, int, ReadCallback]]]:
        """The next batch; and the reads, once no unit submitted before them is left."""
        units = self._units
        count = _within_limits(units)
        taken, self._units = (units, []) if count == len(units) else (units[:count], units[count:])
        if self._settles:
            taken = [*taken, Unit(settles=self._settles)]
            self._settles = []
        reads: list[tuple[str, int, int, ReadCallback]] = []
        if not self._units:
            reads, self._reads = self._reads[:MAX_READS], self._reads[MAX_READS:]
        if not (taken or self._declarations or self._marks):
            return None, reads
        self._number += 1
        batch = Batch(self._number, taken, self._declarations, list(self._marks.items()))
        self._declarations, self._marks = [], {}
        return batch, reads

    async def _until_answered(self, call):
        while True:
            try:
                answer = await call()
            except Fenced:
                raise
            except StoreUnavailable as error:
                if self.waiting_since is None:
                    self.waiting_since = asyncio.get_running_loop().time()
                    logger.warning("the store does not answer: %s; trying again until it does", error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                if self.waiting_since is not None:
                    logger.warning("the store answers again")
                    self.waiting_since = None
                return answer


def _within_limits(units: list[Unit]) -> int:
    """How many of the units make a batch; at least one."""
    if len(units) == 1:
        return 1
    copies = size = 0
    for count, unit in enumerate(units[:MAX_UNITS]):
        for stored, rows in unit.appends:
            copies += len(rows)
            size += len(stored)
        if (copies > MAX_COPIES or size > MAX_BYTES) and count:
            return count
    return min(len(units), MAX_UNITS)


def _writes(batch: Batch) -> bool:
    return bool(batch.declarations or batch.marks or any(unit.appends or unit.settles for unit in batch.units))


def _report(batch: Batch, committed: Committed) -> None:
    seq = committed.base + 1
    for position, unit in enumerate(batch.units, start=1):
        unit.done(seq, position in committed.refused)
        seq += len(unit.appends)
