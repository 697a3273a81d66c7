"""Publishing: from what a client sends to copies in queues and at subscribers.

`send` finds the message's way and submits a request to the committer; when the store has done it, `finish` counts,
offers the copies to those who consume, and confirms.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from brokerapp.actions import Send
from brokerapp.client import Client, Placed
from brokerapp.destination import Destination
from brokerapp.engine.message_log import Entry, MessageLog, Subscription
from brokerapp.engine.routing import Route, route
from brokerapp.errors import LimitExceeded
from brokerapp.message import Copy, Message, escape
from brokerapp.recording.schema import FORWARD
from brokerapp.store import Unit

if TYPE_CHECKING:
    from brokerapp.broker import Broker


class Group:
    """Queues that get a copy of the same message, each once: as the broker, the store and the recorder name them."""

    __slots__ = ("logs", "names", "rows")

    def __init__(self) -> None:
        self.logs: dict[MessageLog, None] = {}
        self.rows: list[tuple[str, str, str]] = []  #: name, original and shown destination, see Unit
        self.names: list[str] = []

    def add(self, log: MessageLog, copy: Copy) -> None:
        """One queue more."""
        self.logs[log] = None
        self.names.append(log.name)
        original, shown = (each.stomp if each else "" for each in (copy.original, copy.shown))
        self.rows.append((log.name, original, shown))


class ClientUnit(Unit):
    """A unit with the client that waits for it. A class of its own because there is one for every message."""

    __slots__ = ("client", "placed", "publishing", "receipt", "settled", "size", "undo")

    def __init__(
        self,
        publishing: Publishing,
        client: Client,
        placed: Sequence[Placed],
        appends: list[tuple[bytes, list[tuple[str, str, str]]]],
        settled: Sequence[tuple[Subscription, str, Entry]],
        settles: Sequence[Entry],
        receipt: str | None,
        undo: Callable[[], None] | None,
    ) -> None:
        self.settled = settled
        self.appends, self.settles, self.moves = appends, settles, False
        self.publishing, self.client, self.placed, self.receipt, self.undo = publishing, client, placed, receipt, undo
        self.size = sum([len(each.stored) for each in placed])

    def done(self, seq: int, refused: bool) -> None:
        self.publishing.finish(self, seq, refused)


class Publishing:
    """What concerns sending. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._prefix = f"ID:{broker.name}-{broker.session}:"
        self._escaped_prefix = escape(self._prefix)
        self._messages = 0

    def send(self, client: Client, send: Send) -> None:
        """Publish. Raises RequestRefused; the receipt follows when the message is stored."""
        transaction = client.transaction(send.transaction) if send.transaction is not None else None
        message = self._message(send)
        targets = Destination.parse_list(send.destination)
        for each in targets:
            self._broker.require(client, "write", each)
        placed = [self.place(client, message, each) for each in targets]
        client.sent += 1
        if transaction is None:
            if message.persistent or client.pending or not self._passed_through(placed):
                self.submit(client, placed, (), send.receipt)
            else:
                self._broker.confirm(client, send.receipt)
            return
        size = sum([len(each.stored) for each in placed])
        client.check_room(transaction, size)
        transaction.placed += placed
        transaction.bytes += size
        transaction.copies += sum([len(group.rows) for each in placed for group in each.route.groups])
        self._broker.confirm(client, send.receipt)

    def _passed_through(self, placed: Sequence[Placed]) -> bool:
        """Give a message that need not be kept straight to the one consumer that waits for it, if there is one."""
        first = placed[0]
        groups = first.route.groups
        if len(placed) > 1 or len(groups) != 1 or len(groups[0].logs) > 1 or first.route.topics or first.message.grouped:
            return False
        [log], [(name, original, shown)] = groups[0].logs, groups[0].rows
        consumer = log.pass_through()
        if consumer is None:
            return False
        message = first.message
        log.counts.EnqueueCount += 1
        log.counts.EnqueueBytes += len(message.body)
        self._broker.recorder.copies(FORWARD, message.born_us, message, str(first.destination), groups[0].names)
        entry = Entry(name, 0, message, original=original, shown=shown)
        self._broker.delivery.give(log, consumer, [entry], message.born_us)
        return True

    def _message(self, send: Send) -> Message:
        now_us = time.time_ns() // 1000
        self._messages += 1
        number = self._messages
        timestamp = now_us // 1000 if send.timestamp is None else send.timestamp
        persistent = "persistent:true\n" if send.persistent else ""
        head = (
            f"message-id:{self._escaped_prefix}{number}\nexpires:{send.expires}\npriority:{send.priority}\ntimestamp:{timestamp}\n"
            f"{persistent}{send.properties}"
        )
        id = f"{self._prefix}{number}"
        grouped = "JMSXGroupID:" in send.properties
        return Message(id, head.encode(), send.body, send.persistent, send.priority, send.expires, now_us, grouped)

    def place(self, client: Client, message: Message, destination: Destination) -> Placed:
        """Find the message's way, and let the queues on it exist."""
        self._broker.recorder.enqueue(message.born_us, message, str(destination))
        if destination not in client.producing_to:
            client.producing_to.add(destination)
            self._broker.count_producer(destination, 1)
        found = route(message, destination, self._broker.topology)
        if found.groups is None:
            found.groups = self.groups(found)
        return Placed(message, message.stored() if found.groups else b"", destination, found)

    def groups(self, found: Route) -> list[Group]:
        """The queues of a route, which exist from now on, in groups of which none has a queue twice."""
        groups: list[Group] = []
        for copy in found.queues:
            log = self._broker.queues.ensure(copy.destination)
            group = next((each for each in groups if log not in each.logs), None)
            if group is None:
                groups.append(group := Group())
            group.add(log, copy)
        return groups

    def submit(
        self,
        client: Client,
        placed: Sequence[Placed],
        settled: Sequence[tuple[Subscription, str, Entry]],
        receipt: str | None,
        undo: Callable[[], None] | None = None,
    ) -> None:
        """Let it happen, all or nothing; then tell the client if it asked. `undo` is called when a limit refuses it."""
        appends = [(each.stored, group.rows) for each in placed for group in each.route.groups]
        stored = [entry for _, _, entry in settled if entry.seq] if settled else settled
        if not appends and not stored and not client.pending:
            self._broker.settling.account(settled)
            self.happened(placed, 0)
            self._broker.confirm(client, receipt)
            return
        request = ClientUnit(self, client, placed, appends, settled, stored, receipt, undo)
        client.started_unit(request.size)
        self._broker.committer.submit(request)

    def finish(self, request: ClientUnit, seq: int, refused: bool) -> None:
        """The store did what a client asked, or a limit stood in the way."""
        client, placed = request.client, request.placed
        client.ended_unit(request.size)
        if not refused:
            if request.settled:
                self._broker.settling.account(request.settled)
            self.happened(placed, seq)
            self._broker.confirm(client, request.receipt)
            return
        if request.undo is not None:
            request.undo()
        self._broker.refuse(
            client,
            LimitExceeded(f"the broker's store is full: nothing of this was kept{_named(placed)}"),
            request.receipt,
        )

    def happened(self, placed: Sequence[Placed], seq: int) -> None:
        for each in placed:
            for group in each.route.groups:
                self._stored(each, group, seq)
                seq += 1
            for copy in each.route.topics:
                self._broker.delivery.publish(each.message, copy)

    def _stored(self, placed: Placed, group: Group, seq: int) -> None:
        """The store holds these copies: count them, and offer them to those who consume now."""
        message, size, body_size = placed.message, len(placed.stored), len(placed.message.body)
        payload = seq if len(group.logs) > 1 else 0
        touched, changed = self._broker.delivery.touched, self._broker.stats.changed
        for log, (name, original, shown) in zip(group.logs, group.rows, strict=True):
            counts = log.counts
            counts.EnqueueCount += 1
            counts.EnqueueBytes += body_size
            changed.add(counts)
            if log.consumers:
                log.offer(Entry(name, seq, message, payload, size, original, shown))
                touched[log] = None
            else:
                log.offer_unseen()
        self._broker.recorder.copies(FORWARD, message.born_us, message, str(placed.destination), group.names)


def _named(placed: Sequence[Placed]) -> str:
    return " (" + ", ".join(str(each.destination) for each in placed[:5]) + ")" if placed else ""
