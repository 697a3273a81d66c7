"""Browsing: looking at messages without consuming them, those that wait until they are due included."""

from __future__ import annotations

import math
import time

from brokerapp.admin.door import Door
from brokerapp.destination import Destination
from brokerapp.engine.job import Job
from brokerapp.homeward import ORIGIN
from brokerapp.message import Message
from brokerapp.selectors import Seen, compile_selector
from brokerapp.snapshot import BrowsedMessage, BrowsePage, Tally, WaitingMessage
from brokerapp.store import StoredEntry, StoredJob

#: A moment after all others, milliseconds since the epoch.
END_OF_TIME_MS = 10**15
#: Messages looked at in one call of the store while browsing.
BROWSE_PAGE = 500


class Browsing(Door):
    """A part of BrokerAdmin."""

    async def browse(
        self, destination: Destination, after: int = 0, limit: int = 50, selector: str | None = None,
        scan: int = 10_000, seconds: float = math.inf,
    ) -> BrowsePage:  # fmt: skip
        """Messages of a queue or subscription with seq > after, without consuming them.

        At most `scan` are looked at in one call, and no more pages of the store begun after so many `seconds`.

        Raises SelectorSyntaxError, DestinationNotFound.
        """
        wanted = compile_selector(selector) if selector else None
        log = await self._log(destination)
        found: list[BrowsedMessage] = []
        scanned, until = 0, time.monotonic() + seconds
        while scanned < scan and (not scanned or time.monotonic() < until):
            page = await self._store.read(log, after, min(BROWSE_PAGE, scan - scanned))
            for entry in page:
                message = _browsed(entry, destination)
                scanned, after = scanned + 1, entry.seq
                if wanted is None or wanted.matches(Seen(message.headers, message.body)):
                    found.append(message)
                    if len(found) == limit:
                        more = await self._store.read(log, after, 1)
                        return BrowsePage(found, scanned, after if more else None)
            if not page:
                return BrowsePage(found, scanned, None)
        return BrowsePage(found, scanned, after)

    async def count(
        self, destination: Destination, after: int = 0, selector: str | None = None, scan: int = 10_000,
        seconds: float = math.inf,
    ) -> Tally:  # fmt: skip
        """How many messages with seq > after match: of at most `scan` that are looked at, for so many `seconds`.

        Raises SelectorSyntaxError, DestinationNotFound.
        """
        if not after and not selector:
            return Tally(await self.depth(destination))
        count, left, until = 0, scan, time.monotonic() + seconds
        while left > 0 and time.monotonic() < until:
            page = await self.browse(destination, after, BROWSE_PAGE, selector, min(BROWSE_PAGE, left))
            count, left = count + len(page.messages), left - page.scanned
            if page.next is None or not page.scanned:
                return Tally(count)
            after = page.next
        return Tally(count, is_whole=False, looked_at=scan - left, of=await self.depth(destination))

    async def message(self, destination: Destination, seq: int) -> BrowsePage:
        """The one message at seq (a page of one, or of none when it is gone)."""
        log = await self._log(destination)
        page = await self._store.read(log, seq - 1, 1)
        found = [_browsed(entry, destination) for entry in page if entry.seq == seq]
        return BrowsePage(found, len(page), None)

    async def place(self, destination: Destination, before: int | None = None, count: int = 50) -> int:
        """The number after which the last `count` messages before `before` begin; without it, the newest ones."""
        return await self._store.back(await self._log(destination), before, count)

    async def last(self, destination: Destination) -> int:
        """The number of the newest message; 0 when there is none."""
        return await self._store.newest(await self._log(destination))

    async def depth(self, destination: Destination) -> int:
        """How many messages it holds."""
        log = await self._log(destination)
        return (await self._store.depths([log]))[log]

    async def place_at(self, destination: Destination, time_ms: int) -> int:
        """The number after which messages begin that came at this moment (ms since the epoch) or later.

        Messages are in the order in which they came, so that some thirty of a million need to be looked at.
        """
        log = await self._log(destination)
        low, high = 0, await self._store.newest(log)
        while low < high:
            middle = (low + high) // 2
            [entry] = await self._store.read(log, middle, 1) or [None]
            if entry is None or came_ms(entry.message) >= time_ms:
                high = middle
            else:
                low = entry.seq
        return low

    async def waiting(
        self, start_ms: int = 0, end_ms: int = END_OF_TIME_MS, skip: int = 0, limit: int = 50
    ) -> tuple[int, list[WaitingMessage]]:
        """How many wait, and those due from one moment to another, in order of time, after the first `skip`."""
        found = await self._store.jobs(start_ms, end_ms, skip, limit)
        return await self._store.job_count(), [_waiting(each) for each in found]

    async def waiting_as(self, job: str) -> WaitingMessage | None:
        """The message that waits as this job; None when none does."""
        found = await self._store.job(job)
        return None if found is None else _waiting(found)


def came_ms(message: Message) -> int:
    """When a message came to the queue it is in, as far as it says: failed, was sent again, or was sent."""
    for name in ("dlqTime", "resubmittedTime"):
        text = message.headers.get(name, "")
        if text.isdecimal() and len(text) < 15:
            return int(text)
    return message.born_us // 1000


def _browsed(entry: StoredEntry, destination: Destination) -> BrowsedMessage:
    message = entry.message
    headers = dict(message.headers)
    headers["destination"] = entry.shown or destination.stomp
    came_from = headers.get(ORIGIN)
    if entry.original:
        headers[ORIGIN] = entry.original
    return BrowsedMessage(
        entry.seq, message.id, destination.stomp, headers.get(ORIGIN), headers, message.body,
        len(message.body), message.path, came_from,
    )  # fmt: skip


def _waiting(stored: StoredJob) -> WaitingMessage:
    job = Job.load(stored.record)
    headers = {**job.message.headers, **job.schedule.headers()}
    return WaitingMessage(stored.id, stored.due_ms, job.purpose, job.to, headers, len(job.message.body))
