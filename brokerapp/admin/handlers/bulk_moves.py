"""Moves, copies, resubmits and removes messages of a queue that a selector or a list of ids selects.

A queue is worked through in order, page by page; each page is done whole or not at all. Messages that consumers hold
stay, and so do messages that arrive after the start, so that an operation ends even if definitions lead the messages
back to their queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypedDict, Unpack

from brokerapp.admin.handlers.log_pages import apply_to_page, require_local
from brokerapp.admin.handlers.message_transfer import MessageTransfer, TargetOf
from brokerapp.core.ports import BrokerContext, DeadLettersPort, DispatchQueue
from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selective_dispatch import selector_headers
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.errors import LimitExceeded
from brokerapp.model.destination import Destination
from brokerapp.selectors import compile_selector
from brokerapp.store import StoredLogEntry
from brokerapp.tracing.schema import MOVE

#: What is done with the selected messages of one page, which are routed if there is a target.
Action = Callable[[list[LogEntry], list[RoutedBatch]], asyncio.Future[str] | None]


class Criteria(TypedDict, total=False):
    """Selects messages of a queue: those that meet all criteria, up to the limit."""

    selector: str | None
    ids: Sequence[str] | None  #: message-ids; all copies of a message have the same
    limit: int | None


@dataclass
class MessageSelection:
    """Messages of a queue that match all criteria, up to a limit, and how many of them were dealt with."""

    selector: str | None = None
    ids: frozenset[str] | None = None
    limit: int | None = None
    done: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._selector = compile_selector(self.selector) if self.selector else None

    @staticmethod
    def of(criteria: Criteria) -> MessageSelection:
        """Return the selection for an operator's criteria."""
        ids = criteria.get("ids")
        return MessageSelection(
            criteria.get("selector"), None if ids is None else frozenset(ids), criteria.get("limit")
        )

    @property
    def remaining(self) -> int | None:
        """How many messages may still be selected; None: no limit."""
        return None if self.limit is None else max(0, self.limit - self.done)

    def matches(self, entry: LogEntry, queue: Destination) -> bool:
        """Return whether the message meets the criteria."""
        if self.ids is not None and entry.message.id not in self.ids:
            return False
        return self._selector is None or self._selector.matches(selector_headers(entry, queue))


class BulkMoves:
    """Carries out operations on many messages of a queue. Each returns how many messages it dealt with."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        transfer: MessageTransfer,
        dead_letters: DeadLettersPort,
        dispatcher: DispatchQueue,
    ) -> None:
        self._commits, self._transfer = context.commits, transfer
        self._dead_letters, self._dispatcher = dead_letters, dispatcher

    async def remove(self, queue: str, **criteria: Unpack[Criteria]) -> int:
        """Remove messages."""
        log = self._transfer.find_log(queue)

        def remove(entries: list[LogEntry], _routed: list[RoutedBatch]) -> None:
            self._transfer.remove(log, entries)

        return await self._each_page(log, MessageSelection.of(criteria), remove)

    async def move(self, queue: str, target: str, **criteria: Unpack[Criteria]) -> int:
        """Move messages to another destination, where they are routed as if they were sent there."""
        log = self._transfer.find_log(queue)
        return await self._move(log, MessageSelection.of(criteria), self._transfer.fixed_target(log, target))

    async def resubmit(self, queue: str, **criteria: Unpack[Criteria]) -> int:
        """Move dead letters to their original destinations; messages without one stay."""
        log = self._transfer.find_log(queue)
        return await self._move(log, MessageSelection.of(criteria), self._transfer.original_destination)

    async def copy(self, queue: str, target: str, **criteria: Unpack[Criteria]) -> int:
        """Copy messages to another destination. Raises LimitExceeded when that is full."""
        log = self._transfer.find_log(queue)

        def copy(_entries: list[LogEntry], routed: list[RoutedBatch]) -> asyncio.Future[str]:
            return self._transfer.submit(routed)

        target_of = self._transfer.fixed_target(log, target)
        return await self._each_page(log, MessageSelection.of(criteria), copy, target_of, removes=False)

    async def _move(self, log: MessageLog, selection: MessageSelection, target_of: TargetOf) -> int:
        def move(entries: list[LogEntry], routed: list[RoutedBatch]) -> asyncio.Future[str]:
            self._transfer.leave(log, entries, MOVE, "moved by an operator")
            return self._transfer.submit(routed, entries)

        return await self._each_page(log, selection, move, target_of)

    # -- page by page

    async def _each_page(
        self,
        log: MessageLog,
        selection: MessageSelection,
        action: Action,
        target_of: TargetOf | None = None,
        *,
        removes: bool = True,
    ) -> int:
        last, after = await self._last_seq(log.name), 0

        def apply(found: list[StoredLogEntry]) -> asyncio.Future[str] | None:
            intact = self._dead_letters.remove_damaged(log, found, dead_letter_damaged=removes)
            entries = [log_entry_of(log.name, each) for each in intact if each.seq <= last]
            selected = self._select(log, selection, entries, target_of)
            if removes:
                require_local(log)
                reserved = log.reserve([entry for entry, _ in selected])
                selected = [each for each in selected if each[0].seq in reserved]
            selection.done += len(selected)
            if not selected:
                return None
            return action([entry for entry, _ in selected], [each for _, each in selected if each is not None])

        while selection.remaining != 0:
            found, work = await apply_to_page(self._commits, log, after, PAGE_SIZE, apply, is_removal=removes)
            if work is not None and (refused := await work):
                raise LimitExceeded(f"{refused} is full: stopped after {selection.done} messages")
            if not found or found[-1].seq >= last:
                break
            after = found[-1].seq
        await self._commits.barrier()
        self._dispatcher.touch(log)
        return selection.done

    async def _last_seq(self, log: str) -> int:
        """Return a number that no message of a log exceeds which any node has stored by now."""
        answer: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()
        self._commits.read_with(lambda store: store.logs.last_seqs([log]), answer.set_result, log)
        return (await answer)[log]

    def _select(
        self, log: MessageLog, selection: MessageSelection, entries: list[LogEntry], target_of: TargetOf | None
    ) -> list[tuple[LogEntry, RoutedBatch | None]]:
        """Return the selected messages of a page, routed if there is a target. Raises RequestRefused."""

        def select() -> Iterator[tuple[LogEntry, RoutedBatch | None]]:
            for entry in entries:
                if not selection.matches(entry, log.destination):
                    continue
                if target_of is None:
                    yield entry, None
                elif (target := target_of(entry)) is not None:
                    yield entry, self._transfer.route_entry(log, entry, target)

        return list(islice(select(), selection.remaining))
