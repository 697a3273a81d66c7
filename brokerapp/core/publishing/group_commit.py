"""Commit the writes of all clients in batches: what was asked during one round trip goes into the next one.

One batch is sent at a time, so what is asked later is done later. A batch whose answer was lost is sent again until the
store answers; the store does it once. Where replicas confirm batches, the next ones are sent meanwhile, and each is
done when it is confirmed, in order (unconfirmed_batches.py). Acknowledgements that nobody waits for begin no batch at
once: they go with the next one, or after a moment (decision 25).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from brokerapp.core.ports.commit_store import CommitStore, Question, ReadCallback
from brokerapp.core.publishing.pending_settles import PendingSettles, settles_uncommitted
from brokerapp.core.publishing.unconfirmed_batches import AnsweredBatch, UnconfirmedBatches
from brokerapp.errors import Fenced, StoreUnavailable
from brokerapp.store import (
    DISCARDED,
    CommitBatch,
    CommitResult,
    PendingWrite,
    SettledEntry,
    StoreLimits,
    WriteOwner,
)

logger = logging.getLogger(__name__)

#: Units in one batch: bounds how long the store is busy with one call (some 10 ms).
MAX_UNITS = 2_000
#: Copies and bytes of messages in one batch, for the same reason.
MAX_COPIES = 5_000
MAX_BYTES = 8 * 1024 * 1024
#: Bytes that a batch, a copy of a message and an acknowledgement add to the append-only file beside messages, at most.
FIXED_BYTES, COPY_BYTES, SETTLED_BYTES = 4_000, 300, 200
#: Pages read in one round: the next commit waits for them.
MAX_READS = 16
#: Seconds that acknowledgements which nobody waits for wait for a batch to go with, when none is under way. Clients
#: that send one message after the other need a few to answer a receipt with the next one. What was acknowledged during
#: this time before a node is killed comes again.
SETTLE_DELAY_SECONDS = 0.005
#: Seconds between attempts to reach a store that does not answer.
RETRY_SECONDS = 0.1


def _nothing() -> None: ...


async def _answer_nothing(_store: CommitStore) -> None: ...


@dataclass(slots=True)
class PendingRead:
    """A question to the store, to be asked when the last unit submitted before it is done."""

    question: Question
    callback: Callable[[Any], None]
    after: PendingWrite | None


class GroupCommit:
    """Takes units and reads from the broker, in order; calls back when they are done."""

    def __init__(
        self,
        store: CommitStore,
        session: str,
        store_limits: StoreLimits,
        after_batch: Callable[[], None],
        *,
        is_followed: Callable[[str], bool] = lambda _log: False,
        is_room_wanted: Callable[[], bool] = lambda: False,
        claim: Callable[[Sequence[tuple[str, str | None]]], Awaitable[None]] | None = None,
        announce: Callable[[Sequence[tuple[str, str | None]]], Awaitable[None]] | None = None,
        on_batch: Callable[[CommitBatch], None] | None = None,
    ) -> None:
        """Take units for a store.

        `is_followed` says of a log that a batch appends to whether to ask what stood last in it before, see `before`;
        `is_room_wanted` says whether clients wait for room: then acknowledgements, which make room, do not wait;
        `claim` is told of logs before they are declared or removed, `announce` afterwards, and what follows of the
        batch waits until all nodes know of it; `on_batch` is told of every batch that the store has done.
        """
        self._store, self._session, self.limits, self._after_batch = store, session, store_limits, after_batch
        self._is_followed, self._claim, self._announce, self._on_batch = is_followed, claim, announce, on_batch
        self._is_room_wanted = is_room_wanted
        self._units: list[PendingWrite] = []
        self._under_way = 0  # units in the store's hands
        self._unconfirmed = UnconfirmedBatches(store, session, self._commit, self._until_answered)
        self._submitted = 0  # units, since the start
        self._last_write_to: dict[
            str, int
        ] = {}  # log -> the last of them whose messages it is not given before it has them
        self._settles = PendingSettles()  # that nobody waits for
        self._settle_timer: asyncio.TimerHandle | None = None  # while they wait for another batch
        self._are_settles_due = False  # they wait no longer
        self._declarations: list[tuple[str, str | None]] = []
        self._marks: dict[str, str] = {}
        self._returned: list[tuple[str, int, int]] = []
        self._reads: list[PendingRead] = []
        self._logs_to_drop: asyncio.Queue[tuple[str, Callable[[], None]]] = asyncio.Queue()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._number = self._answered = 0  # of the last batch, and of the last one that the store answered
        self.given = 0  #: copies in the next batch that were given out already
        self.used = 0  #: bytes that the store held after the last batch
        self.temp = 0  #: bytes of them that are not persistent
        self._held: dict[str, int] = {}  # the same of logs that have a limit, as far as they were written to
        #: The answers, numbers by log, while the batch is reported.
        self.before: Mapping[str, int] = {}
        self.waiting_since: float | None = None  #: loop time at which the store stopped answering

    # -- what the broker asks; none of it waits

    def submit(self, unit: PendingWrite) -> None:
        """Do this, in its turn."""
        self._units.append(unit)
        self._submitted += 1
        self.given += sum(map(len, unit.given.values()))
        for rows in unit.copies_to_dispatch:
            for log, _, _ in rows:
                self._last_write_to[log] = self._submitted
        self._notify()

    def cancel(self, wanted: Callable[[PendingWrite], bool]) -> list[PendingWrite]:
        """Take back, in order, those units that are not in the store's hands yet; the rest of their writes stays."""
        found: list[PendingWrite] = []
        left: list[PendingWrite] = []
        for unit in self._units:
            taken, rest = unit.divide(wanted) if wanted(unit) else ((), unit)
            found += taken
            if rest is not None:
                left.append(rest)
        if found:
            self._submitted -= len(self._units) - len(left)
            gone = set(map(id, self._units)).difference(map(id, left))
            self._units = left
            for each in self._reads:  # a mark that is taken away: wait for all that is left, which is never too early
                if id(each.after) in gone:
                    each.after = left[-1] if left else None
        return found

    def remove_settled(self, entries: Iterable[SettledEntry]) -> None:
        """Remove those of these entries that are, or will be, stored, with the next batch or after a moment.

        Nobody waits for it. What is submitted or read later finds it done.
        """
        stored = [entry for entry in entries if entry.seq]
        if self._settles.add(stored):
            self._notify()

    def _hasten_settles(self) -> None:
        """Let acknowledgements wait for no other batch."""
        self._are_settles_due = True
        self._notify()

    def create(self, log: str, attributes: str) -> None:
        """Let a log exist, with these attributes, before anything submitted later."""
        self._declarations.append((log, attributes))
        self._notify()

    def remove(self, log: str) -> None:
        """Let a log exist no longer, if it is empty; before anything submitted later."""
        self._declarations.append((log, None))
        self._forget(log)
        self._notify()

    def discard_log(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove a log with all it holds, some time after everything submitted so far is done.

        It is lost from the next batch on: whoever finds its attributes goes on with that.
        """
        self.create(log, json.dumps({"kind": DISCARDED}))
        self.clear(log, then)

    def clear(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove what a log that was discarded, at whichever node, still gets of what was submitted so far.

        One that is there again under its name by then stays as it is.
        """
        self._forget(log)
        self.submit(PendingWrite(callback=lambda *_: self._logs_to_drop.put_nowait((log, then))))

    def _forget(self, log: str) -> None:
        self._last_write_to.pop(log, None)
        self._held.pop(log, None)

    def set_recovery_mark(self, log: str, mark: str) -> None:
        """Set a log's mark, before anything submitted later."""
        self._marks[log] = mark
        self._notify()

    def record_redelivery(self, entry: SettledEntry, deliveries: int) -> None:
        """Keep for later nodes how often an entry was delivered and came back."""
        if entry.seq:
            self._returned.append((entry.log, entry.seq, deliveries))
            self._notify()

    def read(self, log: str, after: int, count: int, callback: ReadCallback) -> None:
        """Read entries of a log as they are after all that was submitted before."""
        self.read_with(lambda store: store.entries.read(log, after, count), callback)

    def read_with(self, question: Question, callback: Callable[[Any], None], log: str | None = None) -> None:
        """Ask the store something, when all that was submitted before is done: to this log, if one is named."""
        self._reads.append(PendingRead(question, callback, self._units[-1] if self._units else None))
        self._notify()

    def prioritize(self, log: str, after: int, callback: Callable[[int], None]) -> None:
        """Give places by priority to the next entries after this number of a log; see the store's."""
        self.read_with(lambda store: store.logs.index_priority(log, self._session, after), callback)

    def keep_record(
        self, id: str, version: int, changed: Mapping[str, str], anew: bool, then: Callable[[], None]
    ) -> None:
        """Keep a change of the cluster's record, after everything submitted so far; see the store's."""
        self.read_with(
            lambda store: store.cluster_record.save(self._session, id, version, changed, anew=anew),
            lambda _done: then(),
        )

    def begin_usage(self, used: int, temp: int) -> None:
        """Note how many bytes the store holds at first, and how many of them are not persistent."""
        self.used, self.temp = used, temp

    def note_usage(self, used: int, temp: int, by_log: Mapping[str, int]) -> None:
        """Note how many bytes the store holds, how many of them not persistent, and these of its logs, as it said."""
        self.used, self.temp = used, temp
        self._held.update(by_log)

    @property
    def payload_base(self) -> int:
        """Return what is added to the number of a message for that of its payload."""
        return self._store.payload_base

    def held_bytes(self, log: str) -> int | None:
        """Return the bytes of a log that has a limit, if it was written to."""
        return self._held.get(log)

    @property
    def busy(self) -> bool:
        """Whether anything submitted is not done yet."""
        return not self._idle.is_set()

    def has_pending_for(self, log: str) -> bool:
        """Whether messages are on their way to the store that this log is given when they are there."""
        done = self._submitted - len(self._units) - self._under_way
        return self._last_write_to.get(log, 0) > done

    async def barrier(self) -> None:
        """Wait until everything submitted so far is done, whatever is submitted meanwhile."""
        done = asyncio.get_running_loop().create_future()
        self.submit(PendingWrite(callback=lambda *_: done.done() or done.set_result(None)))
        await done

    async def settle_down(self) -> None:
        """Wait until everything asked so far is done, acknowledgements and reads as well."""
        await self.barrier()  # from here on the numbers are known of what was acknowledged before it was stored
        self._hasten_settles()
        await self.barrier()
        done = asyncio.get_running_loop().create_future()
        self.read_with(_answer_nothing, lambda _: done.done() or done.set_result(None))
        await done

    async def drain(self) -> None:
        """Wait until everything submitted is done."""
        if self._settles:
            self._hasten_settles()
        await self._idle.wait()

    def _notify(self) -> None:
        if not self._wake.is_set():
            self._wake.set()
            self._idle.clear()

    # -- the loop

    async def run(self) -> None:
        """Serve until cancelled. Raises Fenced when another node took over."""
        while True:
            await self._until_work()
            self._wake.clear()
            while self._asked or self._unconfirmed.is_oldest_due:
                if self._unconfirmed.is_oldest_due:
                    await self._end_oldest()
                    self._after_batch()
                    continue
                await asyncio.sleep(0)  # what was given out on the way here leaves before the commit is made
                await self._round()
            if self._settles:
                self._delay_settles()
            elif not (self._wake.is_set() or self._unconfirmed):
                self._idle.set()

    async def _until_work(self) -> None:
        """Wait until something is asked, or replicas have confirmed the oldest batch."""
        if not self._unconfirmed:
            await self._wake.wait()
            return
        asked = asyncio.ensure_future(self._wake.wait())
        try:
            confirmed = map(asyncio.ensure_future, self._unconfirmed.oldest_confirmations)
            await asyncio.wait({asked, *confirmed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()

    def _delay_settles(self) -> None:
        """Let acknowledgements wait for another batch, from when the store has nothing else to do.

        Not from when they came: whoever got receipts of the last batch sends its next messages now.
        """
        if self._settle_timer is None:
            self._settle_timer = asyncio.get_running_loop().call_later(SETTLE_DELAY_SECONDS, self._hasten_settles)

    async def run_discards(self) -> None:
        """Remove what is to be discarded, beside the batches, until cancelled."""
        while True:
            log, then = await self._logs_to_drop.get()
            await self._until_answered(lambda log=log: self._store.logs.drop(log, self._session, discarded=True))
            then()

    @property
    def _asked(self) -> bool:
        if self._units or self._declarations or self._marks or self._returned or self._reads:
            return True
        return bool(self._settles) and (self._are_settles_due or self._is_room_wanted())

    async def _round(self) -> None:
        if self._unconfirmed and self._units and settles_uncommitted(self._units[0]):
            await self._end_all()  # it is not known before by which numbers it settles
        waiting = len(self._units)
        batch, reads = self._take()
        if batch is not None:
            units = waiting - len(self._units)
            self._under_way += units
            committed, declarations = CommitResult(0), batch.declarations
            if declarations and self._claim is not None:
                await self._until_answered(partial(self._claim, declarations))
            if batch.makes_changes:
                committed = await self._unconfirmed.commit_next(batch)
                self._answered = batch.number
            self._unconfirmed.append(AnsweredBatch(batch, committed, units))
            if batch.declarations:  # what follows waits until all nodes know of them
                await self._end_all()
            while self._unconfirmed.is_oldest_due:
                await self._end_oldest()
        if reads:
            await self._end_all()
            answers = await self._until_answered(
                lambda: asyncio.gather(*(each.question(self._store) for each in reads))
            )
            for each, answer in zip(reads, answers, strict=True):
                _follow(each.callback, answer)
        self._after_batch()

    async def _end_all(self) -> None:
        while self._unconfirmed:
            await self._end_oldest()

    async def _end_oldest(self) -> None:
        """Report how the oldest batch ended, when replicas have confirmed it."""
        ended = await self._unconfirmed.pop_oldest()
        batch, committed = ended.batch, ended.committed
        if batch.declarations and self._announce is not None:
            await self._announce(batch.declarations)
        if batch.makes_changes:
            self.used, self.temp = committed.used_bytes, committed.temp_bytes
            self._held.update(committed.log_bytes)
        self._report(batch, committed)
        self._under_way -= ended.unit_count
        self._settles.on_committed()
        if self._on_batch is not None:
            _follow(self._on_batch, batch)

    async def _commit(self, batch: CommitBatch) -> CommitResult:
        size, self.limits.committing_bytes = _size(batch) if self.limits.disk.is_scarce else 0, 0
        while not self.limits.has_space_for(
            size
        ):  # a server that can't write ends, and is no longer there to be read from
            await asyncio.sleep(RETRY_SECONDS)
        self.limits.committing_bytes = size
        committed = await self._store.commit(self._session, batch, self.limits)
        self.limits.committed_bytes, self.limits.committing_bytes = self.limits.committed_bytes + size, 0
        return committed

    def _report(self, batch: CommitBatch, committed: CommitResult) -> None:
        """Tell all units how they ended; their owner at once, of those that follow each other and are stored."""
        seq, self.before = committed.base_seq + 1, committed.previous_seqs
        odd = {*committed.refused, *committed.dropped, *committed.duplicates}

        def owner_of_stored(numbered: tuple[int, PendingWrite]) -> WriteOwner | None:
            position, unit = numbered
            is_odd = odd and not odd.isdisjoint(range(position, position + unit.unit_count))
            return None if is_odd else unit.owner

        for owner, numbered in itertools.groupby(batch.numbered_writes, owner_of_stored):
            if owner is not None:
                units = [unit for _, unit in numbered]
                _follow(owner.on_stored, units, seq)
                seq += sum([unit.count for unit in units])
                continue
            for position, unit in numbered:
                _follow(unit.on_batch_done, seq, position, committed)
                seq += unit.count
        self.before = {}

    def _take(self) -> tuple[CommitBatch | None, list[PendingRead]]:
        """The next batch; and the reads before which no unit is left."""
        if self._settles and any(attributes is None for _, attributes in self._declarations):
            self._number += 1  # a batch of their own, as the next one removes logs before it removes entries
            return CommitBatch(self._number, self._take_settles(), previous_batch=self._answered), []
        units = self._units
        count = _within_limits(units)
        taken, self._units = (units, []) if count == len(units) else (units[:count], units[count:])
        self.given = 0
        if taken and settles_uncommitted(taken[0]):  # what it settles found no room in the store yet
            taken[0].settles = self._settles.keep_uncommitted(taken[0].settles)
        if self._settles:
            taken = [*self._take_settles(), *taken]  # what they leave is room for the others
        reads: list[PendingRead] = []
        if self._reads:
            left = set(map(id, self._units))
            ready = itertools.takewhile(lambda read: id(read.after) not in left, self._reads[:MAX_READS])
            reads = list(ready)
            del self._reads[: len(reads)]
        if not (taken or self._declarations or self._marks or self._returned):
            return None, reads
        self._number += 1
        batch = CommitBatch(
            self._number, taken, self._declarations, list(self._marks.items()), self._returned, self._is_followed,
            self._answered,
        )  # fmt: skip
        self._declarations, self._marks, self._returned = [], {}, []
        return batch, reads

    def _take_settles(self) -> list[PendingWrite]:
        if self._settle_timer is not None:
            self._settle_timer.cancel()
        self._settle_timer, self._are_settles_due = None, False
        settles = self._settles.take()
        return [PendingWrite(settles=settles)] if settles else []

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


def _within_limits(units: list[PendingWrite]) -> int:
    """How many of the units make a batch; at least one.

    One that settles what is on its way to the store comes in a later batch than that.
    """
    if len(units) == 1:
        return 1
    copies = size = 0
    for count, unit in enumerate(units[:MAX_UNITS]):
        of_unit, bytes_of_unit = unit.cost
        copies += of_unit
        size += bytes_of_unit
        if count and (copies > MAX_COPIES or size > MAX_BYTES or settles_uncommitted(unit)):
            return count
    return min(len(units), MAX_UNITS)


def _size(batch: CommitBatch) -> int:
    """About how many bytes a batch adds to the append-only file."""
    weights = [unit.cost for unit in batch.writes]
    settled = sum(len(unit.settles) for unit in batch.writes)
    return FIXED_BYTES + sum(size + COPY_BYTES * copies for copies, size in weights) + SETTLED_BYTES * settled


def _follow(step: Callable[..., None], *facts: Any) -> None:
    """Do what follows from the store's answer: a fault of ours in it keeps nobody else waiting, nor ends the node."""
    try:
        step(*facts)
    except Exception:
        logger.exception("what follows from an answer of the store could not be done")
