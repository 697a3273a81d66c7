"""Do what is asked of families of logs in the order in which it was asked, and hold families that move.

What concerns a family that a write to several shards has not reached yet waits for it; so each log gets everything in
order. A family that moves to another shard is held: all that is asked of it, and of families that something held
concerns, too, waits until it is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from functools import partial

from brokerapp.core.shards.ordered_work import OrderedWork, Work
from brokerapp.store import PendingWrite

#: Says of a write whether it is to be taken back.
IsWanted = Callable[[PendingWrite], bool]


@dataclass(slots=True, eq=False)
class _HeldBack:
    """What is to be done when a family has moved to another shard."""

    families: Set[str]
    begin: Callable[[], None]
    unit: PendingWrite | None = None  #: that is submitted then


class FamilyOrder:
    """Begins what is asked in its turn. True while something waits, or a write to several shards is under way.

    `family_of` names the family of a log; `submit` takes writes of families that were held.
    """

    def __init__(self, family_of: Callable[[str], str], submit: Callable[[PendingWrite], None]) -> None:
        self._family_of, self._submit = family_of, submit
        self._work: OrderedWork[PendingWrite] = OrderedWork()
        self._held: dict[str, list[_HeldBack]] = {}  # by family that moves: what is asked of it
        self._held_families: set[str] = set()  # of what waits so

    def __bool__(self) -> bool:
        return bool(self._work) or any(self._held.values())

    def families_of(self, logs: Iterable[str]) -> set[str]:
        """Return the families of these logs."""
        return set(map(self._family_of, logs))

    def concerns(self, log: str) -> bool:
        """Return whether anything that concerns the family of a log waits or is under way, or the family moves."""
        if not (self._work or self._held):
            return False
        family = self._family_of(log)
        return self._work.concerns({family}) or family in self._held or family in self._held_families

    # -- turns

    def add(self, logs: Iterable[str], begin: Callable[[], bool]) -> Work[PendingWrite]:
        """Add work that concerns these logs, and begin it in its turn; `begin` returns whether it is done with that."""
        work: Work[PendingWrite] = Work(self.families_of(logs), lambda _: begin())
        self._work.add(work)
        return work

    def end(self, work: Work[PendingWrite]) -> None:
        """Go on with what waits for work that is done, or is not to be done, if it is not over yet."""
        self._work.end(work)

    def submit(self, logs: Set[str], unit: PendingWrite, submit: Callable[[PendingWrite], None]) -> None:
        """Submit a write to these logs in its turn."""
        if not self._work or not self._work.concerns(families := self.families_of(logs)):
            submit(unit)
            return

        def begin(work: Work[PendingWrite]) -> bool:
            if work.subject is not None:
                submit(work.subject)
            return True

        self._work.add(Work(families, begin, unit))

    def do(self, log: str, begin: Callable[[], None]) -> None:
        """Do something with a log in its turn."""
        if self._held and self._hold_back(self.families_of([log]), partial(self.do, log, begin)):
            return
        if not self._work or not self._work.concerns(families := self.families_of([log])):
            begin()
        else:
            self._work.add(Work(families, partial(_done, begin)))

    def do_unless_held(self, log: str, begin: Callable[[], None]) -> None:
        """Do something with a log now, or when its family has moved: it need not wait for writes that wait."""
        if not (self._held and self._hold_back(self.families_of([log]), begin)):
            begin()

    def do_after_all(self, then: Callable[[], None]) -> None:
        """Do this when all that is waiting or under way is done."""
        waiting = next((waiting for waiting in self._held.values() if waiting), None)
        if waiting is not None:
            waiting.append(_HeldBack(set(), partial(self.do_after_all, then)))
        elif self._work:
            self._work.add(Work(self._work.families, partial(_done, then)))
        else:
            then()

    # -- families that move

    def hold(self, family: str) -> None:
        """Let all that is asked of a family wait."""
        self._held.setdefault(family, [])

    def is_under_way(self, family: str) -> bool:
        """Return whether anything of a family was begun and is not done, or waits for its turn."""
        return self._work.concerns({family})

    def release(self, family: str) -> None:
        """Go on with a family that was held."""
        waiting = self._held.pop(family, [])
        self._held_families = {each for others in self._held.values() for one in others for each in one.families}
        for each in waiting:
            if each.unit is not None:
                self._submit(each.unit)
            else:
                each.begin()

    def hold_back(self, logs: Iterable[str], unit: PendingWrite) -> bool:
        """Let a write wait if it goes to a family that moves; return whether it waits."""
        return bool(self._held) and self._hold_back(self.families_of(logs), _nothing, unit)

    def _hold_back(self, families: Set[str], begin: Callable[[], None], unit: PendingWrite | None = None) -> bool:
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

    # -- what is taken back

    def take_back(self, wanted: IsWanted) -> list[PendingWrite]:
        """Take back those units that wait; what is left of their writes keeps its turn."""
        found: list[PendingWrite] = []
        emptied = []
        for work in self._work:
            if work.subject is not None and not work.has_begun and wanted(work.subject):
                taken, work.subject = work.subject.divide(wanted)
                found += taken
                if work.subject is None:
                    emptied.append(work)
        for work in emptied:  # what was behind begins only now, when nothing of that is wanted
            self._work.end(work)
        for waiting in self._held.values():
            for each in list(waiting):
                if each.unit is not None and wanted(each.unit):
                    taken, each.unit = each.unit.divide(wanted)
                    found += taken
                    if each.unit is None:
                        waiting.remove(each)
        return found


def _nothing() -> None: ...


def _done(begin: Callable[[], None], _work: object) -> bool:
    """Do what is done as it begins."""
    begin()
    return True
