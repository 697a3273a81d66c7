"""The console's only door to the broker: plain calls outside, one event loop inside.

The loop runs in a thread of its own, started with the first call of the process (after any fork), because a pool of
connections belongs to the loop that opened it. A call that gets no answer in time raises StoreUnavailable; nothing but
BrokerError's branches leaves this module.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from django.conf import settings

from brokerapp.admin import BrokerAdmin
from brokerapp.engine.routing.routing_context import RoutingContext
from brokerapp.engine.routing.validation import check_definitions
from brokerapp.errors import StoreUnavailable
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import (
    END_OF_LOG,
    BrowsePage,
    MatchCount,
    MessageOperationOutcome,
    NodeStatus,
    ScheduledMessage,
)
from console.broker.singleton import ProcessSingleton

#: Seconds a page waits for the broker.
PATIENCE = 5.0
#: Seconds for what may move many messages.
LONG_PATIENCE = 60.0
#: Messages looked at for one page of a browser: a tenth of a second or so.
SCAN = 10_000
#: Seconds in which no more of them are begun: on a busy machine a part is told, before a page has waited too long.
LOOK = 1.0


class Gateway:
    """One BrokerAdmin and the loop it lives on."""

    def __init__(self, redis_url: str, broker: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)
        self._thread.start()
        self.admin: BrokerAdmin = self.run(self._open(redis_url, broker))

    def _run(self) -> None:
        """Run the event loop in its thread, and close it there: the channel layer runs it once more while closing."""
        self.loop.run_forever()
        self.loop.close()

    @staticmethod
    async def _open(redis_url: str, broker: str) -> BrokerAdmin:
        return BrokerAdmin(redis_url, broker)

    def run(self, call: Coroutine[Any, Any, Any], patience: float = PATIENCE) -> Any:
        """Return the result of the coroutine, run on the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(self._timed(call, patience), self.loop).result()

    @staticmethod
    async def _timed(call: Coroutine[Any, Any, Any], patience: float) -> Any:
        try:
            return await asyncio.wait_for(call, patience)
        except TimeoutError as error:
            raise StoreUnavailable(f"Broker did not respond within {patience:g} s") from error

    def close(self) -> None:
        """End the loop and give back the connections."""
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result(timeout=PATIENCE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=PATIENCE)

    async def _end(self) -> None:
        # A cancel that meets the end of one of the driver's reads gets lost: ask until they are done.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others, timeout=1)
        await self.admin.close()

    # -- the verbs of BrokerAdmin, without waiting words

    def nodes(self) -> list[NodeStatus]:
        """Return the live nodes of the broker."""
        return self.run(self.admin.nodes())

    def browse(
        self, destination: Destination, after: int, limit: int, selector: str | None, scan: int = SCAN
    ) -> BrowsePage:
        """Messages with seq > after; see BrokerAdmin.browse."""
        return self.run(self.admin.browse(destination, after, limit, selector, scan, LOOK))

    def browse_back(
        self, destination: Destination, before: int, limit: int, selector: str | None, scan: int = SCAN
    ) -> BrowsePage:
        """Return the last messages with seq < before; see BrokerAdmin.browse_back."""
        return self.run(self.admin.browse_back(destination, before, limit, selector, scan, LOOK))

    def count(self, destination: Destination, selector: str | None, seen: BrowsePage | None = None) -> MatchCount:
        """Count matching messages; see BrokerAdmin.count. Continues after a page `seen`."""
        return self._counted(self.admin.count, 0, destination, selector, seen)

    def count_back(self, destination: Destination, selector: str | None, seen: BrowsePage | None = None) -> MatchCount:
        """Return the same from the end back; `seen` is the page of the newest."""
        return self._counted(self.admin.count_back, END_OF_LOG, destination, selector, seen)

    def _counted(
        self, count: Callable[..., Coroutine[Any, Any, MatchCount]], start: int, destination: Destination,
        selector: str | None, seen: BrowsePage | None,
    ) -> MatchCount:  # fmt: skip
        if seen is None or not selector:
            return self.run(count(destination, start, selector, SCAN, LOOK))
        if seen.next is None:
            return MatchCount(len(seen.messages))
        rest = self.run(count(destination, seen.next, selector, SCAN - seen.scanned, LOOK))
        return rest.after(len(seen.messages), seen.scanned)

    def seq_at(self, queue: Destination, time_ms: int) -> int:
        """Find the first message at a time; see BrokerAdmin.seq_at."""
        return self.run(self.admin.seq_at(queue, time_ms))

    def last(self, queue: Destination) -> int:
        """Return the number of a queue's newest message, or 0."""
        return self.run(self.admin.last(queue))

    def depth(self, queue: Destination) -> int:
        """Return the number of messages in a queue."""
        return self.run(self.admin.depth(queue))

    def step(
        self,
        action: str,
        queue: Destination,
        seqs: Sequence[int],
        target: Destination | None,
        actor: str,
        edit: dict[str, Any] | None = None,
    ) -> list[MessageOperationOutcome]:
        """Do something to these messages; see BrokerAdmin.step."""
        return self.run(self.admin.step(action, queue, seqs, target, actor, edit), LONG_PATIENCE)

    def edit(self, queue: Destination, seq: int, message: dict[str, Any], actor: str) -> dict[str, Any]:
        """Send a message in place of one; see BrokerAdmin.edit."""
        return self.run(self.admin.edit(queue, seq, message, actor))

    def send(self, message: dict[str, Any], count: int, actor: str) -> dict[str, Any]:
        """Send test messages; see BrokerAdmin.send."""
        return self.run(self.admin.send(message, count, actor), LONG_PATIENCE)

    def routes(self, messages: Sequence[tuple[Destination, dict[str, str]]]) -> list[dict[str, Any]]:
        """Preview the routes of messages; see BrokerAdmin.routes."""
        return self.run(self.admin.routes(messages))

    def groups(self, queue: Destination) -> list[list[str]]:
        """Return the message groups of a queue; see BrokerAdmin.groups."""
        return self.run(self.admin.groups(queue))

    def reset_groups(self, queue: Destination, group: str | None) -> int:
        """Reset the assignment of message groups; return how many had an owner."""
        return self.run(self.admin.reset_groups(queue, group))

    def scheduled(self, skip: int, limit: int) -> tuple[int, list[ScheduledMessage]]:
        """Return a page of scheduled messages; see BrokerAdmin.scheduled."""
        return self.run(self.admin.scheduled(skip=skip, limit=limit))

    def scheduled_job(self, job: str) -> ScheduledMessage | None:
        """Return the scheduled message of a job, or None."""
        return self.run(self.admin.scheduled_job(job))

    def cancel_scheduled(self, job: str) -> None:
        """Cancel a scheduled message."""
        self.run(self.admin.cancel_scheduled(job))

    def message(self, destination: Destination, seq: int) -> BrowsePage:
        """Return the one message at seq, or none."""
        return self.run(self.admin.message(destination, seq))

    def purge(self, destination: Destination) -> int:
        """Remove all messages that are not in flight; return their number."""
        return self.run(self.admin.purge(destination), LONG_PATIENCE)

    def pause(self, queue: Destination, paused: bool) -> None:
        """Pause or resume the dispatch of a queue."""
        self.run(self.admin.pause(queue, paused))

    def selectors_of(self, queue: Destination) -> dict[str, int]:
        """Return remembered selectors of a queue's consumers; see BrokerAdmin.selectors."""
        return self.run(self.admin.selectors_of(queue))

    def delete_selectors(self, queue: Destination, selector: str) -> bool:
        """Delete a remembered selector."""
        return self.run(self.admin.delete_selectors(queue, selector))

    def create(self, destination: Destination) -> bool:
        """Create a destination; return whether it did not exist before."""
        return self.run(self.admin.create(destination))

    def delete(self, destination: Destination) -> int:
        """Delete a destination with its messages; return how many messages."""
        return self.run(self.admin.delete(destination), LONG_PATIENCE)

    def definitions(self, version: int | None = None) -> Definitions:
        """Return the definitions in force, or as they stood at `version`."""
        return self.run(self.admin.definitions(version))

    @staticmethod
    def check(definitions: Definitions) -> None:
        """Raise DefinitionRefused when these cannot work; what define would say, without doing it."""
        check_definitions(definitions)

    def explain(
        self, destination: Destination, headers: Mapping[str, str], body: str, definitions: Definitions | None = None
    ) -> dict[str, Any]:
        """Explain the route of a message; see BrokerAdmin.explain."""
        return self.run(self.admin.explain(destination, headers, body, definitions))

    def routing_context(self, definitions: Definitions | None = None) -> RoutingContext:
        """Return the routing context; see BrokerAdmin.routing_context."""
        return self.run(self.admin.routing_context(definitions))

    def define(self, definitions: Definitions, author: str, comment: str) -> Definitions:
        """Put these in force; see BrokerAdmin.define."""
        return self.run(self.admin.define(definitions, author=author, comment=comment))

    def history(self, limit: int = 50) -> list[dict]:
        """Versions of the definitions, newest first."""
        return self.run(self.admin.history(limit=limit))


_gateway: ProcessSingleton[Gateway] = ProcessSingleton(
    lambda: Gateway(settings.SLUICE.redis_url, settings.SLUICE.broker_name)
)


def gateway() -> Gateway:
    """This process's gateway, opened with the first call."""
    return _gateway.get()


def close_gateway() -> None:
    """Close this process's gateway, if it was opened; the next call opens another one."""
    _gateway.close()
