"""Purges and pauses queues, and resets message groups and remembered selectors."""

from __future__ import annotations

from collections.abc import Callable

from brokerapp.admin.handlers.log_pages import apply_to_page, require_local
from brokerapp.admin.handlers.message_transfer import MessageTransfer
from brokerapp.core.destinations.queue_registry import QueueRegistry
from brokerapp.core.ports import BrokerContext, DispatchQueue
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.model.destination import Destination
from brokerapp.store import StoredLogEntry

#: Messages purged in one unit.
PURGE_BATCH = 1_000
#: Reason for which a queue is not dispatched from while it is purged.
PURGING = "purging"


class QueueOperations:
    """Carries out operations on a queue as a whole."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        queues: QueueRegistry,
        dispatcher: DispatchQueue,
        transfer: MessageTransfer,
        pump: Callable[[], None],
    ) -> None:
        self._commits, self._queues, self._dispatcher = context.commits, queues, dispatcher
        self._transfer, self._pump = transfer, pump

    async def purge(self, destination: str) -> int:
        """Remove all messages of a queue that are not in flight; return how many."""
        return await self.purge_log(self._find(destination))

    async def purge_log(self, log: MessageLog) -> int:
        """Remove all messages of a log that are not in flight; return how many.

        Nothing is dispatched meanwhile. Messages that arrive meanwhile may be removed or stay.
        """
        require_local(log)
        wanted, removed, after = log.depth - log.in_flight, 0, 0

        def remove(found: list[StoredLogEntry]) -> int:
            require_local(log)
            reserved = log.reserve(found)
            self._transfer.remove(log, [log_entry_of(log.name, each) for each in found if each.seq in reserved])
            return len(reserved)

        log.suspend_reasons.add(PURGING)
        try:
            while removed < wanted:
                found, count = await apply_to_page(self._commits, log, after, PURGE_BATCH, remove)
                if not found:
                    break
                removed += count
                after = found[-1].seq
            await self._commits.barrier()
        finally:
            log.suspend_reasons.discard(PURGING)
            self._dispatcher.touch(log)
            self._pump()
        return removed

    async def pause(self, destination: str, paused: bool) -> None:
        """Pause delivery from a queue until it is resumed, also after a restart; or resume it."""
        self._queues.pause(self._find(destination), paused)
        await self._commits.barrier()

    async def groups(self, destination: str) -> list[list[str]]:
        """Return the message groups of a queue, each with the client and the subscription that own it."""
        groups = self._find(destination).groups
        return [[name, owner.client.client_id, owner.name] for name, owner in groups or ()]

    async def reset_groups(self, destination: str, group: str | None) -> int:
        """Reset the assignment of one message group of a queue, or of all; return how many had an owner."""
        log = self._find(destination)
        if log.groups is None:
            return 0
        reset = log.groups.clear() if group is None else int(log.groups.close(group))
        self._dispatcher.touch(log)
        self._pump()
        return reset

    async def delete_selectors(self, destination: str, selector: str | None) -> bool:
        """Delete one remembered selector of a queue's former consumers, or all; return whether there was one."""
        found = self._queues.remembering.forget(self._find(destination), selector)
        await self._commits.barrier()
        return found

    def _find(self, destination: str) -> MessageLog:
        return self._queues.find(Destination.parse(destination))
