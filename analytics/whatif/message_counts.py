"""Count the messages and bytes that definitions send to each target, from the classes that Spark counted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from analytics.whatif.answer_encoding import AnswerEncoding
from analytics.whatif.conditions import Answer, ScriptedRouting
from analytics.whatif.predicted_routes import PredictedRoute, TargetUse, predict_route
from brokerapp.model.destination import Destination


@dataclass(frozen=True, slots=True)
class TimeBuckets:
    """Periods of equal length; times are in seconds since the epoch."""

    first: int
    seconds: int
    count: int

    def place(self, starts: np.ndarray) -> np.ndarray:
        """Return the indexes of the buckets that begin at these times."""
        return (starts - self.first) // self.seconds

    @property
    def starts(self) -> list[int]:
        """Return the time at which each bucket begins, in seconds since the epoch."""
        return [self.first + self.seconds * number for number in range(self.count)]


@dataclass(frozen=True)
class MessageClasses:
    """Messages of the window by class and bucket, as columns of equal length, and the key of each class."""

    keys: list[tuple[str, tuple[int, ...]]]  #: destination and words of the answers
    newest: np.ndarray  #: time of the last message of each class, microseconds since the epoch
    of_row: np.ndarray  #: the class of each row
    bucket: np.ndarray
    sent: np.ndarray
    bytes: np.ndarray
    bare: int  #: messages whose properties are needed and were not recorded

    @staticmethod
    def of(flows: pa.Table, counted: pa.Table | None, coding: AnswerEncoding, buckets: TimeBuckets) -> MessageClasses:
        """Build the classes from Spark's counts; `counted` has the destinations with conditions."""
        asking = set(coding.destinations)
        plain = flows.filter(pa.array([each not in asking for each in flows["destination"].to_pylist()], pa.bool_()))
        plain = plain.filter(np.asarray(plain["sent"]) > 0)
        words = [np.zeros(plain.num_rows, np.int64) for _ in coding.words]
        rows = [(plain, words)]
        if counted is not None:
            rows.append((counted, [_integers(counted[name]) for name in coding.words]))
        names = pa.chunked_array([pa.concat_arrays(table["destination"].chunks) for table, _ in rows if table.num_rows])
        coded = names.combine_chunks().dictionary_encode()
        columns = [
            coded.indices.to_numpy(),
            *(np.concatenate(each) for each in zip(*(each for _, each in rows), strict=True)),
        ]
        different, of_row = np.unique(np.stack(columns), axis=1, return_inverse=True)

        def all_of(name: str) -> np.ndarray:
            return np.concatenate([_integers(table[name]) for table, _ in rows])

        newest = np.zeros(different.shape[1], np.int64)
        np.maximum.at(newest, of_row, all_of("newest"))
        return MessageClasses(
            keys=[(coded.dictionary[int(first)].as_py(), tuple(map(int, rest))) for first, *rest in different.T],
            newest=newest,
            of_row=of_row,
            bucket=buckets.place(all_of("bucket")),
            sent=all_of("sent"),
            bytes=all_of("bytes"),
            bare=0 if counted is None else int(_integers(counted["bare"]).sum()),
        )


@dataclass(slots=True)
class CopySeries:
    """Number and bytes of the copies that reach a target in each bucket."""

    messages: np.ndarray
    bytes: np.ndarray


@dataclass(slots=True)
class TargetMatches:
    """Messages for which a target was considered, by the answer of its selector; and the classes that it takes.

    The classes are ordered by size, the largest first.
    """

    counts: dict[Answer, int] = field(default_factory=lambda: {True: 0, False: 0, None: 0})
    matched_classes: list[int] = field(default_factory=list)


