"""Record the history and evaluate alert rules every few seconds, in one web process of all.

Whoever holds the lease in the store does it; when that process ends, another takes over within LEASE_MS. It runs on
the gateway's loop and reads the mirror's picture; what touches the database runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable

from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.time_series import (
    COARSE,
    FINE,
    BrokerPoint,
    DestinationPoint,
    HistoryAdmission,
    HistorySampler,
    Resolution,
    merge_broker_points,
    merge_destination_points,
    pack_point,
)
from brokerapp.store.history_rings import BROKER_RING
from console.broker.broker_sample import broker_point
from console.broker.gateway import Gateway, gateway
from console.broker.mirror import BrokerMirror, mirror
from console.broker.singleton import ProcessSingleton
from console.broker.snapshot import BrokerSnapshot
from console.metrics.charts_history import MAX_DESTINATIONS

logger = logging.getLogger(__name__)

#: Name of the lease, and milliseconds until another process may take it from one that went silent.
LEASE = "watch"
LEASE_MS = 3 * FINE.step * 1000
#: Seconds a destination must have stood still before another may have its place: no less than what alert rules count
#: over (LATELY_SECONDS), which take what lost its place for one of which nothing is to be counted.
STILL = 600.0

Evaluate = Callable[[BrokerSnapshot, float], None]


class MetricsSampler:
    """One process's candidate for the watch."""

    def __init__(self, door: Gateway, source: BrokerMirror, judge: Evaluate | None = None) -> None:
        self._door, self._mirror, self._judge = door, source, judge
        self.holder = uuid.uuid4().hex
        self.on_duty = False
        self._restart()
        self._task = door.run(self._start())

    def close(self) -> None:
        """Leave the watch to another process."""
        self._door.loop.call_soon_threadsafe(self._task.cancel)
        if self.on_duty:
            try:
                self._door.run(self._door.admin.rings.release_lease(LEASE, self.holder))
            except BrokerError as error:
                logger.debug("the lease runs out by itself: %s", error)

    async def _start(self) -> asyncio.Task:
        return asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self.tick(time.time())
            except BrokerError as error:
                self.on_duty = False
                logger.debug("no watch: %s", error)
            except Exception:  # top of a loop that must go on: the next round may do
                logger.exception("a round of the watch failed")
            await asyncio.sleep(FINE.step - time.time() % FINE.step)

    async def tick(self, now: float) -> None:
        """Record a sample and evaluate alert rules, if this process holds the lease."""
        was_on_duty = self.on_duty
        self.on_duty = await self._door.admin.acquire_lease(LEASE, self.holder, LEASE_MS)
        if not self.on_duty:
            return
        picture = self._mirror.picture
        if not was_on_duty:
            logger.info("this process keeps the history and judges alerts")
            self._restart()
        try:
            await self._record(picture, int(now) // FINE.step * FINE.step)
        except StoreUnavailable as error:  # a full store takes no history, and somebody must say so
            logger.warning("the history misses a step: %s", error)
        if self._judge is not None:
            await asyncio.to_thread(self._judge, picture, now)

    # -- the history

    def _restart(self) -> None:
        self._sampler, self._last = HistorySampler(), 0
        self._minute: dict[Destination, list[DestinationPoint]] = {}
        self._minute_of_whole: list[BrokerPoint] = []
        self._admission: HistoryAdmission | None = None

    async def _record(self, picture: BrokerSnapshot, at: int) -> None:
        if picture.trouble or not picture.nodes:
            self._last = 0
            return
        if at - self._last > 2 * FINE.step:  # nobody looked for a while: what came meanwhile is of no single step
            self._sampler = HistorySampler()
        self._last = at
        points = self._sampler.points(at, {**picture.stats, **picture.subscriptions})
        if not picture.stats:  # a node that has just begun has told nothing yet: a gap, not zero
            return
        whole = broker_point(picture, at, points)
        for destination, point in points.items():
            self._minute.setdefault(destination, []).append(point)
        self._minute_of_whole.append(whole)
        await self._write(FINE, at, points, whole)
        if at % COARSE.step == 0:
            minute = {destination: merge_destination_points(each, at) for destination, each in self._minute.items()}
            whole = merge_broker_points(self._minute_of_whole, at)
            self._minute, self._minute_of_whole = {}, []
            await self._write(COARSE, at, minute, whole)

    async def _write(
        self, resolution: Resolution, at: int, points: dict[Destination, DestinationPoint], whole: BrokerPoint
    ) -> None:
        rings = self._door.admin.rings
        if self._admission is None:
            self._admission = HistoryAdmission(await rings.last_points(), MAX_DESTINATIONS, STILL)
        by_name = {str(destination): point for destination, point in points.items()}
        names, out = self._admission.admit(by_name, at)
        out += self._admission.expire(at - COARSE.span)
        if out:
            await rings.remove(out, (FINE, COARSE))
        rows = {BROKER_RING: pack_point(whole), **{name: pack_point(by_name[name]) for name in names}}
        await rings.append(resolution, rows, at)


def _begin() -> MetricsSampler:
    from console.alerts.evaluation import evaluate  # needs the database, which a test of the history may do without

    return MetricsSampler(gateway(), mirror(), evaluate)


_watch: ProcessSingleton[MetricsSampler] = ProcessSingleton(_begin)


def sampler() -> MetricsSampler:
    """This process's candidate, started with the first call."""
    return _watch.get()


def close_sampler() -> None:
    """End this process's candidate, if it was started."""
    _watch.close()
