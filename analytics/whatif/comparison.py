"""Comparison: what the definitions in force and proposed ones make of the same messages, side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from analytics.whatif.depths import predicted, service
from analytics.whatif.tallies import Asked, Buckets, Series, Tally
from analytics.whatif.ways import Leg
from brokerapp.destination import Destination

#: Classes of which messages are shown as samples, for each leg; a message each.
SAMPLES = 3
#: Of one comparison.
MAX_SAMPLES = 300
TODAY, DRAFT = "today", "draft"


@dataclass(frozen=True, slots=True)
class Target:
    """A queue, subscription or topic that gets copies, by either set of definitions."""

    name: str
    today: Series
    draft: Series
    served: float  #: messages acknowledged in a bucket when there was work
    waiting_today: np.ndarray  #: at the end of each bucket; nothing for topics, which keep nothing
    waiting_draft: np.ndarray

    @property
    def keeps(self) -> bool:
        """Whether messages wait there."""
        return Destination.parse(self.name).is_queue

    @property
    def state(self) -> str:
        """Whether only one of the two brings it anything."""
        today, draft = self.today.messages.any(), self.draft.messages.any()
        return "new" if draft and not today else "lost" if today and not draft else ""

    @property
    def difference(self) -> int:
        """Messages that the draft brings it more."""
        return int(self.draft.messages.sum() - self.today.messages.sum())

    def left(self, waiting: np.ndarray, copies: Series) -> tuple[int, int]:
        """What waits in the end, messages and bytes."""
        count = round(float(waiting[-1])) if len(waiting) else 0
        total = int(copies.messages.sum())
        return count, round(count * int(copies.bytes.sum()) / total) if total else 0


@dataclass(frozen=True)
class Comparison:
    """Two tallies of the same classes, and how each target was served in the window."""

    today: Tally
    draft: Tally
    buckets: Buckets
    acked: Mapping[str, np.ndarray]  #: in each bucket
    waiting: Mapping[str, int]  #: when the window began
    sharing: Mapping[str, Sequence[str]]  #: queues that take turns, by address

    @cached_property
    def targets(self) -> list[Target]:
        """All targets, those that differ most first."""
        today, draft = self.today.targets(self.sharing), self.draft.targets(self.sharing)
        found = [self._target(name, today, draft) for name in dict.fromkeys((*today, *draft))]
        return sorted(found, key=lambda each: (-abs(each.difference), -int(each.today.messages.sum()), each.name))

    def _target(self, name: str, today: Mapping[str, Series], draft: Mapping[str, Series]) -> Target:
        nothing = np.zeros(self.buckets.count, np.int64)
        series = [each.get(name) or Series(nothing, nothing) for each in (today, draft)]
        served = service(self.acked.get(name, nothing))
        keeps = Destination.parse(name).is_queue
        waiting = [
            predicted(each.messages, served, self.waiting.get(name, 0)) if keeps else nothing[:0] for each in series
        ]
        return Target(name, *series, served, *waiting)

    @cached_property
    def legs(self) -> list[tuple[Leg, Asked, Asked]]:
        """Each leg as it is considered today and with the draft: in the order of definitions, those of the draft."""
        nothing = Asked()
        every = dict.fromkeys((*self.draft.legs, *self.today.legs))
        found = [(leg, self.today.legs.get(leg, nothing), self.draft.legs.get(leg, nothing)) for leg in every]
        return sorted(found, key=lambda each: (each[0].definition, each[0].at, each[0].target, each[0].selector or ""))

    @cached_property
    def sampled(self) -> list[tuple[str, int]]:
        """Classes of which a message is shown, under what: `leg N` of the list of legs, or what became of them."""
        found = [("reaches nothing", number) for number in self.draft.lost[:SAMPLES]]
        found += [("refused", number) for number in self.draft.refused[:SAMPLES]]
        for place, (_, _, draft) in enumerate(self.legs, 1):
            found += [(f"leg {place}", number) for number in draft.takes[:SAMPLES]]
        return found[:MAX_SAMPLES]

    def left(self, which: str) -> tuple[int, int]:
        """What waits in the end everywhere, messages and bytes."""
        of = [each.left(getattr(each, f"waiting_{which}"), getattr(each, which)) for each in self.targets if each.keeps]
        return sum(count for count, _ in of), sum(size for _, size in of)

    def copies(self, which: str) -> tuple[int, int]:
        """Copies that are stored, and their bytes."""
        of = [getattr(each, which) for each in self.targets if each.keeps]
        return sum(int(each.messages.sum()) for each in of), sum(int(each.bytes.sum()) for each in of)


def series_by_name(table: pa.Table, column: str, buckets: Buckets) -> dict[str, np.ndarray]:
    """The values of a column by destination, a number for each bucket."""
    found: dict[str, np.ndarray] = {}
    places = buckets.place(table["bucket"].to_numpy())
    rows: Iterable = zip(table["destination"].to_pylist(), places, table[column].to_pylist(), strict=True)
    for name, place, value in rows:
        if value:
            found.setdefault(name, np.zeros(buckets.count, np.int64))[place] += value
    return found


def waiting_at_first(table: pa.Table) -> dict[str, int]:
    """What waited when the window began, by destination: the first depth that was noted in it."""
    rows = zip(table["bucket"].to_pylist(), table["destination"].to_pylist(), table["waiting"].to_pylist(), strict=True)
    found: dict[str, int] = {}
    for _, name, waiting in sorted(each for each in rows if each[2] is not None):
        found.setdefault(name, waiting)
    return found
