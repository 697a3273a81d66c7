"""Compare what the active definitions and proposed ones do with the same messages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from analytics.model.depth_series import DepthSeries
from analytics.whatif.backlog_prediction import BacklogSeries, predict_change, service_rate
from analytics.whatif.message_counts import CopySeries, TargetMatches, TimeBuckets, WhatIfTally
from analytics.whatif.predicted_routes import TargetUse
from brokerapp.model.destination import Destination

#: Classes of which a message is shown as an example, for each target.
SAMPLES_PER_TARGET = 3
#: Examples of one comparison.
MAX_SAMPLES = 300
ACTIVE, DRAFT = "in_force", "draft"


@dataclass(frozen=True, slots=True)
class ComparedTarget:
    """A queue, subscription or topic that gets copies, by either set of definitions."""

    name: str
    in_force: CopySeries
    draft: CopySeries
    served: float  #: messages that left in a bucket when there was work
    waiting_recorded: np.ndarray  #: the recorded backlog at the end of each bucket; empty for topics
    waiting_draft: np.ndarray  #: the predicted backlog
    known: np.ndarray  #: whether the backlog of each bucket was recorded

    @property
    def keeps_messages(self) -> bool:
        """Return whether the target stores messages, as topics do not."""
        return Destination.parse(self.name).is_queue

    @property
    def state(self) -> str:
        """Return "new" or "lost" if only the draft or only the active version sends messages to it, else ""."""
        in_force, draft = self.in_force.messages.any(), self.draft.messages.any()
        return "new" if draft and not in_force else "lost" if in_force and not draft else ""

    @property
    def difference(self) -> int:
        """Return how many more messages the draft sends to it."""
        return int(self.draft.messages.sum() - self.in_force.messages.sum())

    def final_backlog(self, waiting: np.ndarray, copies: CopySeries) -> tuple[int, int]:
        """Return messages and bytes of the backlog at the end of the window."""
        count = round(float(waiting[-1])) if len(waiting) else 0
        total = int(copies.messages.sum())
        return count, round(count * int(copies.bytes.sum()) / total) if total else 0


@dataclass(frozen=True)
class WhatIfComparison:
    """Two tallies of the same classes, and how each target was served in the window."""

    in_force: WhatIfTally
    draft: WhatIfTally
    buckets: TimeBuckets
    removal_rates: Mapping[str, np.ndarray]  #: by destination, for each bucket (backlog_prediction.continuous_rate)
    backlogs: Mapping[str, BacklogSeries]  #: recorded backlogs by destination
    sharing: Mapping[str, Sequence[str]]  #: queues that share messages in turn, by address

    @cached_property
    def targets(self) -> list[ComparedTarget]:
        """Return all targets, those that differ most first."""
        in_force, draft = self.in_force.targets(self.sharing), self.draft.targets(self.sharing)
        found = [self._target(name, in_force, draft) for name in dict.fromkeys((*in_force, *draft))]
        return sorted(found, key=lambda each: (-abs(each.difference), -int(each.in_force.messages.sum()), each.name))

    def _target(self, name: str, in_force: Mapping[str, CopySeries], draft: Mapping[str, CopySeries]) -> ComparedTarget:
        nothing = np.zeros(self.buckets.count, np.int64)
        series = [each.get(name) or CopySeries(nothing, nothing) for each in (in_force, draft)]
        served = service_rate(self.removal_rates.get(name, nothing))
        if not Destination.parse(name).is_queue:
            return ComparedTarget(name, *series, served, nothing[:0], nothing[:0], np.ones(0, bool))
        stood = self.backlogs.get(name) or BacklogSeries(0, nothing, nothing, np.ones(self.buckets.count, bool))
        would = predict_change(stood, *(each.messages for each in series), served)
        return ComparedTarget(name, *series, served, stood.depths, would, stood.known)

    @cached_property
    def target_uses(self) -> list[tuple[TargetUse, TargetMatches, TargetMatches]]:
        """Return each target of a definition with its matches by the active version and by the draft, in order."""
        every = dict.fromkeys((*self.draft.target_uses, *self.in_force.target_uses))
        asked = [self._matches_of(each) for each in (self.in_force, self.draft)]
        found = [(leg, *(of(leg) for of in asked)) for leg in every]
        return sorted(found, key=lambda each: (each[0].definition, each[0].at, each[0].target, each[0].selector or ""))

    def _matches_of(self, tally: WhatIfTally) -> Callable[[TargetUse], TargetMatches]:
        """Return a function for how often definitions considered a target, by the answer of its selector.

        A destination to which no definition applies keeps all messages that reach it.
        """
        copies, decided = tally.targets(self.sharing), {leg.at for leg in tally.target_uses if leg.is_own}

        def asked(leg: TargetUse) -> TargetMatches:
            if leg in tally.target_uses or not leg.is_own or leg.at in decided or leg.at not in copies:
                return tally.target_uses.get(leg, TargetMatches())
            return TargetMatches({True: int(copies[leg.at].messages.sum()), False: 0, None: 0})

        return asked

    @cached_property
    def sampled(self) -> list[tuple[str, int]]:
        """Return the classes that need an example message, with a label: `leg N` of the targets, or the outcome."""
        found = [("reaches nothing", number) for number in self.draft.lost[:SAMPLES_PER_TARGET]]
        found += [("refused", number) for number in self.draft.refused[:SAMPLES_PER_TARGET]]
        for place, (_, _, draft) in enumerate(self.target_uses, 1):
            found += [(f"leg {place}", number) for number in draft.matched_classes[:SAMPLES_PER_TARGET]]
        return found[:MAX_SAMPLES]

    def final_backlog(self, which: str) -> tuple[int, int]:
        """Return messages and bytes of all backlogs at the end of the window."""
        waiting = {ACTIVE: "waiting_recorded", DRAFT: "waiting_draft"}[which]
        of = [
            each.final_backlog(getattr(each, waiting), getattr(each, which))
            for each in self.targets
            if each.keeps_messages
        ]
        return sum(count for count, _ in of), sum(size for _, size in of)

    def copies(self, which: str) -> tuple[int, int]:
        """Return the number of stored copies, and their bytes."""
        of = [getattr(each, which) for each in self.targets if each.keeps_messages]
        return sum(int(each.messages.sum()) for each in of), sum(int(each.bytes.sum()) for each in of)


def series_by_name(table: pa.Table, column: str, buckets: TimeBuckets) -> dict[str, np.ndarray]:
    """Return the values of a column by destination, a number for each bucket."""
    found: dict[str, np.ndarray] = {}
    places = buckets.place(table["bucket"].to_numpy())
    rows: Iterable = zip(table["destination"].to_pylist(), places, table[column].to_pylist(), strict=True)
    for name, place, value in rows:
        if value:
            found.setdefault(name, np.zeros(buckets.count, type(value)))[place] += value
    return found


def backlog_by_name(
    courses: Mapping[tuple[str, str], DepthSeries], begins: Sequence[int], slot: int, buckets: TimeBuckets
) -> dict[str, BacklogSeries]:
    """Sum up the backlog of each destination over all brokers; courses are by broker and destination.

    `begins`: when each slot of the courses begins, of so many seconds; buckets are as long, or several of them.
    """
    ends = [start + buckets.seconds for start in buckets.starts]
    last = np.clip([(end - begins[0]) // slot - 1 for end in ends], 0, len(begins) - 1)
    first = max(0, (buckets.first - begins[0]) // slot)
    found: dict[str, BacklogSeries] = {}
    for (_, name), course in courses.items():
        came = np.cumsum(course.enqueued)
        earlier = int(came[first - 1]) if first else 0
        before = course.depths[first - 1] if first else course.depths[0] - course.enqueued[0] + course.dequeued[0]
        depths, known = np.array(course.depths)[last], ~np.array(course.gaps)[last]
        each = BacklogSeries(max(0, before), depths, np.diff(came[last], prepend=earlier), known)
        found[name] = found[name] + each if name in found else each
    return found
