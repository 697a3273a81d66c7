"""Sparklines of the rows that tabs show: read from the history once a step a process, whatever the number of tabs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.time_series import FINE, unpack_broker_points, unpack_destination_points
from brokerapp.store.history_rings import BROKER_RING
from console.broker.gateway import Gateway, gateway
from console.broker.snapshot import BrokerSnapshot
from console.metrics import charts_history

#: Destinations whose lines are remembered until the step is over.
MAX_REMEMBERED = 2_000


class SparklineCache:
    """Lines by destination, for the step in which they were read. Called on the gateway's loop."""

    def __init__(self, door: Gateway) -> None:
        self._door, self._step = door, 0
        self._lines: dict[Destination, str] = {}

    async def of(self, picture: BrokerSnapshot, destinations: Sequence[Destination]) -> dict[Destination, str]:
        """Return the line of each destination of these that exists."""
        now = time.time()
        if now // FINE.step != self._step or len(self._lines) > MAX_REMEMBERED:
            self._step, self._lines = now // FINE.step, {}
        missing = [each for each in destinations if each not in self._lines and each in picture.stats]
        if missing:
            whole, *kept = await self._door.admin.rings.read(FINE, [BROKER_RING, *map(str, missing)])
            looked = unpack_broker_points(whole)
            for destination, each in zip(missing, kept, strict=True):
                level = level_of(picture, destination)
                self._lines[destination] = charts_history.spark(
                    unpack_destination_points(each), looked, now, destination.kind, level
                )
        return {each: self._lines[each] for each in destinations if each in self._lines}


def level_of(picture: BrokerSnapshot, destination: Destination) -> float:
    """Where a line ends: the depth of a queue, what comes to a topic."""
    is_queue = destination.kind is DestinationKind.QUEUE
    return picture.stats[destination].QueueSize if is_queue else picture.rates(destination).enqueue


_sparks: SparklineCache | None = None


def read_sparklines(picture: BrokerSnapshot, destinations: Sequence[Destination]) -> dict[Destination, str]:
    """Read sparklines for a page."""
    return gateway().run(_of_process().of(picture, destinations))


async def read_sparklines_async(picture: BrokerSnapshot, destinations: Sequence[Destination]) -> dict[Destination, str]:
    """Read sparklines for a socket."""
    asked = asyncio.run_coroutine_threadsafe(_of_process().of(picture, destinations), gateway().loop)
    return await asyncio.wrap_future(asked)


def _of_process() -> SparklineCache:
    global _sparks
    if _sparks is None or _sparks._door is not gateway():
        _sparks = SparklineCache(gateway())
    return _sparks
