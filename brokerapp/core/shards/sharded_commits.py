"""Take writes and questions for a broker whose logs are in several stores: one group commit for each shard.

What concerns one shard goes to its group commit. A write that concerns several is divided, see spread_write.py; what is
asked later of a family that such a write has not reached yet waits for it, so that each log gets everything in the
order in which it was asked (ordered_work.py). Nothing else waits for another shard: one that does not answer holds up
its own logs only. A family that moves to another shard is held: all that is asked of it waits.
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
from brokerapp.core.shards.log_locations import LogLocations
from brokerapp.core.shards.ordered_work import OrderedWork, Work
from brokerapp.core.shards.spread_write import SpreadPart, SpreadWrite
from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.store import STORE, CommitBatch, PendingWrite, SettledEntry, StoreLimits
from brokerapp.store.shards.intent_codec import intent_id

#: Seconds between two looks whether all shards have done what they were asked.
LOOK_SECONDS = 0.005


def _nothing() -> None: ...


@dataclass(slots=True)
class _HeldBack:
    """What is to be done when a family has moved to another shard."""

    families: set[str]
    begin: Callable[[], None]
    unit: PendingWrite | None = None  #: that is submitted then


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
        self._work: OrderedWork[PendingWrite] = OrderedWork()  # that waits for parts of writes to other shards
        self._spread: dict[int, SpreadWrite] = {}  # on their way, by the identities of their coordinators' parts
        self._coming: Counter[int | str] = Counter()  # bytes of them for other shards, by shard and by log
        self._unready: list[SpreadWrite] = []  # whose turn it is, but not all is known that they settle
        self._held: dict[str, list[_HeldBack]] = {}  # families that move to another shard: what is asked of them
        self._held_families: set[str] = set()  # of what waits so
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

    def _families_of(self, logs: Iterable[str]) -> set[str]:
        return set(map(self._locations.family_of, logs))

    def add(self, number: int, group: GroupCommit) -> None:
        """Serve one more shard."""
        self._groups[number], self._only = group, None
        self._tell_of_change()

    def remove_shard(self, number: int) -> None:
        """Serve a shard no more, in which nothing is."""
        del self._groups[number]
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
        logs = _logs_of(unit)
        if not (logs or unit.jobs or unit.branch is not None):
            self._after_all(partial(self.first.submit, unit))
            return
        if self._held and self._hold_back(self._families_of(logs), partial(self.submit, unit), unit):
            return
        shards = set(map(self._locations.shard_of, logs))
        if unit.jobs or unit.branch is not None:
            shards.add(0)
        if len(shards) == 1:
            [shard] = shards
            self._in_turn(logs, lambda: self._groups[shard].submit(unit), unit)
        elif unit.is_atomic or not isinstance(unit, ClientWrite):
            self._submit_spread(unit)
        else:
            for part in unit.divide_by(self._shards_of_batch):
                self.submit(part)

    def _shards_of_batch(self, batch: RoutedBatch) -> set[int]:
        return set(map(self._locations.shard_of, _logs_of_batch(batch)))

    def cancel(self, wanted: Callable[[PendingWrite], bool]) -> list[PendingWrite]:
        """Take back those units that are not in the store's hands yet; the rest of their writes stays."""
        found: list[PendingWrite] = []

        def is_wanted(unit: PendingWrite) -> bool:
            spread = self._spread.get(id(unit))
            return wanted(unit if spread is None else spread.write)

        for group in self._groups.values():
            for unit in group.cancel(is_wanted):
                spread = self._spread.pop(id(unit), None)
                found.append(unit if spread is None else self._give_up(spread))
        for spread in [each for each in self._spread.values() if not each.has_begun and wanted(each.write)]:
            del self._spread[id(spread.begin)]
            found.append(self._give_up(spread))
        for work in [each for each in self._work if each.subject is not None and not each.has_begun]:
            found += self._divide(work.subject, wanted, partial(self._work.end, work))
        for waiting in self._held.values():
            for each in [each for each in waiting if each.unit is not None]:
                found += self._divide(each.unit, wanted, partial(waiting.remove, each))
        return found

    def _divide(
        self, unit: PendingWrite | None, wanted: Callable[[PendingWrite], bool], remove: Callable[[], None]
    ) -> list[PendingWrite]:
        """Take back those units of a write that are wanted."""
        if unit is None or not wanted(unit):
            return []
        taken, rest = unit.divide(wanted)
        remove()
        if rest is not None:
            self.submit(rest)
        return list(taken)

    def _give_up(self, spread: SpreadWrite) -> PendingWrite:
        if spread in self._unready:
            self._unready.remove(spread)
        self._forget_coming(spread)
        for work in spread.turns:
            self._work.end(work)
        return spread.write

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
        self._unless_held(log, lambda: self._create(log, attributes))

    def _create(self, log: str, attributes: str) -> None:
        attributes = self._locations.with_shard(log, attributes)
        self._group_of(log).create(log, attributes)

    def remove(self, log: str) -> None:
        """Let a log exist no longer, if it is empty; before anything submitted later."""
        self._in_order(log, lambda: self._forget(log).remove(log))

    def discard_log(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove a log with all it holds, some time after everything submitted so far is done."""
        self._in_order(log, lambda: self._forget(log).discard_log(log, then))

    def _forget(self, log: str) -> GroupCommit:
        """Return where a log is that is removed; one that is made anew goes where its family lives, which is there."""
        group = self._group_of(log)
        self._locations.forget(log)
        return group

    def clear(self, log: str, then: Callable[[], None] = _nothing) -> None:
        """Remove what a log that was discarded, at whichever node, still gets of what was submitted so far."""
        self._in_order(log, lambda: self._group_of(log).clear(log, then))

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
            self._in_order(log, lambda: self._group_of(log).read_with(ask, callback))
        else:
            self._after_all(lambda: self.first.read_with(ask, callback))

    def prioritize(self, log: str, after: int, callback: Callable[[int], None]) -> None:
        """Give places by priority to the next entries after this number of a log; see the store's."""
        self._in_order(log, lambda: self._group_of(log).prioritize(log, after, callback))

    def keep_record(
        self, id: str, version: int, changed: Mapping[str, str], anew: bool, then: Callable[[], None]
    ) -> None:
        """Keep a change of the cluster's record, after everything submitted so far; see the store's."""
        self._after_all(lambda: self.first.keep_record(id, version, changed, anew, then))

    # -- order

    def _in_turn(self, logs: Set[str], begin: Callable[[], None], unit: PendingWrite | None = None) -> None:
        """Do this now, or behind all that was asked before of these logs' families and waits for other shards."""
        if not self._work or not self._work.concerns(families := self._families_of(logs)):
            begin()
        else:
            self._work.add(Work(families, partial(_done, begin), unit))

    def _in_order(self, log: str, begin: Callable[[], None]) -> None:
        """The same of one log, which may be about to move."""
        if not (self._held and self._hold_back({self._locations.family_of(log)}, partial(self._in_order, log, begin))):
            self._in_turn({log}, begin)

    def _unless_held(self, log: str, begin: Callable[[], None]) -> None:
        """Do this now, or when the log's family has moved: it need not wait for writes that wait for other shards."""
        if not (self._held and self._hold_back({self._locations.family_of(log)}, begin)):
            begin()

    def _hold_back(self, families: set[str], begin: Callable[[], None], unit: PendingWrite | None = None) -> bool:
        """Let this wait if it concerns a family that moves, or one of something that waits so."""
        family = next((each for each in families if each in self._held), None)
        if family is None and not self._held_families.isdisjoint(families):
            family = next(
                each for each, waiting in self._held.items() if any(families & one.families for one in waiting)
            )
        if family is None:
            return False
        self._held[family].append(_HeldBack(families, begin, unit))
        self._held_families |= families
        return True

    def _after_all(self, then: Callable[[], None]) -> None:
        """Do this when all that was submitted to any shard is done."""
        waiting = next((waiting for waiting in self._held.values() if waiting), None)
        if waiting is not None:
            waiting.append(_HeldBack(set(), partial(self._after_all, then)))
        elif self._work:
            self._work.add(Work(self._work.families, partial(_done, partial(self._after_groups, then))))
        else:
            self._after_groups(then)

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

    # -- writes to several shards

    def _submit_spread(self, unit: PendingWrite) -> None:
        """Have a write done that concerns several shards: first by the coordinator, then by the others."""
        self._on_spread(_logs_of(unit))
        spread = SpreadWrite(
            intent_id(self._session, next(self._ids)), unit, self._locations.shard_of,
            is_limited=lambda log: self._group_of(log).limits.of_log(log) > 0,
            on_part_stored=self._on_part_stored, on_coordinated=self._on_coordinated, on_done=self._on_spread_done,
        )  # fmt: skip
        self._spread[id(spread.begin)] = spread
        begin = Work(self._families_of(_logs_of(spread.begin)), lambda _: self._begin_spread(spread), unit)
        turns = [
            Work(self._families_of(_logs_of(part)), partial(self._begin_part, spread, part)) for part in spread.others
        ]
        spread.turns = [*turns]
        if begin.families and self._work.concerns(begin.families):
            spread.turns.append(begin)
            self._work.add(begin)
        else:
            self._begin_spread(spread)
        for turn in turns:
            self._work.add(turn)

    def _begin_spread(self, spread: SpreadWrite) -> bool:
        """Have the coordinator do its part, as soon as it is known by which numbers the others settle."""
        if not spread.is_ready:
            self._unready.append(spread)
            return True
        unit = spread.write
        full = "" if unit.ignores_limits else next(filter(None, map(self._full_place, spread.others)), "")
        if full and not spread.is_verified:
            self._verify(spread)
            return True
        if full:
            refuse = PendingWrite(callback=lambda *_: self._refuse(spread, full))
            self._groups[spread.coordinator].submit(refuse)
            return True
        spread.seal()
        self._coming.update(spread.coming)
        self._groups[spread.coordinator].submit(spread.begin)
        return True

    def _verify(self, spread: SpreadWrite) -> None:
        """Ask the other shards how much they hold before they are taken for full: other nodes may have made room."""
        spread.is_verified, left = True, len(spread.others)

        def noted(group: GroupCommit, logs: Set[str], answer: tuple[int, Mapping[str, int]]) -> None:
            nonlocal left
            group.note_usage(answer[0], {log: answer[1].get(log, 0) for log in logs})
            left -= 1
            if not left and self._is_wanted(spread):
                self._begin_spread(spread)

        for part in spread.others:
            group = self._groups[part.shard]
            group.read_with(lambda store: store.logs.used_bytes(), partial(noted, group, _logs_of(part)))

    def _refuse(self, spread: SpreadWrite, full: str) -> None:
        if self._is_wanted(spread):
            spread.refuse(full)

    def _is_wanted(self, spread: SpreadWrite) -> bool:
        """Return whether a write has not been taken back since it was asked about."""
        return id(spread.begin) in self._spread

    def _begin_part(self, spread: SpreadWrite, part: SpreadPart, _turn: Work[PendingWrite]) -> bool:
        """Have another shard do its part, if the coordinator has done its own."""
        if not spread.is_coordinated:
            return False
        if not spread.is_over:
            self._groups[part.shard].submit(part)
        return True

    def _full_place(self, part: SpreadPart) -> str:
        """Return what is full of another shard than the coordinator: it can refuse nothing later."""
        group, coming = self._groups[part.shard], part.cost[1]
        if group.limits.accepted_bytes and group.used + self._coming[part.shard] + coming > group.limits.accepted_bytes:
            return STORE
        for log, size in part.bytes_by_log().items():
            limit, held = group.limits.of_log(log), (group.held_bytes(log) or 0) + self._coming[log]
            if limit and held and held + size > limit:  # one that is empty has room for whatever comes
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
        """Let the other shards do their parts that are waited for in their turns."""
        for part, turn in zip(spread.others, spread.turns, strict=False):
            if turn.has_begun and self._begin_part(spread, part, turn):
                self._work.end(turn)

    def _on_spread_done(self, spread: SpreadWrite) -> None:
        self._spread.pop(id(spread.begin), None)
        self._forget_coming(spread)
        if not spread.refused:
            self._groups[spread.coordinator].submit(spread.intent_end())
        self._reporting = spread
        try:
            spread.report()
        finally:
            self._reporting = None

    def _forget_coming(self, spread: SpreadWrite) -> None:
        if spread.has_begun:
            for place, size in spread.coming.items():
                self._coming[place] -= size
                if not self._coming[place]:
                    del self._coming[place]

    def on_batch(self, _batch: CommitBatch) -> None:
        """A shard has done a batch: by which numbers messages are known that are settled elsewhere."""
        self._part_seqs.clear()
        if self._unready:
            unready, self._unready = self._unready, []
            for spread in unready:
                self._begin_spread(spread)

    # -- families that move

    async def hold(self, family: str) -> Mapping[str, int]:
        """Let all that is asked of a family's logs wait; return where they are when nothing of them is under way."""
        self._held.setdefault(family, [])
        while self._work.concerns({family}) or any(
            family in self._families_of(each.logs) for each in self._spread.values()
        ):
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.gather(*(group.settle_down() for group in self._groups.values()))
        return self._locations.of_family(family)

    def release(self, family: str, source: int, target: int) -> None:
        """Go on with a family that was held: its logs that were in one shard are in this other one now."""
        self._locations.move(family, source, target)
        waiting = self._held.pop(family, [])
        self._held_families = {each for others in self._held.values() for one in others for each in one.families}
        for each in waiting:
            each.begin()

    # -- what is on its way, and what is held

    @property
    def busy(self) -> bool:
        """Whether anything submitted is not done yet."""
        is_waiting = self._work or self._spread or any(self._held.values())
        return bool(is_waiting) or any(group.busy for group in self._groups.values())

    def has_pending_for(self, log: str) -> bool:
        """Whether messages are on their way to the store that this log is given when they are there."""
        if self._work or self._held:
            family = self._locations.family_of(log)
            if self._work.concerns({family}) or family in self._held or family in self._held_families:
                return True
        return self._group_of(log).has_pending_for(log)

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
            await asyncio.sleep(LOOK_SECONDS if self._work else 0)

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


def _done(begin: Callable[[], None], _work: object) -> bool:
    """Do what is done as it begins."""
    begin()
    return True


def _logs_of(unit: PendingWrite) -> set[str]:
    """Return the logs that a write concerns; of messages that no log keeps the topics, which have an order, too."""
    logs = {row[0] for rows in unit.copies for row in rows}
    logs.update([entry.log for entry in unit.settles])
    if isinstance(unit, ClientWrite) and not logs:
        return {str(each.destination) for each in unit.placed}
    return logs


def _logs_of_batch(batch: RoutedBatch) -> set[str]:
    return {row[0] for rows in batch.rows for row in rows} or {str(batch.destination)}
