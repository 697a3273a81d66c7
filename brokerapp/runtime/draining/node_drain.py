"""Drain a node when its record says so, and let it serve again when that ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from brokerapp.runtime.draining.client_release import ClientRelease

logger = logging.getLogger(__name__)

#: Seconds other nodes have to take over what the node owned. Clients are let go then in any case: they are served
#: through other nodes as soon as these can.
HANDOVER_SECONDS = 10.0
LOOK_SECONDS = 0.02


class DrainState(StrEnum):
    """How far a node is. The values are those in its status."""

    SERVING = ""
    DRAINING = "draining"
    DRAINED = "drained"


class ClientEntrance(Protocol):
    """Opens and closes the listeners of a node."""

    def pause(self) -> None: ...

    async def resume(self) -> None: ...


class NodeDrain:
    """Drains a node while `is_requested`.

    `is_handed_over`: whether other nodes dispatch from all that the node owned. `set_dispatching` stops dispatch to the
    node's own clients, or lets it go on.
    """

    def __init__(
        self,
        *,
        is_requested: Callable[[], bool],
        is_handed_over: Callable[[], bool],
        entrance: ClientEntrance,
        release: ClientRelease,
        set_dispatching: Callable[[bool], None],
        report: Callable[[], Awaitable[None]],
    ) -> None:
        self._is_requested, self._is_handed_over = is_requested, is_handed_over
        self._entrance, self._release = entrance, release
        self._set_dispatching, self._report = set_dispatching, report
        self.state = DrainState.SERVING
        self.released_count = 0  #: clients that were let go
        self._changed = asyncio.Event()
        self._finished = asyncio.Event()

    def on_members_followed(self) -> None:
        """Look again whether the node is to be drained: its logs have followed the members."""
        self._changed.set()

    def status(self) -> Mapping[str, Any]:
        """Return what the node's status says of this; nothing while it serves."""
        return {"draining": str(self.state), "released": self.released_count} if self.state else {}

    async def wait(self) -> None:
        """Wait until the node is drained, or is to be no more, as it is the only one left."""
        await self._finished.wait()

    async def run(self) -> None:
        """Follow what is requested until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._is_requested() and self.state is DrainState.SERVING:
                await self._drain()
            elif not self._is_requested() and self.state is not DrainState.SERVING:
                await self._serve()

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.state = DrainState.DRAINING
        self._entrance.pause()
        while not self._is_handed_over():
            if loop.time() > began + HANDOVER_SECONDS:
                logger.warning("other nodes have not taken over all queues within %g s", HANDOVER_SECONDS)
                break
            await asyncio.sleep(LOOK_SECONDS)
        if not self._is_requested():
            await self._serve()
            self._finished.set()
            return
        handed_over = loop.time()
        self._set_dispatching(False)
        self.released_count = await self._release.run()
        self.state = DrainState.DRAINED
        logger.info(
            "the node is drained: queues were handed over in %.2f s, %d clients were let go in %.2f s",
            handed_over - began, self.released_count, loop.time() - handed_over,
        )  # fmt: skip
        self._finished.set()
        await self._report()

    async def _serve(self) -> None:
        self._finished.clear()
        self._set_dispatching(True)
        await self._entrance.resume()
        self.state = DrainState.SERVING
        logger.info("the drain ended: the node serves clients again")
        await self._report()
