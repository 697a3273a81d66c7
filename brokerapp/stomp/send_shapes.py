r"""SendShape: reads heads of SENDs by the sequence of their header names, faster than send_heads.py. Pure.

Messages of one application differ in the values of their headers, seldom in the names. A shape is one expression,
compiled for a sequence of names, that finds the values:

    SEND\ndestination:(...)\n(order:...\ncustomer:...\n)receipt:(...)\n\n

Headers that the broker interprets have a group each. Properties of the message that follow each other are one group,
because they are stored as they came.

To compile a shape takes as long as it saves with a few hundred heads. So that is done when its names came so often:
whatever a client sends, shapes at most double what reading without them would cost.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import Generic, TypeVar

from brokerapp.stomp.send_heads import DECIDING, DEPENDENT, INTERPRETED, VARYING, SendHead, canonical_lines

#: Heads read without a shape of which one is looked at more closely, and how many of these must have the same names:
#: 160 heads take some 0.3 ms longer without the shape, as long as it takes to compile.
SAMPLED_ONE_IN = 16
SAMPLES_TO_COMPILE = 10
#: Shapes, and sequences of names that may become shapes, remembered for all connections together.
MAX_SHAPES = MAX_CANDIDATES = 256
#: The most headers of a shape, and bytes of their names: its expression takes some ten times as many.
MAX_SHAPE_HEADERS = 64
MAX_NAME_BYTES = 1024
#: A header line whose name needs no second look.
_NAME = re.compile(rb"(?:^|\n)([^:\n\r\0\\]+):")
_VALUE = rb"[^\n\r\0]*+"
#: A group that never takes part: the value of headers that a shape does not have.
_NEVER = rb"((?!))?"

Names = tuple[bytes, ...]
T = TypeVar("T")


class SendShape:
    """The names of a SEND's headers, in order, and where their values are among the groups of `match`."""

    __slots__ = ("_length", "_like", "_property_count", "_receipt", "_segments", "_varying", "match")

    def __init__(self, names: tuple[str, ...]) -> None:
        pattern, groups = b"SEND\n", list[str]()  # what each group is: the header of a value, or "" for header lines
        for is_property, run in groupby(names, _is_property):
            if is_property:
                groups.append("")
                pattern += b"(%b)" % b"".join(b"%b:%b\n" % (re.escape(name.encode()), _VALUE) for name in run)
                continue
            for name in run:
                groups.append(name)
                pattern += b"%b:(%b)\n" % (re.escape(name.encode()), _VALUE)
        self.match = re.compile(pattern + b"\n" + _NEVER).match

        def place(name: str) -> int:
            return groups.index(name) if name in groups else len(groups)

        self._like = itemgetter(*map(place, DECIDING))
        self._varying = None if set(VARYING).isdisjoint(names) else itemgetter(*map(place, VARYING))
        self._receipt, self._length = place("receipt"), place("content-length")
        self._segments = [at for at, name in enumerate(groups) if not name]
        self._property_count = sum(map(_is_property, names))

    def read(self, groups: tuple[bytes, ...]) -> SendHead:
        """Return what a head says of which `match` found these groups."""
        segments = self._segments
        lines = groups[segments[0]] if len(segments) == 1 else b"".join([groups[segment] for segment in segments])
        varying = None if self._varying is None else self._varying(groups)
        text = canonical_lines(lines, self._property_count)
        return self._like(groups), text, groups[self._receipt], groups[self._length], varying


def _is_property(name: str) -> bool:
    return name not in INTERPRETED


class _Recent(dict[Names, T], Generic[T]):
    """A mapping that forgets what was not asked for longest, when there are too many."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def renew(self, names: Names, value: T) -> None:
        self.pop(names, None)
        self[names] = value
        if len(self) > self._limit:
            del self[next(iter(self))]


class ShapeCache:
    """The shapes of all connections, and the sequences of names that may become shapes."""

    def __init__(self) -> None:
        self._shapes: _Recent[SendShape | None] = _Recent(MAX_SHAPES)  # None: there can be none
        self._samples: _Recent[int] = _Recent(MAX_CANDIDATES)

    def sample(self, lines: bytes) -> SendShape | None:
        """Return the shape of these header lines, whose names were seen once more, if there is one by now."""
        names = tuple(_NAME.findall(lines))
        if names in self._shapes:
            shape = self._shapes[names]
        elif (seen := self._samples.get(names, 0) + 1) < SAMPLES_TO_COMPILE:
            self._samples.renew(names, seen)
            return None
        else:
            self._samples.pop(names, None)
            shape = _compiled(names)
        self._shapes.renew(names, shape)
        return shape


def _compiled(names: Names) -> SendShape | None:
    texts = tuple([name.decode() for name in names])
    if len(texts) > MAX_SHAPE_HEADERS or sum(map(len, names)) > MAX_NAME_BYTES or not DEPENDENT.isdisjoint(texts):
        return None
    return SendShape(texts)


#: What all connections of the process use.
SHAPES = ShapeCache()