@dataclass
class WhatIfTally:
    """Routes and copies of the messages of the window under one set of definitions."""

    classes: MessageClasses
    routes: list[PredictedRoute]  #: the route of each class
    buckets: int
    without_subscribers: frozenset[str] = frozenset()  #: topics without subscribers, in native form

    @staticmethod
    def of(
        routing: ScriptedRouting,
        classes: MessageClasses,
        coding: AnswerEncoding,
        buckets: TimeBuckets,
        has_subscribers: Callable[[Destination], bool],
    ) -> WhatIfTally:
        """Route one message of each class. `has_subscribers` is asked for topics. Raises TooManyConditions."""
        ways = [
            predict_route(routing, Destination.parse(destination), coding.answers(destination, words))
            for destination, words in classes.keys
        ]
        topics = {name for way in set(ways) for name, _ in way.targets if not Destination.parse(name).is_queue}
        unheard = frozenset(name for name in topics if not has_subscribers(Destination.parse(name)))
        return WhatIfTally(classes, ways, buckets.count, unheard)

    @cached_property
    def by_route(self) -> dict[PredictedRoute, CopySeries]:
        """Return the messages of each route, over all classes that have it."""
        different = {way: number for number, way in enumerate(dict.fromkeys(self.routes))}
        of_class = np.array([different[way] for way in self.routes], np.int64)
        cell = of_class[self.classes.of_row] * self.buckets + self.classes.bucket
        shape = (len(different), self.buckets)
        sums = [
            np.bincount(cell, weights=values, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)
            for values in (self.classes.sent, self.classes.bytes)
        ]
        return {way: CopySeries(sums[0][number], sums[1][number]) for way, number in different.items()}

    @cached_property
    def of_class(self) -> np.ndarray:
        """Return the number of messages of each class."""
        return np.bincount(self.classes.of_row, weights=self.classes.sent, minlength=len(self.routes)).astype(np.int64)

    def targets(self, sharing: dict[str, list[str]]) -> dict[str, CopySeries]:
        """Return the copies by target, without topics that have no subscribers.

        Queues that share the messages of an address get equal parts.
        """
        found: dict[str, CopySeries] = {}
        shared: dict[str, CopySeries] = {}
        for way, series in self.by_route.items():
            for names, sums in ((way.targets, found), (way.shared, shared)):
                for name, copies in names:
                    if name in self.without_subscribers:
                        continue
                    _add(sums, name, series.messages * copies, series.bytes * copies)
        for address, series in shared.items():
            queues = sharing[address]
            for name, part in zip(queues, equal_shares(series, len(queues)), strict=True):
                _add(found, name, part.messages, part.bytes)
        return found

    @cached_property
    def target_uses(self) -> dict[TargetUse, TargetMatches]:
        """Return the targets that were considered, with the answers of their selectors."""
        found: dict[TargetUse, TargetMatches] = {}
        order = np.argsort(-self.of_class, kind="stable")
        for number in map(int, order):
            for leg, outcome in self.routes[number].target_uses:
                asked = found.setdefault(leg, TargetMatches())
                asked.counts[outcome] += int(self.of_class[number])
                if outcome is True:
                    asked.matched_classes.append(number)
        return found

    def sum(self, ways: Iterable[PredictedRoute]) -> tuple[int, int]:
        """Return the number of messages with one of these routes, and their bytes, each message counted once."""
        found = [self.by_route[way] for way in ways]
        return sum(int(each.messages.sum()) for each in found), sum(int(each.bytes.sum()) for each in found)

    @property
    def stored(self) -> tuple[int, int]:
        """Return the number of messages of which a copy is stored, and their bytes."""
        return self.sum(way for way in self.by_route if way.is_stored)

    @property
    def lost(self) -> list[int]:
        """Return the classes whose messages reach nothing, the largest first."""
        return self._classes(lambda way: way.is_lost(self.without_subscribers) and not way.problem)

    @property
    def refused(self) -> list[int]:
        """Return the classes whose messages the broker would refuse."""
        return self._classes(lambda way: bool(way.problem))

    def count(self, classes: Sequence[int]) -> int:
        """Return the number of messages of these classes."""
        return int(self.of_class[list(classes)].sum()) if classes else 0

    def _classes(self, wanted: object) -> list[int]:
        found = [number for number, way in enumerate(self.routes) if wanted(way)]
        return sorted(found, key=lambda number: -self.of_class[number])


def _add(sums: dict[str, CopySeries], name: str, messages: np.ndarray, bytes: np.ndarray) -> None:
    if name in sums:
        sums[name].messages += messages
        sums[name].bytes += bytes
    else:
        sums[name] = CopySeries(messages.copy(), bytes.copy())


def equal_shares(series: CopySeries, count: int) -> Iterable[CopySeries]:
    """Divide copies into equal parts, which differ by at most one message over the whole window."""
    before = np.concatenate(([0], np.cumsum(series.messages)))
    for turn in range(count):
        got = (before + count - 1 - turn) // count
        messages = np.diff(got)
        size = np.divide(series.bytes, series.messages, out=np.zeros(len(messages)), where=series.messages > 0)
        yield CopySeries(messages, np.rint(size * messages).astype(np.int64))


def _integers(column: pa.ChunkedArray) -> np.ndarray:
    return column.to_numpy().astype(np.int64)
