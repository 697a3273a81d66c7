"""RoutedBatches: collects what clients send in one turn of the event loop, by the routes of the messages."""

from __future__ import annotations

from brokerapp.engine.clients.client import Client, RoutedBatch, Transaction
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.routing.route_walk import Route
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message

#: Copies, and bytes of messages, that one write may have the store make, so that commits stay as large as is wanted.
MAX_COPIES = 5_000
MAX_BYTES = 1024 * 1024
#: Logs of a route up to which messages join earlier ones across others: to look at more costs more than it saves.
MAX_LOGS_LOOKED_AT = 16


class RoutedBatches:
    """Messages of clients, in an order that no log and no subscriber can tell from theirs.

    `client` is the sender of what is added.
    """

    __slots__ = ("_are_stored", "_last_of", "_last_to", "bytes", "client", "copies", "count", "placed", "transaction")

    def __init__(self, client: Client) -> None:
        self.client = client
        self.transaction: Transaction | None = None  #: the one that all of them belong to
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.placed: list[RoutedBatch] = []
        self._last_of: dict[MessageLog, RoutedBatch] = {}  # the last of them that goes to a log
        self._last_to: dict[Destination, RoutedBatch] = {}  # the last of them that goes to topics alone
        self.copies = self.bytes = self.count = 0
        self._are_stored = True  # they are persistent, and go to queues only

    @property
    def may_be_joined(self) -> bool:
        """Return whether messages of other clients may go to the store with these.

        What is not stored, and what topics get, is handed over by sender.
        """
        return self._are_stored and self.transaction is None

    def may_take(self, message: Message, route: Route) -> bool:
        """Return whether a message of the client may join these: those of others if it is stored, as they are."""
        return not self.placed or self.placed[0].senders[0] is self.client or _is_stored(message, route)

    @property
    def is_full(self) -> bool:
        """Whether no more should join."""
        return self.copies >= MAX_COPIES or self.bytes >= MAX_BYTES

    def add(
        self, message: Message, stored: bytes, destination: Destination, route: Route, receipt: str | None,
        dedup_key: str = "",
    ) -> None:  # fmt: skip
        """Let a message join those that take the same route."""
        each = self.placed[-1] if self.placed else None
        if each is None or each.route is not route or each.destination is not destination:
            each = self._batch_of(destination, route)
        each.messages.append(message)
        each.stored.append(stored)
        each.senders.append(self.client)
        each.receipts.append(receipt)
        self._are_stored = self._are_stored and _is_stored(message, route)
        if dedup_key or each.dedup_keys:  # a key for each message, or none at all
            each.dedup_keys += [""] * (len(each.messages) - len(each.dedup_keys) - 1) + [dedup_key]
        each.places.append(self.count)
        self.count += 1
        self.bytes += len(stored)
        for group in route.groups:
            self.copies += len(group.rows)

    def add_batch(self, batch: RoutedBatch) -> None:
        """Let messages of this client join those that take the same route; where copies may be dropped, each is alone.

        They have been confirmed already, and say themselves where they were sent.
        """
        count = len(batch.messages)
        self.count += count
        if batch.route.dropping:
            self.placed += (parts := batch.split())
            self._note_last(parts[-1])
            return
        each = self._batch_of(batch.destination, batch.route)
        each.messages += batch.messages
        each.stored += batch.stored
        each.senders += [self.client] * count
        each.places += batch.places
        self.bytes += sum(map(len, batch.stored))
        self.copies += count * sum([len(group.rows) for group in batch.route.groups])

    def _batch_of(self, destination: Destination, route: Route) -> RoutedBatch:
        if not route.groups:
            return self._topic_batch_of(destination, route)
        logs = [log for group in route.groups for log in group.logs]
        if self._last_of and not route.topics and len(logs) <= MAX_LOGS_LOOKED_AT:
            each = self._last_of.get(logs[0])
            if each is not None and each.route is route and each.destination == destination:
                is_last = [self._last_of.get(log) is each for log in logs]
                if all(is_last):
                    return each
        self._note_last(new := self._begin(destination, route))
        return new

    def _note_last(self, batch: RoutedBatch) -> None:
        """Note what came last to its logs: what comes later does not join what is before it."""
        if batch.route.topics:  # who listens gets these when they are stored, and after them what comes later
            self._last_to.clear()
        self._last_of.update(dict.fromkeys([log for group in batch.route.groups for log in group.logs], batch))

    def _topic_batch_of(self, destination: Destination, route: Route) -> RoutedBatch:
        """Return the batch of messages to topics alone; their places tell the order among those to other topics."""
        each = self._last_to.get(destination)
        if each is None or each.route is not route:
            each = self._last_to[destination] = self._begin(destination, route)
        return each

    def _begin(self, destination: Destination, route: Route) -> RoutedBatch:
        self.placed.append(new := RoutedBatch([], [], destination, route))
        return new


def _is_stored(message: Message, route: Route) -> bool:
    """Return whether a message goes to the store, and to nobody before."""
    return message.persistent and bool(route.groups) and not route.topics
