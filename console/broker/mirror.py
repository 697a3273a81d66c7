"""Keep this process's snapshot of the broker current, with one reader for all sockets.

It runs on the gateway's loop. Others read `picture`, a reference that is swapped whole, from any thread, or ask to be
called when it changed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from console.broker.gateway import PATIENCE, Gateway, gateway
from console.broker.singleton import ProcessSingleton
from console.broker.snapshot import BrokerSnapshot, apply_changes, apply_tick, initial_snapshot, mark_stale

logger = logging.getLogger(__name__)

#: Seconds between two points of the past, and between two looks at the nodes.
TICK = 1.0
#: Seconds until the broker is asked again after it did not answer.
RETRY = 1.0


class BrokerMirror:
    """Follows the broker through one gateway."""

    def __init__(self, door: Gateway) -> None:
        self.picture = BrokerSnapshot()
        self._door = door
        self._listeners: set[Callable[[], None]] = set()
        self._first_answer = threading.Event()
        self._tasks = door.run(self._start())

    def current(self) -> BrokerSnapshot:
        """Return the picture; right after the start of the process, waits a moment for the first one."""
        self._first_answer.wait(timeout=2 * TICK)
        return self.picture

    def refresh_destination(self, destination: Destination) -> BrokerSnapshot:
        """Ask the broker for one destination, and return the snapshot with the answer. Raises BrokerError.

        The answer may be newer than what the nodes have published.
        """
        self._door.run(self._refresh_destination(destination))
        return self.picture

    def wait_until(self, condition: Callable[[BrokerSnapshot], bool], patience: float = 2.5) -> None:
        """Wait until the snapshot shows a change, or for `patience` seconds: nodes report once a second."""
        deadline = time.monotonic() + patience
        while not condition(self.picture) and time.monotonic() < deadline:
            time.sleep(TICK / 20)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Register a listener for changes, called on the gateway's loop; return a function that removes it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def close(self) -> None:
        """Stop following the broker."""
        for task in self._tasks:
            self._door.loop.call_soon_threadsafe(task.cancel)

    async def _start(self) -> list[asyncio.Task]:
        return [asyncio.create_task(self._follow()), asyncio.create_task(self._tick())]

    async def _follow(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._read_all(), PATIENCE)
                async for _ in self._door.admin.watch():
                    version, changed, deleted = await self._door.admin.stats(since=self.picture.version)
                    self._show(apply_changes(self.picture, time.time(), version, changed, deleted))
            except (BrokerError, TimeoutError) as error:
                self._lose(error)
            await asyncio.sleep(RETRY)

    async def _tick(self) -> None:
        while True:
            started = time.time()
            try:
                nodes = await asyncio.wait_for(self._door.admin.nodes(), PATIENCE)
                routing = await asyncio.wait_for(self._door.admin.definitions_version(), PATIENCE)
                self._show(apply_tick(self.picture, time.time(), nodes, routing))
                if self.picture.version or not self.picture.trouble:
                    self._first_answer.set()
            except (BrokerError, TimeoutError) as error:
                self._lose(error)
            await asyncio.sleep(max(0.0, started + TICK - time.time()))

    async def _read_all(self) -> None:
        version, everything, _ = await self._door.admin.stats()
        self._show(initial_snapshot(time.time(), version, everything, self.picture))

    async def _refresh_destination(self, destination: Destination) -> None:
        """Add it as it is now; again when a snapshot came meanwhile, as that may say that it was deleted."""
        version = -1
        while destination not in self.picture.stats and version != self.picture.version:
            version = self.picture.version
            found = await self._door.admin.stats_of(destination)
            if found is None:
                return
            if version == self.picture.version:
                self._show(apply_changes(self.picture, time.time(), version, [found], []))

    def _show(self, picture: BrokerSnapshot) -> None:
        if self.picture.trouble and self.picture.at and not picture.trouble:
            logger.info("the broker responds again")
        self.picture = picture
        for listener in tuple(self._listeners):
            listener()

    def _lose(self, error: Exception) -> None:
        if not self.picture.trouble:
            logger.warning("the broker does not respond: %s", error)
        self._first_answer.set()
        self._show(mark_stale(self.picture, str(error) or f"Broker did not respond within {PATIENCE:g} s."))


_mirror: ProcessSingleton[BrokerMirror] = ProcessSingleton(lambda: BrokerMirror(gateway()))


def mirror() -> BrokerMirror:
    """This process's mirror, started with the first call."""
    return _mirror.get()


def close_mirror() -> None:
    """Stop this process's mirror, if it was started."""
    _mirror.close()
