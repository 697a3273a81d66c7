"""Run a node in a process with other tasks, such as the console, and restart it when it may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from brokerapp.errors import BrokerError
from brokerapp.nodes.membership.restart_backoff import RestartBackoff
from brokerapp.runtime.node import Node

logger = logging.getLogger(__name__)


class HostedNode:
    """Runs a node within another process and restarts it after failures. `make` creates a node that is not started."""

    def __init__(self, make: Callable[[], Node]) -> None:
        self._make, self._rejoining = make, RestartBackoff()
        self._watching: asyncio.Task[None] | None = None
        self.node: Node

    @property
    def addresses(self) -> list[str]:
        """Return the addresses it listens on now."""
        return self.node.addresses

    async def start(self) -> None:
        """Start the node; raises what keeps the first run from starting."""
        self.node = self._make()
        try:
            await self.node.start()
        except BaseException:
            await self.node.abandon()
            raise
        self._watching = asyncio.create_task(self._watch(), name="hosted node")

    async def stop(self) -> None:
        """Stop watching and stop the node cleanly."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        await self.node.stop()

    async def _watch(self) -> None:
        """Restart the node whenever a run ends, until that makes no sense any more."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.wait({self.node.failed})
            error = self.node.failed.exception()
            while error is not None:
                expelled = await self.node.was_expelled()
                pause = self._rejoining.delay(error, expelled, loop.time() - began)
                if pause is None:
                    logger.error("the broker node does not start again: %s", error)
                    return
                logger.warning("the broker node starts again in %g s", pause)
                await self.node.abandon()
                await asyncio.sleep(pause)
                began, self.node = loop.time(), self._make()
                error = await _problem(self.node.start())


async def _problem(start: Awaitable[None]) -> BaseException | None:
    """Why a node does not start; None: it did."""
    try:
        await start
    except (BrokerError, OSError) as error:
        return error
    return None
