"""Block sends that a limit refuses, in order, and stop reading from their clients.

Sends wait at a *full place*, a queue, topic or named subscription at its bound (see limits.py) or the whole store, in
order of arrival. When something of the place was settled the first of them are tried again, more at once as they
succeed. While sends wait at a place, later ones to it go to the end of the row, so that none overtakes another.

A client that only produces is not read from while a send of it waits. One that also consumes is: its acknowledgements
may be what makes room. What it may have waiting is bounded instead, and what goes beyond is refused.

The bridge of another broker is never refused: it could only come again. It waits whatever policies say, with as many
sends as its prefetch there lets it have (client.py says when it is not read from). When it goes, what it would pass on
again goes with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from brokerapp.core.writes.wait_queue import BlockedSend, WaitQueue
from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.engine.policy.send_timeout import send_timeout_ms, warning_interval_ms
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.store import GONE, SHARED, STORE, TEMP, CommitBatch, PendingWrite
from brokerapp.system import clock
from brokerapp.system.timers import Timer

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        DispatchQueue,
        LimitsPort,
        MessageWriterPort,
        PressureAdvisories,
    )
    from brokerapp.core.writes.client_write import ClientWrite

logger = logging.getLogger(__name__)

#: Sends of one client that consumes too, and bytes of messages in them, that may wait: it is read on, so that its
#: acknowledgements are heard.
MAX_WAITING = 10_000
MAX_WAITING_BYTES = 8 * 1024 * 1024
#: Bytes of messages of all clients that may wait in memory: some thousand clients with what one read brings.
MAX_ALL_WAITING_BYTES = 256 * 1024 * 1024
#: Bytes of messages that a client may have on their way to a log, however small its limit is: they share a commit.
MIN_ON_ITS_WAY_BYTES = 64 * 1024
#: How often, while sends wait, those whose time is over are looked for; and how often the first are tried although
#: nothing is known to have left: limits may have been raised, another node may have consumed.
TICK_MS = 100
TRY_AGAIN_MS = 1_000


class FlowControl:
    """Lets sends wait that find no room, and tries them again. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        advisories: PressureAdvisories,
        clients: Mapping[str, Client],
        dispatcher: DispatchQueue,
        limits: LimitsPort,
        writer: MessageWriterPort,
    ) -> None:
        self._settings, self._timers, self._commits, self._counters = (
            context.settings,
            context.timers,
            context.commits,
            context.counters,
        )
        self._advisories, self._clients = advisories, clients
        self._dispatcher, self._limits, self._writer = dispatcher, limits, writer
        self.places: dict[str, WaitQueue] = {}
        self.bytes = 0  #: of messages in all that waits
        self._refusing: dict[WaitQueue, None] = {}  # in the batch that the store reports on
        self._passing: dict[WaitQueue, None] = {}
        self._closed = False
        self._ticking: Timer | None = None
        self._unblocked_callbacks: dict[Client, list[Callable[[], None]]] = {}

    # -- what comes

    @property
    def is_active(self) -> bool:
        """Whether sends are to come by here, rather than go to the store at once."""
        return bool(self.places) or self._limits.of_topics or self._limits.is_disk_low

    def is_free(self, placed: Sequence[RoutedBatch]) -> bool:
        """Whether no topic on the way of these messages is full, nor waited for."""
        if not self.is_active:
            return True
        return not self._topic_in_row(placed) and self._limits.full_topic(placed) is None

    def limit_reading(self, write: ClientWrite) -> None:
        """Let the clients of a write have no more on its way than the logs that it goes to may hold.

        Whatever the store refuses waits in memory, and what awaits no answer would be read before that is known.
        """
        least = inf  # also where limits are no more
        if self._limits.of_logs:
            of_log = self._limits.of_log
            limits = [limit for rows in write.copies for name, _, _ in rows if (limit := of_log(name))]
            least = max(min(limits), MIN_ON_ITS_WAY_BYTES) if limits else inf
        for client in write.bytes_by_client:
            client.log_limit = least

    def submit(self, unit: ClientWrite) -> None:
        """Submit a write, or let it wait: where a topic is full, or where it would overtake others that wait."""
        place, bounds = self._place_of(unit), self._limits
        full = bounds.full_topic(unit.placed) or (STORE if bounds.is_disk_low and unit.copies else None)
        if place is None and full is not None:
            place = WaitQueue(full, clock.now_ms())
            self._tell(unit, place)
        if place is None or unit.settles or unit.is_droppable:  # what it settles may be what makes room
            self._commits.submit(unit)
        elif (reason := self._join(unit, place)) is not None:
            self._writer.refuse(unit, reason)

    def disk_changed(self) -> None:
        """The disk of the store has less space, or more: what would wait for the store to have some is answered."""
        if self._limits.is_disk_low:
            for each in self._commits.cancel(self._is_refusable):
                self._call_back(each)

    def _is_refusable(self, unit: PendingWrite) -> bool:
        """Whether a client only sends with it, to destinations that are stored, and no consumer has it yet."""
        return (
            unit.client is not None
            and bool(unit.copies)
            and not unit.settles
            and not unit.is_droppable
            and not unit.given
        )

    def block(self, unit: ClientWrite, full: str) -> str | None:
        """A unit was refused because this is full. It waits (None), or the client is to be told this sentence."""
        if full == GONE:
            return "it is done already"
        if self._comes_again(unit):
            self._writer.withdraw(unit)
            return None
        if self._closed:
            return f"{self._limits.describe(full)}, and the broker stops"
        if not unit.placed:  # what is to be delivered later has no way yet on which it could wait
            return self._limits.describe(full)
        waiting = unit.waiting
        if waiting is None:
            place = self.places.get(full) or WaitQueue(full, clock.now_ms())
            self._refusing[place] = None
            self._tell(unit, place)
            return self._join(unit, place)
        waiting.was_tried()
        if full != waiting.place.name:
            self._leave_row(waiting)
            place = waiting.place = self._opened(self.places.get(full) or WaitQueue(full, clock.now_ms()))
            place.row[waiting] = None
        waiting.place.at_once = 1
        self._refusing[waiting.place] = None
        return None

    def _tell(self, unit: ClientWrite, place: WaitQueue) -> None:
        """Tell those who listen that somebody sends more than there is room for; once while they wait."""
        destination, advisories = place.blamed(unit), self._advisories
        if place.name not in self.places:
            advisories.full(destination, place.name if place.name in SHARED else "memory")
        if not unit.client.blocked_sends:
            advisories.fast_producer(unit.client, destination)

    def is_full(self, logs: Collection[str]) -> bool:
        """Whether who sends to one of these logs would have to wait behind others."""
        return bool(self.places) and (
            not self.places.keys().isdisjoint(SHARED) or not self.places.keys().isdisjoint(logs)
        )

    def _place_of(self, unit: PendingWrite) -> WaitQueue | None:
        ways = unit.copies
        for rows in ways:
            for name, _, _ in rows:
                if name in self.places:
                    return self.places[name]
        if (place := self._topic_in_row(getattr(unit, "placed", ()))) is not None:
            return place
        if TEMP in self.places and unit.is_non_persistent:
            return self.places[TEMP]
        return self.places.get(STORE) if ways else None

    def _topic_in_row(self, placed: Sequence[RoutedBatch]) -> WaitQueue | None:
        """The first topic on the way of these messages at which others wait."""
        names = (str(copy.destination) for each in placed for copy in each.route.topics)
        return next((self.places[name] for name in names if name in self.places), None)

    def _follows(self, unit: PendingWrite, places: Collection[WaitQueue]) -> bool:
        """Whether it would overtake, on its way to the store, those who wait at these places."""
        return unit.client is not None and not unit.settles and self._place_of(unit) in places

    def _join(self, unit: ClientWrite, place: WaitQueue) -> str | None:
        """Wait at the end of the row; or the reason why not."""
        client, patience = unit.client, self._patience(unit, place)
        if patience == 0:
            return self._limits.describe(place.name)
        reason = self._too_much(client, unit.size)
        if reason is not None:
            return f"{self._limits.describe(place.name)}, and {reason}"
        now_ms = clock.now_ms()
        unit.waiting = BlockedSend(unit, self._opened(place), now_ms, None if patience is None else now_ms + patience)
        place.row[unit.waiting] = None
        self.bytes += unit.size
        client.on_write_done(unit.size)  # on its way it is no more
        client.blocked_sends += 1
        client.blocked_bytes += unit.size
        client.update_reading()
        stats = self._counters.of(place.blamed(unit))
        stats.BlockedSends += 1
        self._counters.mark_changed(stats)
        return None

    def _too_much(self, client: Client, size: int) -> str | None:
        if client.bridge:
            return None
        if self.bytes + size > MAX_ALL_WAITING_BYTES:
            return f"{self.bytes} bytes of messages are blocked already"
        if client.is_openwire:  # it is not told of what it sends in passing, and not read from when it is too much
            return None
        count, waits = client.blocked_sends, client.blocked_bytes
        if client.subscriptions and (count >= MAX_WAITING or waits + size > MAX_WAITING_BYTES):
            return (
                f"{count} sends of this connection ({waits} bytes) wait for room already: one that also consumes must "
                "be read on for its acks; send less at a time, or over a connection of its own"
            )
        return None

    def _patience(self, unit: ClientWrite, place: WaitQueue) -> int | None:
        if unit.client.bridge:
            return None
        first = next((rows[0][0] for rows in unit.copies if rows), "")
        name = first if place.name in SHARED else place.name
        policy = self._limits.policy_of(name) if name else None
        settings = self._settings
        return send_timeout_ms(policy, settings.send_fail_if_no_space, settings.send_fail_if_no_space_after_timeout)

    def _opened(self, place: WaitQueue) -> WaitQueue:
        """The place counts as full from now on."""
        if place.name not in self.places:
            self.places[place.name] = place
            if len(self.places) == 1:
                self._tick_soon()
        return place

    def waiting(self) -> Iterator[ClientWrite]:
        """What waits for room."""
        return (each.unit for place in self.places.values() for each in place.row)

    # -- what leaves

    def release(self, waiting: BlockedSend) -> None:
        """It waits no more: it is stored, or refused for good."""
        unit, client, place = waiting.unit, waiting.unit.client, waiting.place
        unit.waiting = None
        waiting.was_tried()
        self._leave_row(waiting)
        self._passing[place] = None
        self.bytes -= unit.size
        stats = self._counters.of(place.blamed(unit))
        stats.TotalBlockedTime += clock.now_ms() - waiting.since_ms
        self._counters.mark_changed(stats)
        client.on_write_started(unit.size)
        client.blocked_sends -= 1
        client.blocked_bytes -= unit.size
        client.update_reading()
        if not client.blocked_sends:
            for farewell in self._unblocked_callbacks.pop(client, ()):
                farewell()

    def on_unblocked(self, client: Client, then: Callable[[], None]) -> None:
        """Call this when no send of the client waits any more."""
        self._unblocked_callbacks.setdefault(client, []).append(then)

    def on_client_gone(self, client: Client) -> None:
        """A client is gone."""
        gone = [each for place in self.places.values() for each in place.row if each.unit.client is client]
        for each in gone:
            if not each.tried and self._comes_again(each.unit):
                self._writer.withdraw(each.unit)

    def _comes_again(self, unit: ClientWrite) -> bool:
        """Whether the bridge that sent it is gone, and the other broker keeps it for want of a receipt."""
        client = unit.client
        return bool(client.bridge) and unit.receipt is not None and client.id not in self._clients

    def close(self) -> None:
        """The node stops: who still waits is told that nothing came of it."""
        self._closed = True
        waiting = [each for place in self.places.values() for each in place.row if not each.tried]
        if waiting:
            logger.warning("%d blocked sends are refused because the broker stops", len(waiting))
        for each in waiting:
            self._writer.refuse(each.unit, f"{self._limits.describe(each.place.name)}, and the broker stops")

    def _leave_row(self, waiting: BlockedSend) -> None:
        place = waiting.place
        place.row.pop(waiting, None)
        if not place.row and self.places.get(place.name) is place:
            del self.places[place.name]

    # -- trying again

    def on_batch(self, batch: CommitBatch) -> None:
        """Call back who would overtake the sends that the store refused; where there is room, let some try again."""
        if not self.places:
            return
        refusing, self._refusing = self._refusing, {}
        passing, self._passing = self._passing, {}
        if refusing:
            for each in self._commits.cancel(lambda unit: self._follows(unit, refusing)):
                self._call_back(each)
        left = {entry.log for unit in batch.writes for entry in unit.settles}
        left.update(log for log, attributes in batch.declarations if attributes is None)
        for place in list(self.places.values()):
            if (left and place.name in SHARED) or place.name in left or (place in passing and place not in refusing):
                self._try(place)

    def _call_back(self, unit: ClientWrite) -> None:
        if unit.waiting is not None:
            unit.waiting.was_tried()
        else:
            self.submit(unit)

    def _try(self, place: WaitQueue, all_that_settle: bool = False) -> None:
        """Let the first in the row try again, more than the last time when that went well; one try after the other."""
        if place.tried:
            return
        candidates = place.fitting(self._limits.room(place.name))
        if all_that_settle:
            candidates += [each for each in islice(place.row, place.at_once, None) if each.unit.settles]
        place.try_more()
        place.tried_ms = clock.now_ms()
        for each in candidates:
            try:
                self._writer.renew(each.unit)
            except RequestRefused as error:
                self._writer.refuse(each.unit, str(error))
                continue
            each.is_tried()
            self._commits.submit(each.unit)

    def on_topics_drained(self) -> None:
        """Let sends to topics try again: subscribers took what waited for them."""
        for place in list(self.places.values()):
            if place.name not in SHARED and not Destination.parse(place.name).is_queue:
                self._try(place)

    def _tick_soon(self) -> None:
        if self._ticking is None:
            self._ticking = self._timers.at(clock.now_ms() + TICK_MS, self._tick)

    def _tick(self) -> None:
        """Who waited long enough is refused; who waits is warned about; and the first try again now and then."""
        self._ticking, now_ms = None, clock.now_ms()
        for place in list(self.places.values()):
            for each in [each for each in place.row if each.until_ms is not None and each.until_ms <= now_ms]:
                if not each.tried:
                    waited = now_ms - each.since_ms
                    sentence = f"{self._limits.describe(place.name)}, and no space became available within {waited} ms"
                    self._writer.refuse(each.unit, sentence)
            self._warn(place, now_ms)
            if now_ms - place.tried_ms >= TRY_AGAIN_MS:
                self._try(place, all_that_settle=True)
        if self.places:
            self._tick_soon()

    # -- what is said

    def _warn(self, place: WaitQueue, now_ms: int) -> None:
        policy = None if place.name in SHARED else self._limits.policy_of(place.name)
        interval = warning_interval_ms(policy)
        if place.row and interval and now_ms - place.warned_ms >= interval:
            place.warned_ms = now_ms
            logger.warning(
                "%s: %d sends of %d connections wait for room, the first since %d ms",
                self._limits.describe(place.name), len(place.row), len({each.unit.client for each in place.row}),
                now_ms - next(iter(place.row)).since_ms,
            )  # fmt: skip
