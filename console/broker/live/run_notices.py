"""Notices between processes: a run of an analysis moved on. One reader a process passes them to its sockets.

Sockets have no channel of their own, so that they work, and can say so, while the store is away. A lost notice costs a
few seconds only: sockets look at runs by themselves now and then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from channels.layers import get_channel_layer

from console.analyses.run_service import GROUP
from console.broker.gateway import Gateway, gateway
from console.broker.singleton import ProcessSingleton

logger = logging.getLogger(__name__)

#: Seconds until the channel layer is asked again after it failed.
RETRY = 2.0
#: Seconds that ending may take.
CLEANING = 2.0


class RunNotices:
    """Listens to the group of notices through the channel layer, on the gateway's loop."""

    def __init__(self, door: Gateway) -> None:
        self._door = door
        self._listeners: set[Callable[[str], None]] = set()
        self._task = door.run(self._start())

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Register a listener for notices; return a function that removes it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def close(self) -> None:
        """Stop listening. What it leaves the channel layer is cleaned up then, unless that takes too long."""
        self._door.run(self._stop())

    async def _start(self) -> asyncio.Task:
        return asyncio.create_task(self._read())

    async def _stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CLEANING)

    async def _read(self) -> None:
        while True:
            try:
                layer = get_channel_layer()
                channel = await layer.new_channel()
                await layer.group_add(GROUP, channel)
                while True:
                    notice = await layer.receive(channel)
                    for listener in tuple(self._listeners):
                        listener(notice["run"])
            except Exception as error:  # top of a reader's loop: the layer's driver has errors of its own
                logger.debug("no notices of runs: %s", error)
            await asyncio.sleep(RETRY)


_notices: ProcessSingleton[RunNotices] = ProcessSingleton(lambda: RunNotices(gateway()))


def notices() -> RunNotices:
    """This process's reader, started with the first call."""
    return _notices.get()


def close_notices() -> None:
    """Stop this process's reader, if it was started."""
    _notices.close()
