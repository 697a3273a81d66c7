"""Check, compact and trim an archive, a step at a time.

The archiver calls this between its flushes, so that one process writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.compaction import compact, complete_hours, delete_replaced, next_merge_group
from analytics.archive.integrity import Integrity
from analytics.archive.read_locks import exclusive_lock
from analytics.archive.retention import expired_hours, hours_of, remove

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits on the age and the size of an archive; 0: none."""

    days: float = 0
    bytes: int = 0


class Housekeeping:
    """Checks, compacts and cleans the archive of one broker."""

    def __init__(
        self, archive: BrokerArchive, bounds: ArchiveLimits, indexed: Sequence[str], at: Callable[[str], None]
    ) -> None:
        self._archive, self._bounds, self._indexed, self._on_step = archive, bounds, indexed, at
        self._integrity = Integrity(archive)
        self._done: set[tuple[str, int]] = set()  # hours in which nothing is left to do, as they were changed last

    def step(self, now_us: int) -> bool:
        """Do the next piece of work, which takes seconds at most; return whether there was any."""
        delete_replaced(self._archive.work, now_us / 1e6)
        more = self._integrity.step(now_us / 1e6)
        return more or self._compact(now_us) or self._remove(now_us)

    def _compact(self, now_us: int) -> bool:
        for hour in complete_hours(self._archive.folder, now_us):
            state = (str(hour), hour.stat().st_mtime_ns)
            if state in self._done:
                continue
            if not (group := next_merge_group(hour)):
                self._done.add(state)
                continue
            with exclusive_lock(self._archive.folder) as free:
                if free:
                    compact(hour, group, self._archive.work, self._indexed, self._on_step, self._archive.pending)
            return free
        return False

    def _remove(self, now_us: int) -> bool:
        gone = expired_hours(hours_of(self._archive.folder), now_us, self._bounds.days, self._bounds.bytes)
        if not gone:
            return False
        with exclusive_lock(self._archive.folder) as free:
            if free:
                log.info("%s is removed: past the archive's bounds", gone[0].folder)
                remove(gone[0].folder, self._archive.work)
                self._on_step("removed")
        return free
