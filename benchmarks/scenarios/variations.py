"""Variations: the same orders told otherwise. What a broker does for a message must not depend on it."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.scenarios.messages import Headers, Messages, Orders
from benchmarks.scenarios.routes import Queues
from benchmarks.scenarios.rows import BLOCK, ORDERS, Scenario

#: Queues among which the messages are divided.
QUEUES = 3

#: All other scenarios here differ from this one in what they are named after.
BASE = Scenario(
    "base",
    f"orders to {QUEUES} queues, one in each write",
    Queues(QUEUES, in_succession=BLOCK),
    {"sluice": 30_000},
)


@dataclass(frozen=True)
class Varied:
    """Messages of a kind whose headers have another order in each, and of which some have more, some fewer."""

    kind: Messages = ORDERS
    reorders: bool = False
    adds: bool = False
    leaves_out: bool = False

    def headers(self, number: int) -> Headers:
        found = list(self.kind.headers(number).items())
        if self.leaves_out:
            del found[number % len(found)]
        if self.adds and number % 3 == 0:
            found.insert(number % (len(found) + 1), ("retry", number % 5))
        if self.reorders:
            random.Random(number).shuffle(found)
        return dict(found)

    def body(self, number: int) -> bytes:
        return self.kind.body(number)


@dataclass(frozen=True)
class MixedSizes(Orders):
    """Nine short bodies of ten and a long one, which together have as many bytes as those of orders."""

    @cached_property
    def _kinds(self) -> tuple[Orders, Orders]:
        return Orders(200, 700), Orders(8_100, 10_800)

    def body(self, number: int) -> bytes:
        return self._kinds[number % 10 == 0].body(number)


_ALL = Varied(MixedSizes(), reorders=True, adds=True, leaves_out=True)

VARIATIONS = (
    replace(BASE, name="order", title="headers in another order in each message", kind=Varied(reorders=True)),
    replace(BASE, name="added", title="a header more in every third message", kind=Varied(adds=True)),
    replace(BASE, name="left-out", title="a header fewer, another one in each message", kind=Varied(leaves_out=True)),
    replace(BASE, name="sizes", title="short bodies and long ones mixed", kind=MixedSizes()),
    replace(BASE, name="destinations", title="another queue in each message", route=Queues(QUEUES)),
    replace(BASE, name="splits", title="writes that end anywhere in a frame", splits=True),
    replace(BASE, name="all", title="all of these together", kind=_ALL, route=Queues(QUEUES), splits=True),
)
