"""Transfers: messages that operators take out of a queue, by selector or id: moved, copied, retried or removed.

In order, page by page, each page whole or not at all; what consumers hold stays with them. What arrives after the
beginning is left alone, so that a transfer ends also where messages come back by way of definitions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

from brokerapp.core.broker import Broker
from brokerapp.engine.clients.client import RoutedMessage
from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selective_dispatch import selector_headers
from brokerapp.engine.editing.resubmit_target import origin_destination
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.broker_headers import ORIGIN, with_broker_headers
from brokerapp.engine.policy.dead_letters import route_headers
from brokerapp.errors import LimitExceeded, RequestRefused, StoreUnavailable
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message
from brokerapp.selectors import compile_selector
from brokerapp.store import PendingWrite, StoredLogEntry
from brokerapp.tracing.schema import MOVE, REMOVE

#: Where a message goes, None: nowhere (it is left alone). Raises RequestRefused.
Target = Callable[[LogEntry], Destination | None]
#: A message with the way it will take; None when it is to go.
Move = tuple[LogEntry, RoutedMessage | None]
#: No headers changed.
NOTHING: Mapping[str, str | None] = MappingProxyType({})


@dataclass
class MessageSelection:
    """Which messages of a queue: of those that match all that is given, the first `limit`."""

    selector: str | None = None
    ids: frozenset[str] | None = None  #: message-ids; all copies of a message share one
    limit: int | None = None
    done: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._wanted = compile_selector(self.selector) if self.selector else None

    @property
    def room(self) -> int | None:
        """How many more it wants; None: all there are."""
        return None if self.limit is None else max(0, self.limit - self.done)

    def takes(self, entry: LogEntry, queue: Destination) -> bool:
        """Whether this message is one of them."""
        if self.ids is not None and entry.message.id not in self.ids:
            return False
        return self._wanted is None or self._wanted.matches(selector_headers(entry, queue))


class BulkMoves:
    """What operators do to the messages of queues."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def remove(self, queue: str, **which) -> int:
        """Remove messages; how many."""
        log = self.log_of(queue)
        return await self._each_page(log, _selection(which), lambda ways: self._remove(log, ways))

    async def move(self, queue: str, target: str, **which) -> int:
        """Move messages to another destination, where they are routed like what is sent there; how many."""
        return await self._move(queue, which, self.checked(self.log_of(queue), target))

    async def retry(self, queue: str, **which) -> int:
        """Move messages back to where they failed; how many. What does not say where it came from stays."""
        return await self._move(queue, which, self.came_from)

    async def copy(self, queue: str, target: str, **which) -> int:
        """Copy messages to another destination; how many. Raises LimitExceeded when that is full."""
        log, to = self.log_of(queue), self.checked(self.log_of(queue), target)
        return await self._each_page(log, _selection(which), self._copy, to, seize=False)

    async def _move(self, queue: str, which: dict, target: Target) -> int:
        log = self.log_of(queue)
        return await self._each_page(log, _selection(which), lambda ways: self._forward(log, ways), target)

    # -- what steps (message_operations.py) have in common with transfers

    def log_of(self, queue: str) -> MessageLog:
        """The log of this queue. Raises RequestRefused, DestinationNotFound."""
        wanted = Destination.parse(queue)
        if not wanted.is_queue or wanted.kind is DestinationKind.SUBSCRIPTION:
            raise RequestRefused(f"{wanted} is no queue")
        return self._broker.queues.find(wanted)

    def checked(self, log: MessageLog, target: str) -> Target:
        """Everything goes to this one destination. Raises RequestRefused when it cannot."""
        to = Destination.parse(target)
        if to.physical == log.destination:
            raise RequestRefused(f"{to} is where the messages are already")
        if to.kind is DestinationKind.SUBSCRIPTION:
            raise RequestRefused(f"{to} is a subscription. Choose a queue or topic as the target.")
        self._broker.creation.check_named(to)
        self._reachable(to)
        return lambda _entry: self._reachable(to)

    def _reachable(self, to: Destination) -> Destination:
        """This destination. Raises RequestRefused when messages cannot come there: then none is taken."""
        if to.is_temporary:
            self._broker.temporaries.check(to)
        elif to.address is not None:
            self._broker.queues.ensure(to)
        return to

    def came_from(self, entry: LogEntry) -> Destination | None:
        """Where a dead letter failed; None when nobody can say, or it was temporary."""
        origin = origin_destination(entry.message.headers.get(ORIGIN))
        return None if origin is None else self._reachable(origin)

    # -- page by page

    async def _each_page(
        self, log: MessageLog, selection: MessageSelection, deal, target: Target | None = None, seize=True
    ):
        last, after = await self._last(), 0
        while selection.room != 0:
            found, work = await self._page(log, selection, after, last, deal, target, seize)
            if work is not None and (refused := await work):
                raise LimitExceeded(f"{refused} is full: {selection.done} messages were dealt with before")
            if not found or found[-1].seq >= last:
                break
            after = found[-1].seq
        await self._broker.commits.barrier()
        self._broker.dispatcher.touch(log)
        return selection.done

    async def _last(self) -> int:
        """The number of the last message that is stored now, at whichever node."""
        answer = asyncio.get_running_loop().create_future()
        self._broker.commits.read_with(lambda store: store.logs.last_seq(), answer.set_result)
        return await answer

    async def _page(
        self, log: MessageLog, selection: MessageSelection, after: int, last: int, deal, target, seize: bool
    ):
        """Deal with what is wanted of the next page, in the very moment in which the store's answer comes.

        Later consumers may hold other messages.
        """
        while True:
            window, answer = log.window, asyncio.get_running_loop().create_future()

            def read(found: list[StoredLogEntry], window=window, answer=answer) -> None:
                if window != log.window and seize:  # some of it may be settled meanwhile
                    answer.set_result(None)
                    return
                try:
                    sound = self._broker.dead_letters.sound(log, found, take=seize)
                    entries = [log_entry_of(log.name, each) for each in sound if each.seq <= last]
                    ways = self._chosen(log, selection, entries, target)
                    if seize:
                        check_here(log)
                        seized = log.reserve([entry for entry, _ in ways])
                        ways = [(entry, placed) for entry, placed in ways if entry.seq in seized]
                    selection.done += len(ways)
                    answer.set_result((found, deal(ways) if ways else None))
                except Exception as error:  # whoever reads must not fail; who asked is told
                    answer.set_exception(error)

            self._broker.commits.read(log.name, after, PAGE_SIZE, read)
            if (page := await answer) is not None:
                return page

    def _chosen(
        self, log: MessageLog, selection: MessageSelection, entries: list[LogEntry], target: Target | None
    ) -> list[Move]:
        """Those of these messages that are wanted, with their ways. Raises RequestRefused, before anything is taken."""

        def ways() -> Iterator[Move]:
            for entry in entries:
                if not selection.takes(entry, log.destination):
                    continue
                if target is None:
                    yield entry, None
                elif (to := target(entry)) is not None:
                    yield entry, self.placed(log, entry, to)

        return list(islice(ways(), selection.room))

    def _remove(self, log: MessageLog, ways: list[Move]) -> None:
        entries = [entry for entry, _ in ways]
        self.leave(log, entries, REMOVE, "removed by an operator")
        self._broker.commits.remove_settled(entries)

    def leave(self, log: MessageLog, entries: list[LogEntry], kind: int, why: str) -> None:
        """These are in the log no more: they were moved, or removed; that is recorded as this kind of event."""
        now_us = time.time_ns() // 1000
        for entry in entries:
            self._broker.dead_letters.record(kind, now_us, entry, None, why)
        log.settled(entries)
        log.counts.left([entry.message for entry in entries])
        self._broker.counters.mark_changed(log.counts)

    def _forward(self, log: MessageLog, ways: list[Move]) -> asyncio.Future[str]:
        entries = [entry for entry, _ in ways]
        self.leave(log, entries, MOVE, "moved by an operator")
        return self.submit([placed for _, placed in ways], entries)

    def _copy(self, ways: list[Move]) -> asyncio.Future[str]:
        return self.submit([placed for _, placed in ways], ())

    def placed(
        self, log: MessageLog, entry: LogEntry, target: Destination, headers: Mapping[str, str | None] = NOTHING
    ) -> RoutedMessage:
        """The message on its way to another destination, with these headers changed.

        Raises RequestRefused when it would come nowhere: it is not for an operator's move to lose it.
        """
        message, here = entry.message, log.destination
        way = route_headers(message, entry.original or message.headers.get(ORIGIN, ""), here)
        changed = with_broker_headers(message.headers, {ORIGIN: here.stomp, **way, **headers})
        return self.on_its_way(message.with_headers(changed), target)

    def on_its_way(self, message: Message, target: Destination) -> RoutedMessage:
        """The message with the way it will take. Raises RequestRefused when it would come nowhere."""
        message, found = self._broker.publisher.route(message, target, is_moved=True)
        if not (found.groups or found.topics):
            raise RequestRefused(
                f"by way of {target} the message {message.id} would come nowhere: no definition wants it"
            )
        return RoutedMessage(message, message.stored(), target, found)

    def submit(
        self, placed: list[RoutedMessage], settles: list[LogEntry] | tuple[()], are_new: bool = False
    ) -> asyncio.Future[str]:
        """Let it be stored; what stands in the way, or nothing. `are_new`: that they came is recorded, too."""
        done = asyncio.get_running_loop().create_future()

        def stored(seq: int, refused: str) -> None:
            if not refused:
                for each in placed if are_new else ():
                    self._broker.tracer.record_enqueue(
                        each.message.born_us, (each.message,), str(each.destination), None
                    )
                self._broker.writer.on_committed(placed, seq, moved_us=time.time_ns() // 1000)
            done.set_result(refused)

        appends = [(each.stored, group.rows) for each in placed for group in each.route.groups]
        self._broker.commits.submit(PendingWrite(appends, settles, ignores_limits=bool(settles), callback=stored))
        return done


def check_here(log: MessageLog) -> None:
    """Raise StoreUnavailable when another node gives out this log: that alone knows what consumers hold."""
    if log.away:
        raise StoreUnavailable(f"{log.destination} has just moved to another node: ask again")


def _selection(which: dict) -> MessageSelection:
    ids = which.get("ids")
    return MessageSelection(which.get("selector"), None if ids is None else frozenset(ids), which.get("limit"))
