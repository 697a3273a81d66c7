"""Watch the disk of an embedded store, and stop accepting messages before it is full."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from brokerapp.store import StoreLimits
from brokerapp.store.server.disk import StoreDisk
from brokerapp.store.server.disk_space import DiskLevel, DiskSpace
from brokerapp.store.server.server_status import ServerStatus
from brokerapp.system.clock import now_ms

logger = logging.getLogger(__name__)

#: Seconds between two looks, and between two while space is scarce: a disk that takes 500 MB a second loses a tenth of
#: what must be free in the second.
CHECK_SECONDS, SCARCE_SECONDS = 0.2, 0.05
#: Milliseconds between two looks at the file's size while space is scarce.
SIZE_MS = 2_000
#: The percentage by which the file may grow before the server rewrites it (see store/embedded.py).
GROWTH_PERCENT = 100


class DiskWatch:
    """Updates `limits.disk`, and calls `changed` when its level changes.

    A rewrite of the append-only file needs space for all that the store holds, before it gives space back: the server
    may begin one only where there is enough, and is told to when that is what the disk is full of.
    """

    def __init__(self, disk: StoreDisk, limits: StoreLimits, server: ServerStatus, changed: Callable[[], None]) -> None:
        self._disk, self._limits, self._server, self._changed = disk, limits, server, changed
        #: As the server was told last; None: what it was told by the watch of a former run is not known here.
        self._may_rewrite: bool | None = None
        self._sized_ms = 0

    async def run(self) -> None:
        """Check the disk periodically until cancelled."""
        while True:
            await self.check()
            if self._limits.disk.is_scarce or not self._may_rewrite:
                await self._manage_rewrite(self._limits.disk)
            await asyncio.sleep(SCARCE_SECONDS if self._limits.disk.is_scarce else CHECK_SECONDS)

    async def check(self) -> None:
        """Check the disk once, and report a change of its level."""
        before = self._limits.disk
        try:
            committed = self._limits.committed_bytes
            wanted, self._limits.wanted_bytes = self._limits.wanted_bytes, 0
            found = await asyncio.to_thread(self._disk.measure, before, self._limits.needed_bytes, wanted)
            self._limits.disk, self._limits.committed_at_disk_check = found, committed
        except OSError as error:
            logger.debug("the disk of the store cannot be checked: %s", error)
            return
        if found.level is before.level:
            return
        if found.is_low:
            logger.warning("%s (%s)", found.shortage, self._disk.folder)
        else:
            logger.info("the disk of the store has space again: messages are accepted (%s)", self._disk.folder)
        self._changed()

    async def _manage_rewrite(self, disk: DiskSpace) -> None:
        if now_ms() - self._sized_ms < SIZE_MS:
            return
        self._sized_ms = now_ms()
        size = await self._server.append_only_file_size()
        fits = size.held < disk.free - disk.limit // 16
        if fits is not self._may_rewrite or not fits:  # a server that was started again forgot that it may not
            await self._server.set_rewrite_percentage(GROWTH_PERCENT if fits else 0)
            self._may_rewrite = fits
        is_worth_it = disk.level is DiskLevel.LOW and size.file - size.held > disk.limit // 2
        if fits and is_worth_it and not size.is_rewritten:
            logger.warning("the append-only file takes %d bytes for %d: it is rewritten", size.file, size.held)
            await self._server.start_rewrite()
