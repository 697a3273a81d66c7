"""Take writes and questions for a broker whose logs are in several stores: one group commit for each shard.

What concerns one shard goes to its group commit. A write that concerns several is divided, see spread_write.py; what is
asked later of a log that such a write has not reached yet waits for it, so that each log gets everything in the order
in which it was asked. Nothing else waits for another shard: one that does not answer holds up its own logs only.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from brokerapp.core.ports.commit_store import CommitStore, Question, ReadCallback
from brokerapp.core.publishing.group_commit import GroupCommit
from brokerapp.core.shards.log_locations import SHARD, LogLocations
from brokerapp.core.shards.logs_ahead import LogsAhead
from brokerapp.core.shards.spread_write import SpreadWrite
from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.store import STORE, CommitBatch, PendingWrite, SettledEntry, StoreLimits
from brokerapp.store.shards.intent_codec import intent_id

#: Seconds between two looks whether all shards have done what they were asked, when the node stops.
DRAIN_SECONDS = 0.005


def _nothing() -> None: ...


@dataclass(slots=True)
class _Waiting:
    """What is to be done when no write to other shards that was asked before is on its way to these logs."""

    logs: Set[str]
    begin: Callable[[], None]
    unit: PendingWrite | None = None  #: that is submitted then
    is_ready: Callable[[], bool] = lambda: True
    coordinator: int | None = None  #: of a write to several shards


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
        self._groups, self._locations, self._store, self._session = dict(groups), locations, store, session
        self.first = self._groups[0]  #: of shard 0, which has what is not in logs
        self._on_spread = on_spread
        self._only = self.first if len(self._groups) == 1 else None  # a broker with one store does without the rest
        self._changed = asyncio.Event()  # the shards are others; each time a new one
        self._ids = itertools.count(1)
        self._spread: dict[str, SpreadWrite] = {}  # by id, whose coordinators have not done their part
        self._ahead = LogsAhead()  # what these go to in other shards
        self._coming: Counter[int | str] = Counter()  # bytes of those unfinished, by shard and by log
        self._unfinished: dict[str, SpreadWrite] = {}  # those whose other shards have not done theirs either
        self._waiting: list[_Waiting] = []
        self._held: dict[str, list[_Waiting]] = {}  # families that move to another shard: what is asked of them waits
        self._held_logs: set[str] = set()  # that something goes to which waits for one of these families
        self._part_seqs: dict[str, int] = {}  # of parts in the batch that is reported: the last number in each log
        self._reporting: SpreadWrite | None = None

    # -- where logs are

    def shard_of(self, log: str) -> int:
        """Return the shard of a log, or where it would be."""
        return 0 if self._only is not None else self._locations.shard_of(log)

    def family_of(self, log: str) -> str:
        """Return the family of a log, which is always in one shard; "" where that makes no difference."""
        return "" if self._only is not None else self._locations.family_of(log)

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
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def remove_shard(self, number: int) -> None:
        """Serve a shard no more, in which nothing is."""
        del self._groups[number]
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
        logs = {row[0] for rows in unit.copies for row in rows}
        logs.update([entry.log for entry in unit.settles])
        if not logs and isinstance(unit, ClientWrite):  # to topics: behind what was sent to them before
            logs = {str(each.destination) for each in unit.placed}
        shards = set(map(self._locations.shard_of, logs))
        if unit.jobs or unit.branch is not None:
            shards.add(0)
        if len(shards) > 1 and not unit.is_atomic and isinstance(unit, ClientWrite):
            for part in unit.divide_by(self._shards_of_batch):
                self.submit(part)
        elif len(shards) > 1:
            self._submit_spread(unit, logs)
        elif shards:
            [shard] = shards
            self._in_order(_Waiting(logs, lambda: self._groups[shard].submit(unit), unit))
        else:
            self._after_all(lambda: self.first.submit(unit))

    def _shards_of_batch(self, batch: RoutedBatch) -> set[int]:
        logs = {row[0] for rows in batch.rows for row in rows} or {str(batch.destination)}
        return set(map(self._locations.shard_of, logs))

    def cancel(self, wanted: Callable[[PendingWrite], bool]) -> list[PendingWrite]:
        """Take back those units that are not in the store's hands yet; the rest of their writes stays."""
        found: list[PendingWrite] = []
        for shard, group in self._groups.items():
            begun = {id(each.begin): each for each in self._spread.values() if each.coordinator == shard}

            def is_wanted(unit: PendingWrite, begun: Mapping[int, SpreadWrite] = begun) -> bool:
                spread = begun.get(id(unit))
                return wanted(unit if spread is None else spread.write)

            for unit in group.cancel(is_wanted):
                spread = begun.get(id(unit))
                if spread is None:
                    found.append(unit)
                else:
                    self._forget_ahead(spread)
                    self._forget(spread)
                    found.append(spread.write)
        waiting, self._waiting = self._waiting, []
        for family, held in self._held.items():
            waiting += held
            self._held[family] = []
        self._held_logs.clear()
        for each in waiting:
            if each.unit is not None and wanted(each.unit):
                taken, rest = each.unit.divide(wanted)
                found += taken
                if rest is not None:
                    self.submit(rest)
            else:
                self._in_order(each)
        return found

    def remove_settled(self, entries: Iterable[SettledEntry]) -> None:
        """Remove those of these entries that are, or will be, stored, with the next batch or after a moment."""
        if self._only is not None:
            self._only.remove_settled(entries)
            return
        by_log: dict[str, list[SettledEntry]] = {}
        for entry in entries:
            by_log.setdefault(entry.log, []).append(entry)
        for log, some in by_log.items():
            self._unless_held(log, partial(self._remove_settled, log, some))

    def _remove_settled(self, log: str, entries: list[SettledEntry]) -> None:
        self._group_of(log).remove_settled(entries)

    def create(self, log: str, attributes: str) -> None:
        """Let a log exist, with these attributes, before anything submitted later."""
        self._unless_held(log, lambda: self._group_of(log).create(log, self._locations.with_shard(log, attributes)))

    def remove(self, log: str) -> None:
        """Let a log exist no longer, if it is empty; before anything submitted later."""
        self._in_order(_Waiting({log}, lambda: self._group_of(log).remove(log)))

    def discard_log(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove a log with all it holds, some time after everything submitted so far is done."""
        self._in_order(_Waiting({log}, lambda: self._group_of(log).discard_log(log, then)))

    def clear(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove what a log that was discarded, at whichever node, still gets of what was submitted so far."""
        self._in_order(_Waiting({log}, lambda: self._group_of(log).clear(log, then)))

    def set_recovery_mark(self, log: str, mark: str) -> None:
        """Set a log's mark, before anything submitted later."""
        self._unless_held(log, lambda: self._group_of(log).set_recovery_mark(log, mark))

    def record_redelivery(self, entry: SettledEntry, deliveries: int) -> None:
        """Keep for later nodes how often an entry was delivered and came back."""
        self._unless_held(entry.log, lambda: self._group_of(entry.log).record_redelivery(entry, deliveries))

    def read(self, log: str, after: int, count: int, callback: ReadCallback) -> None:
        """Read entries of a log as they are after all that was submitted before."""
        self.read_with(lambda store: store.entries.read(log, after, count), callback, log)

    def read_with(self, question: Question, callback: Callable[[Any], None], log: str | None = None) -> None:
        """Ask the store something, when all that was submitted before is done: to this log, if one is named."""
        ask: Question = lambda _: question(self._store)  # noqa: E731
        if log is not None:
            self._in_order(_Waiting({log}, lambda: self._group_of(log).read_with(ask, callback)))
        else:
            self._after_all(lambda: self.first.read_with(ask, callback))

    def prioritize(self, log: str, after: int, callback: Callable[[int], None]) -> None:
        """Give places by priority to the next entries after this number of a log; see the store's."""
        self._in_order(_Waiting({log}, lambda: self._group_of(log).prioritize(log, after, callback)))

    def keep_record(
        self, id: str, version: int, changed: Mapping[str, str], anew: bool, then: Callable[[], None]
    ) -> None:
        """Keep a change of the cluster's record, after everything submitted so far; see the store's."""
        self._after_all(lambda: self.first.keep_record(id, version, changed, anew, then))

    # -- order

    def _in_order(self, asked: _Waiting) -> None:
        """Do this now, or when nothing that was asked before is on its way to its logs by way of other shards."""
        if self._held and self._hold_back(asked):
            return
        if asked.is_ready() and not self._is_blocked(asked.logs, asked.coordinator):
            asked.begin()
        else:
            self._waiting.append(asked)

    def _unless_held(self, log: str, begin: Callable[[], None]) -> None:
        """Do this now, or when the log has moved to another shard: it need not wait for writes of other shards."""
        if not (self._held and self._hold_back(_Waiting({log}, begin))):
            begin()

    def _hold_back(self, asked: _Waiting) -> bool:
        """Let this wait for a family that moves, if it concerns one, or a log that something goes to which waits so."""
        families = map(self._locations.family_of, asked.logs)
        family = next((each for each in families if each in self._held), None)
        if family is None and not self._held_logs.isdisjoint(asked.logs):
            family = next(each for each, waiting in self._held.items() if any(asked.logs & one.logs for one in waiting))
        if family is None:
            return False
        self._held[family].append(asked)
        self._held_logs |= asked.logs
        return True

    def _is_blocked(self, logs: Set[str], coordinator: int | None = None) -> bool:
        if self._held and (
            not self._held_logs.isdisjoint(logs) or any(self._locations.family_of(log) in self._held for log in logs)
        ):
            return True
        if self._spread and self._ahead.hold_up(logs, coordinator):
            return True
        return any(not each.logs.isdisjoint(logs) for each in self._waiting)

    @property
    def _logs_ahead(self) -> list[Set[str]]:
        """Return the logs that what is on its way to other shards goes to, or what waits for that."""
        return [*(each.later_logs for each in self._spread.values()), *(each.logs for each in self._waiting)]

    def _go_on(self) -> None:
        """Do what need not wait any longer."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                self._in_order(each)

    def _after_all(self, then: Callable[[], None]) -> None:
        """Do this when all that was submitted to any shard is done."""
        busy = [group for shard, group in self._groups.items() if shard and group.busy]
        left = len(busy)
        held = next((waiting for waiting in self._held.values() if waiting), None)
        if held is not None:
            held.append(_Waiting(frozenset(), lambda: self._after_all(then)))
            return
        if self._spread or self._waiting:
            behind = frozenset().union(*self._logs_ahead)
            self._waiting.append(_Waiting(behind, lambda: self._after_all(then)))
            return
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

    # -- writes to several shards

    def _submit_spread(self, unit: PendingWrite, logs: set[str]) -> None:
        self._on_spread(logs)
        id = intent_id(self._session, next(self._ids))
        spread = SpreadWrite(
            id, unit, self._locations.shard_of, self._on_part_stored, self._on_coordinated, self._on_spread_done
        )
        begin, is_ready = partial(self._begin_spread, spread), lambda: spread.is_ready
        self._in_order(_Waiting(logs, begin, unit, is_ready, spread.coordinator))

    def _begin_spread(self, spread: SpreadWrite) -> None:
        unit, full = spread.write, ""
        if not unit.ignores_limits:
            full = next(filter(None, (self._full_place(part.shard, part) for part in spread.others)), "")
        if full:
            refuse = PendingWrite(callback=lambda *_: spread.refuse(full))
            self._groups[spread.coordinator].submit(refuse)
            return
        spread.seal()
        self._spread[spread.id] = self._unfinished[spread.id] = spread
        self._ahead.add(spread.later_logs, spread.coordinator)
        self._coming.update(spread.coming)
        self._groups[spread.coordinator].submit(spread.begin)

    def _full_place(self, shard: int, part: PendingWrite) -> str:
        """Return what is full of another shard; it can refuse nothing once the coordinator has done its part."""
        group, coming = self._groups[shard], part.cost[1]
        if group.limits.accepted_bytes and group.used + self._coming[shard] + coming > group.limits.accepted_bytes:
            return STORE
        for rows in part.copies:
            for log, _, _ in rows:
                limit, held = group.limits.of_log(log), (group.held_bytes(log) or 0) + self._coming[log]
                if limit and held and held + coming > limit:  # one that is empty has room for whatever comes
                    return log
        return ""

    def _on_part_stored(self, last_seqs: Mapping[str, int]) -> Mapping[str, int]:
        """Return what stood last in logs before a part of a write was stored; what is reported later stood behind it.

        The store tells it of the whole batch, but the part may be told of after what follows it there.
        """
        before = self.before
        previous = {log: before[log] for log in last_seqs if log in before}
        self._part_seqs.update(last_seqs)
        return previous

    def _on_coordinated(self, spread: SpreadWrite) -> None:
        """Let the other shards do their parts: what is asked later of their logs comes behind them."""
        self._forget_ahead(spread)
        if not spread.is_over:
            for part in spread.others:
                self._groups[part.shard].submit(part)
        self._go_on()

    def _on_spread_done(self, spread: SpreadWrite) -> None:
        self._forget(spread)
        if not spread.refused:
            self._groups[spread.coordinator].submit(spread.intent_end())
        self._reporting = spread
        try:
            spread.report()
        finally:
            self._reporting = None

    def _forget_ahead(self, spread: SpreadWrite) -> None:
        del self._spread[spread.id]
        self._ahead.remove(spread.later_logs)

    def _forget(self, spread: SpreadWrite) -> None:
        if self._unfinished.pop(spread.id, None) is not None:
            self._coming -= Counter(spread.coming)

    def on_batch(self, _batch: CommitBatch) -> None:
        """A shard has done a batch: by which numbers messages are known that are settled elsewhere."""
        self._part_seqs.clear()
        self._go_on()

    # -- families that move

    async def hold(self, family: str) -> Mapping[str, int]:
        """Let all that is asked of a family's logs wait; return where they are when nothing of them is under way."""
        self._held.setdefault(family, [])
        while any(self._concerns(each, family) for each in self._unfinished.values()):
            await asyncio.sleep(DRAIN_SECONDS)
        await asyncio.gather(*(group.settle_down() for group in self._groups.values()))
        return self._locations.of_family(family)

    def _concerns(self, spread: SpreadWrite, family: str) -> bool:
        return any(self._locations.family_of(log) == family for log in spread.logs)

    def release(self, family: str, shard: int) -> None:
        """Go on with a family that was held: all of its logs are in this shard."""
        for log in self._locations.of_family(family):
            self._locations.locate(log, {SHARD: shard})
        held = self._held.pop(family, [])
        self._held_logs = {log for waiting in self._held.values() for each in waiting for log in each.logs}
        for each in held:
            self._in_order(each)

    # -- what is on its way, and what is held

    @property
    def busy(self) -> bool:
        """Whether anything submitted is not done yet."""
        return bool(self._spread or self._waiting or any(self._held.values())) or any(
            group.busy for group in self._groups.values()
        )

    def has_pending_for(self, log: str) -> bool:
        """Whether messages are on their way to the store that this log is given when they are there."""
        return self._is_blocked({log}) or self._group_of(log).has_pending_for(log)

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
            await asyncio.sleep(DRAIN_SECONDS)

    @property
    def limits(self) -> StoreLimits:
        """The limits of the first store; with several shards, how much all of them may hold."""
        if self._only is not None:
            return self._only.limits
        of_all = [group.limits for group in self._groups.values()]
        return replace(
            self.first.limits, total=sum(each.total for each in of_all), temp=sum(each.temp for each in of_all)
        )

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
        if self._reporting is not None:
            return self._reporting.previous_seqs
        before = next((group.before for group in self._groups.values() if group.before), {})
        return {**before, **self._part_seqs} if self._part_seqs else before

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
        try:
            while True:
                changed = asyncio.ensure_future(self._changed.wait())
                for number in tasks.keys() - self._groups.keys():
                    tasks.pop(number).cancel()
                for number, group in self._groups.items():
                    if number not in tasks:
                        tasks[number] = asyncio.ensure_future(serve(group))
                done, _ = await asyncio.wait({changed, *tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                for task in done - {changed}:
                    task.result()
        finally:
            for task in tasks.values():
                task.cancel()
