"""Take writes and questions for a broker whose logs are in several stores: one group commit for each shard.

What concerns one shard goes to its group commit, in the order in which it was asked of each family (family_order.py). A
write that concerns several is divided (spread_writes.py). Nothing else waits for another shard: one that does not
answer holds up its own logs only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from brokerapp.core.commits.group_commit import GroupCommit
from brokerapp.core.ports.commit_store import CommitStore, Question, ReadCallback
from brokerapp.core.shards.family_order import FamilyOrder
from brokerapp.core.shards.log_locations import LogLocations
from brokerapp.core.shards.spread_write import logs_of
from brokerapp.core.shards.spread_writes import SpreadWrites
from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.store import CommitBatch, PendingWrite, SettledEntry, StoreLimits

#: Seconds between two looks whether all shards have done what they were asked.
LOOK_SECONDS = 0.005


def _nothing() -> None: ...


class ShardedCommits:
    """Takes writes and questions from the broker, in order; calls back when they are done.

    `store` answers questions about any log. `on_spread` is told of logs that a write to several shards goes to: what
    comes to them is told of later than what was stored after it.
    """

    def __init__(
        self,
        groups: Mapping[int, GroupCommit],
        locations: LogLocations,
        store: CommitStore,
        session: str,
        on_spread: Callable[[Iterable[str]], None],
    ) -> None:
        self._groups, self._locations, self._store = dict(groups), locations, store
        self.first = self._groups[0]  #: of shard 0, which has what is not in logs
        self._only = self.first if len(self._groups) == 1 else None  # a broker with one store does without the rest
        self._changed = asyncio.Event()  # the shards are others; each time a new one
        self._order = FamilyOrder(locations.family_of, self.submit)
        self._spread = SpreadWrites(
            self._groups, locations, self._order, session, before=lambda: self.before, on_spread=on_spread
        )

    # -- where logs are

    def shard_of(self, log: str) -> int:
        """Return the shard of a log, or where it would be."""
        return 0 if self._only is not None else self._locations.shard_of(log)

    def place_of(self, log: str) -> tuple[int, str] | None:
        """Return the shard and the family of a log: copies in one place are one append; None if there is one place."""
        return None if self._only is not None else (self.shard_of(log), self._locations.family_of(log))

    def payload_base(self, log: str) -> int:
        """Return what is added to the number of a message in a log for that of its payload."""
        return 0 if self._only is not None else self._group_of(log).payload_base

    def locate(self, log: str, attributes: Mapping[str, Any]) -> None:
        """Take from the attributes of a log in the store where it is."""
        self._locations.locate(log, attributes)

    @property
    def located(self) -> Mapping[str, int]:
        """Return where the logs are that are there."""
        return self._locations.known

    def of_family(self, family: str) -> Mapping[str, int]:
        """Return where the logs of a family are."""
        return self._locations.of_family(family)

    def _group_of(self, log: str) -> GroupCommit:
        return self._only or self._groups[self._locations.shard_of(log)]

    def add(self, number: int, group: GroupCommit) -> None:
        """Serve one more shard."""
        self._groups[number], self._only = group, None
        self._tell_of_change()

    def remove_shard(self, number: int) -> None:
        """Serve a shard no more, in which nothing is."""
        del self._groups[number]
        self._spread.remove_shard(number)
        self._tell_of_change()

    def _tell_of_change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def begin_usage(self, number: int, used: int, temp: int) -> None:
        """Note how many bytes a shard holds at first, and how many of them are not persistent."""
        self._groups[number].begin_usage(used, temp)

    # -- what the broker asks; none of it waits

    def submit(self, unit: PendingWrite) -> None:
        """Do this, in its turn."""
        if self._only is not None:
            self._only.submit(unit)
            return
        if isinstance(unit, ClientWrite):
            unit.regroup(self._locations.shard_of)
        logs = logs_of(unit)
        if not (logs or unit.jobs or unit.branch is not None):
            self._after_all(partial(self.first.submit, unit))
            return
        if self._order.hold_back(logs, unit):
            return
        shards = set(map(self._locations.shard_of, logs))
        if unit.jobs or unit.branch is not None:
            shards.add(0)
        if len(shards) == 1:
            [shard] = shards
            self._order.submit(logs, unit, self._groups[shard].submit)
        elif unit.is_atomic or not isinstance(unit, ClientWrite):
            self._spread.submit(unit)
        else:
            for part in unit.divide_by(self._shards_of_batch):
                self.submit(part)

    def _shards_of_batch(self, batch: RoutedBatch) -> set[int]:
        logs = {row[0] for rows in batch.rows for row in rows} or {str(batch.destination)}
        return set(map(self._locations.shard_of, logs))

    def cancel(self, wanted: Callable[[PendingWrite], bool]) -> list[PendingWrite]:
        """Take back those units that are not in the store's hands yet; the rest of their writes stays."""
        behind = self._order.take_back(wanted)  # first, lest it begins when what is ahead of it is taken back
        spread = self._spread.take_back(wanted)
        found: list[PendingWrite] = []
        for group in self._groups.values():
            units = group.cancel(lambda unit: wanted(self._spread.written(unit)))
            found += map(self._spread.on_taken_back, units)
        return found + spread + behind

    def remove_settled(self, entries: Iterable[SettledEntry]) -> None:
        """Remove those of these entries that are, or will be, stored, with the next batch or after a moment."""
        if self._only is not None:
            self._only.remove_settled(entries)
            return
        by_log: dict[str, list[SettledEntry]] = {}
        for entry in entries:
            by_log.setdefault(entry.log, []).append(entry)
        for log, some in by_log.items():
            self._order.do_unless_held(log, partial(self._remove_settled, log, some))

    def _remove_settled(self, log: str, entries: list[SettledEntry]) -> None:
        self._group_of(log).remove_settled(entries)

    def create(self, log: str, attributes: str) -> None:
        """Let a log exist, with these attributes, before anything submitted later, and after its removal."""
        if self._order.concerns(log):  # what is asked next of it goes there already
            self._locations.with_shard(log, attributes)
        self._order.do(log, lambda: self._create(log, attributes))

    def _create(self, log: str, attributes: str) -> None:
        attributes = self._locations.with_shard(log, attributes)
        self._group_of(log).create(log, attributes)

    def remove(self, log: str) -> None:
        """Let a log exist no longer, if it is empty; before anything submitted later."""
        self._order.do(log, lambda: self._forget(log).remove(log))

    def discard_log(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove a log with all it holds, some time after everything submitted so far is done."""
        self._order.do(log, lambda: self._forget(log).discard_log(log, then))

    def _forget(self, log: str) -> GroupCommit:
        """Return where a log is that is removed; one that is made anew goes where its family lives, which is there."""
        group = self._group_of(log)
        self._locations.forget(log)
        return group

    def clear(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove what a log that was discarded, at whichever node, still gets of what was submitted so far."""
        self._order.do(log, lambda: self._group_of(log).clear(log, then))

    def set_recovery_mark(self, log: str, mark: str) -> None:
        """Set a log's mark, before anything submitted later."""
        self._order.do_unless_held(log, lambda: self._group_of(log).set_recovery_mark(log, mark))

    def record_redelivery(self, entry: SettledEntry, deliveries: int) -> None:
        """Keep for later nodes how often an entry was delivered and came back."""
        self._order.do_unless_held(entry.log, lambda: self._group_of(entry.log).record_redelivery(entry, deliveries))

    def read(self, log: str, after: int, count: int, callback: ReadCallback) -> None:
        """Read entries of a log as they are after all that was submitted before."""
        self.read_with(lambda store: store.entries.read(log, after, count), callback, log)

    def read_with(self, question: Question, callback: Callable[[Any], None], log: str | None = None) -> None:
        """Ask the store something, when all that was submitted before is done: to this log, if one is named."""
        ask: Question = lambda _: question(self._store)  # noqa: E731
        if log is not None:
            self._order.do(log, lambda: self._group_of(log).read_with(ask, callback))
        else:
            self._after_all(lambda: self.first.read_with(ask, callback))

    def prioritize(self, log: str, after: int, callback: Callable[[int], None]) -> None:
        """Give places by priority to the next entries after this number of a log; see the store's."""
        self._order.do(log, lambda: self._group_of(log).prioritize(log, after, callback))

    def keep_record(
        self, id: str, version: int, changed: Mapping[str, str], anew: bool, then: Callable[[], None]
    ) -> None:
        """Keep a change of the cluster's record, after everything submitted so far; see the store's."""
        self._after_all(lambda: self.first.keep_record(id, version, changed, anew, then))

    # -- order

    def _after_all(self, then: Callable[[], None]) -> None:
        """Do this when all that was submitted to any shard is done."""
        self._order.do_after_all(partial(self._after_groups, then))

    def _after_groups(self, then: Callable[[], None]) -> None:
        busy = [group for shard, group in self._groups.items() if shard and group.busy]
        left = len(busy)
        if not busy:
            then()
            return

        def done(*_: Any) -> None:
            nonlocal left
            left -= 1
            if not left:
                then()

        for group in busy:
            group.submit(PendingWrite(callback=done))

    def on_batch(self, _batch: CommitBatch) -> None:
        """A shard has done a batch."""
        self._spread.on_batch()

    # -- families that move

    async def hold(self, family: str) -> Mapping[str, int]:
        """Let all that is asked of a family's logs wait; return where they are when nothing of them is under way."""
        self._order.hold(family)
        while self._order.is_under_way(family) or self._spread.concerns(family):
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.gather(*(group.settle_down() for group in self._groups.values()))
        return self._locations.of_family(family)

    def release(self, family: str, source: int, target: int) -> None:
        """Go on with a family that was held: its logs that were in one shard are in this other one now."""
        self._locations.move(family, source, target)
        self._order.release(family)

    # -- what is on its way, and what is held

    @property
    def busy(self) -> bool:
        """Whether anything submitted is not done yet."""
        return bool(self._order or self._spread) or any(group.busy for group in self._groups.values())

    def has_pending_for(self, log: str) -> bool:
        """Whether messages are on their way to the store that this log is given when they are there."""
        return self._order.concerns(log) or self._group_of(log).has_pending_for(log)

    async def barrier(self) -> None:
        """Wait until everything submitted so far is done, whatever is submitted meanwhile."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not done.done():
                done.set_result(None)

        self._after_all(end)
        await done
        await self.first.barrier()

    async def drain(self) -> None:
        """Wait until everything submitted is done."""
        while self.busy:
            await asyncio.gather(*(group.drain() for group in self._groups.values()))
            await asyncio.sleep(LOOK_SECONDS if self._order else 0)

    @property
    def limits(self) -> StoreLimits:
        """The limits of the first store; with several shards, how much all of them may hold."""
        if self._only is not None:
            return self._only.limits
        of_all = [group.limits for group in self._groups.values()]
        return replace(
            self.first.limits, total=sum(each.total for each in of_all), temp=sum(each.temp for each in of_all)
        )

    def serves(self, number: int) -> bool:
        """Return whether a shard is written to, which one that is just being added is not yet."""
        return number in self._groups

    def used_of(self, number: int) -> int:
        """Return the bytes that a shard held after its last batch."""
        return self._groups[number].used

    @property
    def used(self) -> int:
        """Bytes that the stores held after their last batches."""
        return sum(group.used for group in self._groups.values())

    @property
    def temp(self) -> int:
        """Bytes of them that are not persistent."""
        return sum(group.temp for group in self._groups.values())

    def held_bytes(self, log: str) -> int | None:
        """Return the same of a log that has a limit, if it was written to."""
        return self._group_of(log).held_bytes(log)

    @property
    def given(self) -> int:
        """Copies in the next batches that were given out already."""
        return max(group.given for group in self._groups.values())

    @property
    def before(self) -> Mapping[str, int]:
        """The numbers by log that stood last before what is reported now."""
        if self._only is not None:
            return self._only.before
        return self._spread.before(next((group.before for group in self._groups.values() if group.before), {}))

    @property
    def waiting_since(self) -> float | None:
        """Loop time at which a store stopped answering; of several the first."""
        known = [group.waiting_since for group in self._groups.values() if group.waiting_since is not None]
        return min(known, default=None)

    # -- life

    async def run(self) -> None:
        """Serve until cancelled. Raises Fenced when another node took over."""
        await self._serve_all(lambda group: group.run())

    async def run_discards(self) -> None:
        """Remove what is to be discarded, beside the batches, until cancelled."""
        await self._serve_all(lambda group: group.run_discards())

    async def _serve_all(self, serve: Callable[[GroupCommit], Coroutine[Any, Any, None]]) -> None:
        """Serve all shards, as they are added and removed; when one fails, end the others and raise its error."""
        tasks: dict[int, asyncio.Task[None]] = {}
        changed: asyncio.Task[Any] | None = None
        try:
            while True:
                changed = asyncio.ensure_future(self._changed.wait())
                for number in tasks.keys() - self._groups.keys():
                    tasks.pop(number).cancel()
                for number, group in self._groups.items():
                    if number not in tasks:
                        tasks[number] = asyncio.ensure_future(serve(group))
                done, _ = await asyncio.wait({changed, *tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {changed}:
                    task.result()
        finally:
            for each in (changed, *tasks.values()):
                if each is not None:
                    each.cancel()
