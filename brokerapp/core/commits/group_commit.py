"""Take the writes of all clients in order, and commit them in batches: what was asked during one round trip goes into
the next one.

One batch is sent at a time, so what is asked later is done later (commit_loop.py). Acknowledgements that nobody waits
for begin no batch at once: they go with the next one, or after a moment (decision 25).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from brokerapp.core.commits.batch_limits import units_of_next_batch
from brokerapp.core.commits.batch_reports import follow, report_batch
from brokerapp.core.commits.commit_loop import CommitLoop, DeclarationHandler, NextWork, PendingRead
from brokerapp.core.commits.pending_settles import PendingSettles, settles_uncommitted
from brokerapp.core.commits.store_calls import StoreCalls
from brokerapp.core.commits.unconfirmed_batches import AnsweredBatch
from brokerapp.core.ports.commit_store import CommitStore, Question, ReadCallback
from brokerapp.store import DISCARDED, CommitBatch, PendingWrite, SettledEntry, StoreLimits

#: Pages read in one round: the next commit waits for them.
MAX_READS = 16
#: Seconds that acknowledgements which nobody waits for wait for a batch to go with, when none is under way. Clients
#: that send one message after the other need a few to answer a receipt with the next one. What was acknowledged during
#: this time before a node is killed comes again.
SETTLE_DELAY_SECONDS = 0.005


def _nothing() -> None: ...


async def _answer_nothing(_store: CommitStore) -> None: ...


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
        claim: DeclarationHandler | None = None,
        announce: DeclarationHandler | None = None,
        on_batch: Callable[[CommitBatch], None] | None = None,
    ) -> None:
        """Take units for a store.

        `is_followed` says of a log that a batch appends to whether to ask what stood last in it before, see `before`;
        `is_room_wanted` says whether clients wait for room: then acknowledgements, which make room, do not wait;
        `on_batch` is told of every batch that the store has done. For `claim` and `announce` see CommitLoop.
        """
        self._store, self._session, self.limits = store, session, store_limits
        self._is_followed, self._is_room_wanted, self._on_batch = is_followed, is_room_wanted, on_batch
        self._calls = StoreCalls(store, session, store_limits)
        self._loop = CommitLoop(self, self._calls, after_batch=after_batch, claim=claim, announce=announce)
        self._units: list[PendingWrite] = []
        self._under_way = 0  # units in the store's hands
        self._submitted = 0  # units, since the start
        #: By log: the last of them whose messages it is not given before it has them.
        self._last_write_to: dict[str, int] = {}
        self._settles = PendingSettles()  # that nobody waits for
        self._settle_timer: asyncio.TimerHandle | None = None  # while they wait for another batch
        self._are_settles_due = False  # they wait no longer
        self._declarations: list[tuple[str, str | None]] = []
        self._marks: dict[str, str] = {}
        self._returned: list[tuple[str, int, int]] = []
        self._reads: list[PendingRead] = []
        self._logs_to_drop: asyncio.Queue[tuple[str, Callable[[], None]]] = asyncio.Queue()
        self.wake = asyncio.Event()  #: something is asked
        self._idle = asyncio.Event()
        self._idle.set()
        self._number = 0  # of the last batch
        self.given = 0  #: copies in the next batch that were given out already
        self.used = 0  #: bytes that the store held after the last batch
        self.temp = 0  #: bytes of them that are not persistent
        self._held: dict[str, int] = {}  # the same of logs that have a limit, as far as they were written to
        self.before: Mapping[str, int] = {}  #: the answers, numbers by log, while the batch is reported

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
        await _called_back(lambda done: self.submit(PendingWrite(callback=lambda *_: done())))

    async def settle_down(self) -> None:
        """Wait until everything asked so far is done, acknowledgements and reads as well."""
        await self.barrier()  # from here on the numbers are known of what was acknowledged before it was stored
        self._hasten_settles()
        await self.barrier()
        await _called_back(lambda done: self.read_with(_answer_nothing, lambda _: done()))

    async def drain(self) -> None:
        """Wait until everything submitted is done."""
        if self._settles:
            self._hasten_settles()
        await self._idle.wait()

    def _notify(self) -> None:
        if not self.wake.is_set():
            self.wake.set()
            self._idle.clear()

    async def run(self) -> None:
        """Serve until cancelled. Raises Fenced when another node took over."""
        await self._loop.run()

    async def run_discards(self) -> None:
        """Remove what is to be discarded, beside the batches, until cancelled."""
        while True:
            log, then = await self._logs_to_drop.get()
            await self._calls.until_answered(partial(self._store.logs.drop, log, self._session, discarded=True))
            then()

    @property
    def waiting_since(self) -> float | None:
        """Return the loop time at which the store stopped answering."""
        return self._calls.waiting_since

    # -- what the loop does next

    @property
    def is_asked(self) -> bool:
        """Return whether there is something to do at once."""
        if self._units or self._declarations or self._marks or self._returned or self._reads:
            return True
        return bool(self._settles) and (self._are_settles_due or self._is_room_wanted())

    @property
    def needs_numbers(self) -> bool:
        """Return whether what comes next settles messages by numbers that are known when all batches are done."""
        return bool(self._units) and settles_uncommitted(self._units[0])

    def on_rest(self, *, is_all_done: bool) -> None:
        """Note that nothing more is done at once, and whether all batches are done."""
        if self._settles:
            self._delay_settles()
        elif is_all_done and not self.wake.is_set():
            self._idle.set()

    def _delay_settles(self) -> None:
        """Let acknowledgements wait for another batch, from when the store has nothing else to do.

        Not from when they came: whoever got receipts of the last batch sends its next messages now.
        """
        if self._settle_timer is None:
            self._settle_timer = asyncio.get_running_loop().call_later(SETTLE_DELAY_SECONDS, self._hasten_settles)

    def on_batch_done(self, ended: AnsweredBatch) -> None:
        """Account for a batch that the store has done, and tell who asked for it."""
        batch, committed = ended.batch, ended.committed
        if batch.makes_changes:
            self.used, self.temp = committed.used_bytes, committed.temp_bytes
            self._held.update(committed.log_bytes)
        self.before = committed.previous_seqs
        report_batch(batch, committed)
        self.before = {}
        self._under_way -= ended.unit_count
        self._settles.on_committed()
        if self._on_batch is not None:
            follow(self._on_batch, batch)

    def take(self, answered: int) -> NextWork:
        """Return the next batch, and the reads before which no unit is left. `answered` is the last batch's number."""
        if self._settles and any(attributes is None for _, attributes in self._declarations):
            self._number += 1  # a batch of their own, as the next one removes logs before it removes entries
            return NextWork(CommitBatch(self._number, self._take_settles(), previous_batch=answered), 0, ())
        taken = self._take_units()
        count = len(taken)
        if self._settles:
            taken = [*self._take_settles(), *taken]  # what they leave is room for the others
        reads = self._take_reads() if self._reads else ()
        if not (taken or self._declarations or self._marks or self._returned):
            return NextWork(None, 0, reads)
        self._number += 1
        batch = CommitBatch(
            self._number, taken, self._declarations, list(self._marks.items()), self._returned, self._is_followed,
            answered,
        )  # fmt: skip
        self._declarations, self._marks, self._returned = [], {}, []
        self._under_way += count
        return NextWork(batch, count, reads)

    def _take_units(self) -> list[PendingWrite]:
        units = self._units
        count = units_of_next_batch(units)
        taken, self._units = (units, []) if count == len(units) else (units[:count], units[count:])
        self.given = 0
        if taken and settles_uncommitted(taken[0]):  # what it settles found no room in the store yet
            taken[0].settles = self._settles.keep_uncommitted(taken[0].settles)
        return taken

    def _take_reads(self) -> list[PendingRead]:
        left = set(map(id, self._units))
        ready = list(itertools.takewhile(lambda read: id(read.after) not in left, self._reads[:MAX_READS]))
        del self._reads[: len(ready)]
        return ready

    def _take_settles(self) -> list[PendingWrite]:
        if self._settle_timer is not None:
            self._settle_timer.cancel()
        self._settle_timer, self._are_settles_due = None, False
        settles = self._settles.take()
        return [PendingWrite(settles=settles)] if settles else []


async def _called_back(ask: Callable[[Callable[[], None]], None]) -> None:
    """Ask with a function to call back, and wait for that; it may come when nobody waits."""
    called = asyncio.Event()
    ask(called.set)
    await called.wait()
