"""Let non-persistent messages wait a moment for consumers whose sockets are full, instead of storing them.

A consumer that reads in bursts has room again in a moment. To store messages until then, and to delete them
again, costs more than all else that is done with them. Until they are dispatched they count as on their way to the
store: in the quota of their sender, and for what is sent to the same queue after them, which they stay ahead of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import ArrivalsPort, Replies
    from brokerapp.system.timers import Timers

#: Milliseconds after which messages are stored if their consumers took none of the queue in that time. A socket that
#: was full has room again when three quarters of a megabyte were read, which a consumer may do in bursts. With 250 ms a
#: busy machine stored what a consumer of 8 MB/s was about to take.
HOLD_MS = 1_000
#: Share of what a client may have on its way to the store up to which it is held: at all of it, it is not read from.
SHARE_HELD = 0.75


class _Waiting:
    """What waits for one queue: messages and their senders in order, and when consumers took any last."""

    __slots__ = ("moved_ms", "row")

    def __init__(self, now_ms: int) -> None:
        self.moved_ms = now_ms
        self.row: deque[tuple[Client, RoutedBatch]] = deque()


class HeldSends:
    """Holds messages for queues whose consumers have no room for a moment. A part of the broker."""

    def __init__(
        self,
        *,
        timers: Timers,
        arrivals: ArrivalsPort,
        replies: Replies,
        store: Callable[[Client, RoutedBatch], None],
    ) -> None:
        self._timers, self._arrivals, self._replies, self._store = timers, arrivals, replies, store
        self._held: dict[str, _Waiting] = {}
        self._timed: set[str] = set()  # queues for which a timer is set
        self._closed = False

    def holds(self, queues: Iterable[str]) -> bool:
        """Return whether messages of one of these queues are held."""
        return bool(self._held) and not self._held.keys().isdisjoint(queues)

    def take(self, client: Client, batch: RoutedBatch, *, is_behind: bool) -> bool:
        """Hold messages that consumers of their queue would take if they had room; return whether it does."""
        if self._closed or not self._arrivals.may_pass(batch, is_behind=is_behind):
            return False
        if client.pending_bytes + batch.size > SHARE_HELD * client.quota.bytes:
            return False
        [name] = batch.route.groups[0].names
        if name not in self._held:
            self._held[name] = _Waiting(clock.now_ms())
            self._set_timer(name)
        self._held[name].row.append((client, batch))
        client.on_write_started(batch.size)
        return True

    def retry(self, queue: str, *, is_consumed: bool) -> None:
        """Dispatch what is held for a queue as far as its consumers have room now; store it where it has none."""
        if not is_consumed:
            self.store((queue,))
            return
        waiting = self._held[queue]
        while waiting.row:
            client, batch = waiting.row[0]
            passed = self._arrivals.pass_through(batch, is_behind=False)
            if not passed:
                return
            waiting.moved_ms = clock.now_ms()
            client.on_write_done(batch.size)
            self._replies.confirm(client, *batch.receipts[:passed])
            rest = batch.part(passed, len(batch.messages))
            if rest.messages:
                waiting.row[0] = client, rest
                client.on_write_started(rest.size)
                return
            waiting.row.popleft()
        self._held.pop(queue, None)

    def _set_timer(self, queue: str) -> None:
        if queue not in self._timed:
            self._timed.add(queue)
            self._timers.at(self._held[queue].moved_ms + HOLD_MS, lambda: self._on_due(queue))

    def _on_due(self, queue: str) -> None:
        """Store what is held for a queue whose consumers took nothing for too long."""
        self._timed.discard(queue)
        if waiting := self._held.get(queue):
            if clock.now_ms() >= waiting.moved_ms + HOLD_MS:
                self.store((queue,))
            else:
                self._set_timer(queue)

    def store(self, queues: Iterable[str]) -> None:
        """Store what is held for these queues, in order."""
        for queue in queues:
            waiting = self._held.pop(queue, None)
            for client, batch in waiting.row if waiting is not None else ():
                client.on_write_done(batch.size)
                self._store(client, batch)

    def store_of(self, client: Client) -> None:
        """Store what is held of a client, and all that is held for the same queues: it waits until that is done."""
        self.store([queue for queue, each in self._held.items() if any(whose is client for whose, _ in each.row)])

    def close(self) -> None:
        """Store all that is held, and hold nothing any more."""
        self._closed = True
        self.store(list(self._held))
