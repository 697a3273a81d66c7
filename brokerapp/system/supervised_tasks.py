"""Run a node's background tasks; each survives an unavailable store and unexpected errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from brokerapp.errors import Fenced, NodeIsolated, StoreUnavailable

logger = logging.getLogger(__name__)

#: Seconds until a task goes on that found the store away, and one that failed.
STORE_RETRY_SECONDS, FAILURE_RETRY_SECONDS = 0.25, 1.0
#: Seconds between two times that a task is asked to end.
CANCEL_SECONDS = 1.0


class SupervisedTasks:
    """Run the background tasks of one node; call `give_up` with the error that ends the node."""

    def __init__(self, give_up: Callable[[Exception], None]) -> None:
        self._give_up = give_up
        self._running: list[asyncio.Task[None]] = []

    def begin(self, name: str, work: Callable[[], Awaitable[None]], *, vital: bool = False) -> None:
        """Do this until the end, again where it ended with an error; a fault in what is `vital` ends the node."""
        self._running.append(asyncio.create_task(self._run_forever(name, work, vital=vital), name=name))

    async def _run_forever(self, name: str, work: Callable[[], Awaitable[None]], *, vital: bool) -> None:
        while True:
            try:
                await work()
            except (Fenced, NodeIsolated) as error:
                logger.error("%s", error)
                self._give_up(error)
                return
            except StoreUnavailable as error:
                logger.debug("%s: %s", name, error)
                await asyncio.sleep(STORE_RETRY_SECONDS)
            except Exception as error:
                logger.exception("%s failed", name)
                if vital:
                    self._give_up(error)
                    return
                await asyncio.sleep(FAILURE_RETRY_SECONDS)

    def cancel(self) -> None:
        """Cancel all tasks without waiting for them."""
        for task in self._running:
            task.cancel()

    async def end(self) -> None:
        """End all. A cancel that meets the end of one of the driver's reads gets lost: ask until they are done."""
        while running := [task for task in self._running if not task.done()]:
            self.cancel()
            await asyncio.wait(running, timeout=CANCEL_SECONDS)
