"""Have writes done that concern several shards: first by one of them, the coordinator, then by the others.

The coordinator keeps with its part what the others are to do, the intent, which is removed when they have done it. The
other shards remember what they did until then, and forget it with a later part.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from brokerapp.core.commits.group_commit import GroupCommit
from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.core.shards.family_order import FamilyOrder, IsWanted
from brokerapp.core.shards.log_locations import LogLocations
from brokerapp.core.shards.spread_write import Place, SpreadPart, SpreadWrite, logs_of
from brokerapp.store import STORE, TEMP, IntentChange, PendingWrite
from brokerapp.store.shards.intent_codec import intent_id


class SpreadWrites:
    """Writes to several shards that are on their way. True while there are any.

    `groups` are the group commits of the shards, `order` gives the parts their turns. `before` says what stood last in
    logs before what is reported now. `on_spread` is told of logs that such a write goes to.
    """

    def __init__(
        self,
        groups: Mapping[int, GroupCommit],
        locations: LogLocations,
        order: FamilyOrder,
        session: str,
        before: Callable[[], Mapping[str, int]],
        on_spread: Callable[[Iterable[str]], None],
    ) -> None:
        self._groups, self._locations, self._order, self._session = groups, locations, order, session
        self._before, self._on_spread = before, on_spread
        self._ids = itertools.count(1)
        self._under_way: dict[int, SpreadWrite] = {}  # by the identities of their coordinators' parts
        self._coming: Counter[Place] = Counter()  # bytes of them for other shards
        self._unready: list[SpreadWrite] = []  # whose turn it is, but not all is known that they settle
        self._ended: dict[int, list[str]] = {}  # by shard, the ids of intents that it may forget
        self._part_seqs: dict[str, int] = {}  # of parts in the batch that is reported: the last number in each log
        self._reporting: SpreadWrite | None = None

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def concerns(self, family: str) -> bool:
        """Return whether one of them goes to a family."""
        return any(family in self._order.families_of(each.logs) for each in self._under_way.values())

    # -- their way

    def submit(self, unit: PendingWrite) -> None:
        """Do this, each part of it in its turn."""
        self._on_spread(logs_of(unit))
        spread = SpreadWrite(
            intent_id(self._session, next(self._ids)), unit, self._locations.shard_of,
            is_limited=lambda log: self._group_of(log).limits.of_log(log) > 0,
            on_part_stored=self._on_part_stored, on_coordinated=self._on_coordinated, on_done=self._on_done,
        )  # fmt: skip
        self._under_way[id(spread.begin)] = spread
        spread.first_turn = self._order.add(logs_of(spread.begin), partial(self._begin, spread))
        for part in spread.others:
            spread.turns.append(self._order.add(logs_of(part), partial(self._begin_part, spread, part)))

    def _group_of(self, log: str) -> GroupCommit:
        return self._groups[self._locations.shard_of(log)]

    def _begin(self, spread: SpreadWrite) -> bool:
        """Have the coordinator do its part, as soon as it is known by which numbers the others settle.

        Return whether it was asked to. Until then what follows waits, lest it overtake this.
        """
        if not spread.is_ready:
            self._unready.append(spread)
            return False
        full = "" if spread.write.ignores_limits else next(filter(None, map(self._full_place, spread.others)), "")
        if full and not spread.is_verified:
            self._verify(spread)
            return False
        if full:
            refuse = PendingWrite(callback=lambda *_: self._refuse(spread, full))
            self._groups[spread.coordinator].submit(refuse)
            return True
        spread.seal()
        self._coming.update(spread.coming)
        self._groups[spread.coordinator].submit(spread.begin)
        return True

    def _begin_again(self, spread: SpreadWrite) -> None:
        if self._begin(spread):
            self._order.end(spread.first_turn)

    def _verify(self, spread: SpreadWrite) -> None:
        """Ask the other shards how much they hold before they are taken for full: other nodes may have made room."""
        spread.is_verified, left = True, len(spread.others)

        async def usage(store: CommitStore) -> tuple[int, Mapping[str, int], int]:
            return *await store.logs.used_bytes(), await store.logs.temp_used_bytes()

        def noted(group: GroupCommit, logs: Iterable[str], answer: tuple[int, Mapping[str, int], int]) -> None:
            nonlocal left
            used, by_log, temp = answer
            group.note_usage(used, temp, {log: by_log.get(log, 0) for log in logs})
            left -= 1
            if not left and self._is_wanted(spread):
                self._begin_again(spread)

        for part in spread.others:
            group = self._groups[part.shard]
            group.read_with(usage, partial(noted, group, logs_of(part)))

    def _refuse(self, spread: SpreadWrite, full: str) -> None:
        if self._is_wanted(spread):
            spread.refuse(full)

    def _is_wanted(self, spread: SpreadWrite) -> bool:
        """Return whether a write has not been taken back since it was asked about."""
        return id(spread.begin) in self._under_way

    def _full_place(self, part: SpreadPart) -> str:
        """Return what is full of another shard than the coordinator: it can refuse nothing later."""
        group, coming, volatile = self._groups[part.shard], part.cost[1], part.temp_bytes
        limits, shard = group.limits, part.shard
        if limits.accepted_bytes and group.used + self._coming[shard] + coming > limits.accepted_bytes:
            return STORE
        if limits.temp and volatile and group.temp + self._coming[TEMP, shard] + volatile > limits.temp:
            return TEMP
        for log, size in part.bytes_by_log().items():
            limit, held = group.limits.of_log(log), (group.held_bytes(log) or 0) + self._coming[log]
            if limit and held and held + size > limit:  # one that is empty has room for whatever comes
                return log
        return ""

    def _begin_part(self, spread: SpreadWrite, part: SpreadPart) -> bool:
        """Have another shard do its part, if the coordinator has done its own."""
        if not spread.is_coordinated:
            return False
        if not spread.is_over:
            if ended := self._ended.pop(part.shard, None):
                part.intent = IntentChange(" ".join(ended))
            self._groups[part.shard].submit(part)
        return True

    def _on_coordinated(self, spread: SpreadWrite) -> None:
        """Let the other shards do their parts that are waited for in their turns."""
        for part, turn in zip(spread.others, spread.turns, strict=True):
            if turn.has_begun and self._begin_part(spread, part):
                self._order.end(turn)

    def _on_done(self, spread: SpreadWrite) -> None:
        self._under_way.pop(id(spread.begin), None)
        self._forget_coming(spread)
        if not spread.refused:
            self._groups[spread.coordinator].submit(spread.intent_end(self._on_ended))
        self._reporting = spread
        try:
            spread.report()
        finally:
            self._reporting = None

    def _on_ended(self, spread: SpreadWrite) -> None:
        """An intent was removed: nobody asks any more for the parts that other shards remember."""
        for part in spread.others:
            if part.count and part.shard in self._groups:
                self._ended.setdefault(part.shard, []).append(spread.id)

    def _forget_coming(self, spread: SpreadWrite) -> None:
        if spread.has_begun:
            for place, size in spread.coming.items():
                self._coming[place] -= size
                if not self._coming[place]:
                    del self._coming[place]

    def take_back(self, wanted: IsWanted) -> list[PendingWrite]:
        """Take back those that are in no store's hands yet."""
        return [
            self._give_up(spread)
            for spread in list(self._under_way.values())
            if not spread.has_begun and wanted(spread.write)
        ]

    def written(self, unit: PendingWrite) -> PendingWrite:
        """Return the write that a unit is the coordinator's part of; else the unit."""
        spread = self._under_way.get(id(unit))
        return unit if spread is None else spread.write

    def on_taken_back(self, unit: PendingWrite) -> PendingWrite:
        """Give up a write whose coordinator's part was taken back, and return the write; else return the unit."""
        spread = self._under_way.get(id(unit))
        return unit if spread is None else self._give_up(spread)

    def _give_up(self, spread: SpreadWrite) -> PendingWrite:
        del self._under_way[id(spread.begin)]
        if spread in self._unready:
            self._unready.remove(spread)
        self._forget_coming(spread)
        for turn in (*spread.turns, spread.first_turn):
            self._order.end(turn)
        return spread.write

    # -- what shards tell of batches

    def on_batch(self) -> None:
        """A shard has done a batch: by which numbers messages are known that are settled elsewhere."""
        self._part_seqs.clear()
        if self._unready:
            unready, self._unready = self._unready, []
            for spread in unready:
                self._begin_again(spread)

    def remove_shard(self, number: int) -> None:
        """Forget a shard that is served no more."""
        self._ended.pop(number, None)

    def _on_part_stored(self, last_seqs: Mapping[str, int]) -> Mapping[str, int]:
        """Return what stood last in logs before a part of a write was stored; what is reported later stood behind it.

        The store tells it of the whole batch, but the part may be told of after what follows it there.
        """
        before = self._before()
        previous = {log: before[log] for log in last_seqs if log in before}
        self._part_seqs.update(last_seqs)
        return previous

    def before(self, of_batch: Mapping[str, int]) -> Mapping[str, int]:
        """Return the numbers by log that stood last before what is reported now, of a batch with these."""
        if self._reporting is not None:
            return self._reporting.previous_seqs
        return {**of_batch, **self._part_seqs} if self._part_seqs else of_batch
