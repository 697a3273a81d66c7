"""Browses messages without consuming them, scheduled ones included."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from brokerapp.admin.client_base import AdminClientBase
from brokerapp.engine.policy.broker_headers import (
    FAILED_AT,
    ORIGIN,
    RESUBMITTED_TIME,
    broker_headers,
    with_broker_headers,
)
from brokerapp.engine.scheduling.scheduled_job import ScheduledJob
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage, BrowsePage, MatchCount, ScheduledMessage
from brokerapp.selectors import SelectorView, compile_selector
from brokerapp.store import StoredJob, StoredLogEntry

#: A moment after all others, milliseconds since the epoch.
END_OF_TIME_MS = 10**15
#: Messages looked at in one call of the store while browsing.
BROWSE_PAGE = 500


class BrowsingAdmin(AdminClientBase):
    """Browses and counts messages."""

    async def browse(
        self, destination: Destination, after: int = 0, limit: int = 50, selector: str | None = None,
        scan: int = 10_000, seconds: float = math.inf,
    ) -> BrowsePage:  # fmt: skip
        """Return messages of a queue or subscription with seq > after, without consuming them.

        At most `scan` are looked at in one call, and no more pages of the store begun after so many `seconds`.

        Raises SelectorSyntaxError, DestinationNotFound.
        """
        read = partial(self._store.entries.read, await self._log(destination))
        return await _scan(read, destination, after, limit, selector, scan, seconds)

    async def browse_back(
        self, destination: Destination, before: int = END_OF_LOG, limit: int = 50, selector: str | None = None,
        scan: int = 10_000, seconds: float = math.inf,
    ) -> BrowsePage:  # fmt: skip
        """Return the last messages with seq < before, in order; continue with `before=next`. See `browse`."""
        read = partial(self._store.entries.read_back, await self._log(destination))
        page = await _scan(read, destination, before, limit, selector, scan, seconds)
        return replace(page, messages=page.messages[::-1])

    async def count(
        self, destination: Destination, after: int = 0, selector: str | None = None, scan: int = 10_000,
        seconds: float = math.inf,
    ) -> MatchCount:  # fmt: skip
        """Count the messages with seq > after that match, among at most `scan`, for at most so many `seconds`.

        Raises SelectorSyntaxError, DestinationNotFound.
        """
        if not after and not selector:
            return MatchCount(await self.depth(destination))
        return await self._counted(self.browse, destination, after, selector, scan, seconds)

    async def count_back(
        self, destination: Destination, before: int = END_OF_LOG, selector: str | None = None, scan: int = 10_000,
        seconds: float = math.inf,
    ) -> MatchCount:  # fmt: skip
        """Count like `count`, from `before` backwards."""
        return await self._counted(self.browse_back, destination, before, selector, scan, seconds)

    async def _counted(
        self, browse: Callable[..., Awaitable[BrowsePage]], destination: Destination, start: int,
        selector: str | None, scan: int, seconds: float,
    ) -> MatchCount:  # fmt: skip
        count, left, until = 0, scan, time.monotonic() + seconds
        while left > 0 and time.monotonic() < until:
            page = await browse(destination, start, BROWSE_PAGE, selector, min(BROWSE_PAGE, left))
            count, left = count + len(page.messages), left - page.scanned
            if page.next is None or not page.scanned:
                return MatchCount(count)
            start = page.next
        if not (await browse(destination, start, 1, None, 1)).messages:
            return MatchCount(count)
        looked_at = scan - left  # some of those may be gone by now
        of = max(await self.depth(destination), looked_at + 1)
        return MatchCount(count, is_whole=False, looked_at=looked_at, of=of)

    async def message(self, destination: Destination, seq: int) -> BrowsePage:
        """Return a page with the message of this number, empty if there is none."""
        log = await self._log(destination)
        page = await self._store.entries.read(log, seq - 1, 1)
        found = [to_browsed(entry, destination) for entry in page if entry.seq == seq]
        return BrowsePage(found, len(page), None)

    async def last(self, destination: Destination) -> int:
        """Return the number of the newest message; 0 without messages."""
        return await self._store.entries.newest_seq(await self._log(destination))

    async def depth(self, destination: Destination) -> int:
        """Return the number of stored messages."""
        log = await self._log(destination)
        return (await self._store.logs.depths([log]))[log]

    async def seq_at(self, destination: Destination, time_ms: int) -> int:
        """Return the number after which the messages begin that arrived at this time (ms since the epoch) or later.

        Messages are in the order in which they came, so that some thirty of a million need to be looked at.
        """
        log = await self._log(destination)
        low, high = 0, await self._store.entries.newest_seq(log)
        while low < high:
            middle = (low + high) // 2
            found = await self._store.entries.read(log, middle, 1)
            if not found or arrived_ms(found[0].message) >= time_ms:
                high = middle
            else:
                low = found[0].seq
        return low

    async def scheduled(
        self, start_ms: int = 0, end_ms: int = END_OF_TIME_MS, skip: int = 0, limit: int = 50
    ) -> tuple[int, list[ScheduledMessage]]:
        """Count scheduled messages, and return those due in a time range in order, without the first `skip`."""
        found = await self._store.schedules.read_jobs(start_ms, end_ms, skip, limit)
        return await self._store.schedules.job_count(), [_to_scheduled(each) for each in found]

    async def scheduled_job(self, job: str) -> ScheduledMessage | None:
        """Return the scheduled message with this job id, or None."""
        found = await self._store.schedules.read_job(job)
        return None if found is None else _to_scheduled(found)


async def _scan(
    read: Callable[[int, int], Awaitable[list[StoredLogEntry]]], destination: Destination, start: int, limit: int,
    selector: str | None, scan: int, seconds: float,
) -> BrowsePage:  # fmt: skip
    """Return up to `limit` matching messages in the order of reading; `next` is where to continue, None at the end."""
    wanted = compile_selector(selector) if selector else None
    found: list[BrowsedMessage] = []
    scanned, until, start = 0, time.monotonic() + seconds, min(start, END_OF_LOG)
    while scanned < scan and (not scanned or time.monotonic() < until):
        page = await read(start, min(BROWSE_PAGE if wanted else limit - len(found), scan - scanned))
        for entry in page:
            message = to_browsed(entry, destination)
            scanned, start = scanned + 1, entry.seq
            if wanted is None or wanted.matches(SelectorView(message.headers, message.body)):
                found.append(message)
                if len(found) == limit:
                    more = await read(start, 1)
                    return BrowsePage(found, scanned, start if more else None)
        if not page:
            return BrowsePage(found, scanned, None)
    return BrowsePage(found, scanned, start)


def arrived_ms(message: Message) -> int:
    """Return when a message arrived in its queue: when it failed, was resubmitted or was sent, by its headers."""
    said = broker_headers(message.headers)
    return int(said.get(FAILED_AT) or said.get(RESUBMITTED_TIME) or message.born_us // 1000)


def to_browsed(entry: StoredLogEntry, destination: Destination) -> BrowsedMessage:
    """Convert a stored entry to a browsed message. Pure."""
    message = entry.message
    came_from = message.headers.get(ORIGIN)
    changed: dict[str, str | None] = {"destination": entry.shown or destination.stomp}
    if entry.original:
        changed |= with_broker_headers(message.headers, {ORIGIN: entry.original})
    headers = {name: value for name, value in {**message.headers, **changed}.items() if value is not None}
    return BrowsedMessage(
        entry.seq, message.id, destination.stomp, headers.get(ORIGIN), headers, message.body,
        len(message.body), message.path, came_from,
    )  # fmt: skip


def _to_scheduled(stored: StoredJob) -> ScheduledMessage:
    job = ScheduledJob.load(stored.record)
    headers = {**job.message.headers, **job.schedule.headers()}
    return ScheduledMessage(stored.id, stored.due_ms, job.purpose, job.to, headers, len(job.message.body))
