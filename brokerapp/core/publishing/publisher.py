"""Publishing: from what a client sends to a message with its way.

What must be stored goes on in message_writer.py; what need not goes straight to who waits for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.core.writes.pending_write import NOTHING, Given
from brokerapp.engine.clients.client import Client, RoutedMessage, Transaction
from brokerapp.engine.dispatch.append_group import AppendGroup
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.persistency import forced_persistency
from brokerapp.engine.policy.time_stamping import apply_timestamps
from brokerapp.engine.routing.route_walk import Route, annotate_bound, exclude_bound, exclude_logs, route
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.model.broker_path import format_path
from brokerapp.model.commands import SendCommand
from brokerapp.model.destination import Destination, list_of
from brokerapp.model.message import BodySizes, Message, RoutedCopy, escape
from brokerapp.store import PendingWrite
from brokerapp.tracing.schema import BRIDGE_RECEIVE, FORWARD, ROLLBACK

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        ConcurrentDispatchPort,
        CreationPort,
        DispatcherPort,
        DurablesPort,
        ExpirationPort,
        FlowControlPort,
        MessageWriterPort,
        ProducersPort,
        Queues,
        Replies,
        RoutingPort,
        TemporariesPort,
    )
    from brokerapp.engine.clients.quotas import Quotas

logger = logging.getLogger(__name__)


def handover_key(send: SendCommand) -> str:
    """What tells a message that another broker hands over from all others, however often it does; "": it is new here.

    To a queue it may come again by a longer path, when it went back and forth: that is no repetition. To a topic it is.
    """
    passed_on = send.bridged_from
    if passed_on is None or not passed_on.path:
        return ""
    sent_to_topic = not Destination.parse_list(send.destination)[0].is_queue
    return passed_on.message_id if sent_to_topic else f"{format_path(passed_on.path)} {passed_on.message_id}"


class Publisher:
    """What concerns sending. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        concurrent: ConcurrentDispatchPort,
        creation: CreationPort,
        dispatcher: DispatcherPort,
        durables: DurablesPort,
        expiration: ExpirationPort,
        flow_control: FlowControlPort,
        producers: ProducersPort,
        queues: Queues,
        quotas: Quotas,
        replies: Replies,
        routing: RoutingPort,
        temporaries: TemporariesPort,
        writer: MessageWriterPort,
    ) -> None:
        self._settings, self._commits, self._tracer = context.settings, context.commits, context.tracer
        self._authorizer, self._concurrent, self._creation = authorizer, concurrent, creation
        self._dispatcher, self._durables, self._expiration = dispatcher, durables, expiration
        self._flow_control, self._producers, self._queues = flow_control, producers, queues
        self._quotas, self._replies, self._routing = quotas, replies, routing
        self._temporaries, self._writer = temporaries, writer
        self._prefix = f"ID:{context.name}-{context.session}:"
        self._first_line = f"message-id:{escape(self._prefix)}"
        self._messages = 0

    def send(self, client: Client, send: SendCommand) -> None:
        """Publish. Raises RequestRefused; the receipt follows when the message is stored."""
        if send.transaction is not None:
            self._send_in(client.transaction(send.transaction), client, send)
            return
        message, placed = self._placed(client, send)
        known_by = handover_key(send) if message.persistent or send.receipt is not None else ""
        if (
            message.persistent
            or known_by
            or client.pending_writes
            or client.blocked_sends
            or not self._passed_through(placed)
        ):
            given = self._give_early(placed[0]) if len(placed) == 1 and not known_by else NOTHING
            self._writer.submit(client, placed, (), send.receipt, given=given, handover=known_by)
        else:
            self._replies.confirm(client, send.receipt)
        if message.expires:
            self._expiration.expire_on_arrival(placed)

    def _placed(self, client: Client, send: SendCommand) -> tuple[Message, list[RoutedMessage]]:
        """What a client sends, as a message with its ways."""
        message = self.message(send)
        targets = Destination.parse_list(send.destination)
        for each in targets:
            self._authorizer.require(client, "write", each)
        sent_to = list_of(send.destination)
        placed = [
            self.route_message(client, message, each, sent_to, noted=send.transaction is None) for each in targets
        ]
        client.sent_count += 1
        return message, placed

    def _send_in(self, transaction: Transaction, client: Client, send: SendCommand) -> None:
        """Publish in a transaction: nobody sees it before COMMIT.

        A client that asks no receipt may not notice what was refused, so it cannot commit the rest, as in ActiveMQ.
        """
        try:
            _, placed = self._placed(client, send)
            size = sum([len(each.stored) for each in placed])
            client.check_transaction_limits(transaction, size)
            self._quotas.reserve(size)
        except RequestRefused as error:
            if send.receipt is None:
                transaction.failure = str(error)
            raise
        transaction.messages += placed
        transaction.bytes += size
        transaction.copy_count += sum([len(group.rows) for each in placed for group in each.route.groups])
        self._replies.confirm(client, send.receipt)

    def _give_early(self, placed: RoutedMessage) -> Given:
        if not self._flow_control.is_free((placed,)):
            return NOTHING
        return self._concurrent.offer([placed.message], [len(placed.stored)], placed.route.groups)

    def _passed_through(self, placed: Sequence[RoutedMessage]) -> bool:
        """Give a message that need not be kept straight to the one consumer that waits for it, if there is one."""
        first = placed[0]
        groups = first.route.groups
        if len(placed) > 1 or len(groups) != 1 or len(groups[0].logs) > 1 or first.route.topics:
            return False
        return self.pass_through((first.message,), groups[0], str(first.destination))

    def pass_through(self, messages: Sequence[Message], group: AppendGroup, sent_to: str) -> bool:
        """Give messages for one queue straight to those who wait there for just such, if they take them all."""
        [log], [(name, original, shown)] = group.logs, group.rows
        given = log.dispatch_unstored(
            [LogEntry(name, 0, message, original_destination=original, shown_destination=shown) for message in messages]
        )
        if not given:
            return False
        self._writer.count_arrivals(log, messages, BodySizes.of(messages))
        self._tracer.record(FORWARD, messages[0].born_us, messages, group.names, sent_to)
        for consumer, entries in given:
            self._dispatcher.dispatch(log, consumer, entries)
        return True

    @property
    def last_id(self) -> str:
        """The message-id that was given last."""
        return f"{self._prefix}{self._messages}"

    def next_id(self) -> str:
        """A message-id nobody had."""
        self._messages += 1
        return f"{self._prefix}{self._messages}"

    def message(self, send: SendCommand) -> Message:
        """What a client sends, as a message; what another broker passes on keeps its id and its path."""
        [made] = self.messages(send, (send.body,))
        passed_on = send.bridged_from
        if passed_on is None:
            return made
        head = made.head[made.head.index(b"\n") :]
        id = f"message-id:{escape(passed_on.message_id)}".encode()
        return Message(
            passed_on.message_id, id + head, made.body, made.persistent, made.priority, made.expires, made.born_us,
            made.has_group, path=passed_on.path, held=passed_on.held,
        )  # fmt: skip

    def messages(self, send: SendCommand, bodies: Sequence[bytes]) -> list[Message]:
        """New messages, like what was sent but with these bodies."""
        now_us = time.time_ns() // 1000
        if (rules := self._settings.time_stamping) is not None and send.bridged_from is None:
            timestamp, expires = apply_timestamps(rules, send.timestamp, send.expires, now_us // 1000)
            send = replace(send, timestamp=timestamp, expires=expires)
        persistent = self._is_persistent(send)
        timestamp = now_us // 1000 if send.timestamp is None else send.timestamp
        rest = f"\nexpires:{send.expires}\npriority:{send.priority}\ntimestamp:{timestamp}\n"
        rest += ("persistent:true\n" if persistent else "") + send.properties
        first = self._messages + 1
        self._messages += len(bodies)
        grouped = "JMSXGroupID:" in send.properties
        made = []
        for number, body in enumerate(bodies, first):
            length = f"content-length:{len(body)}\n" if send.is_bytes else ""
            head = f"{self._first_line}{number}{rest}{length}".encode()
            id = f"{self._prefix}{number}"
            made.append(Message(id, head, body, persistent, send.priority, send.expires, now_us, grouped))
        return made

    def _is_persistent(self, send: SendCommand) -> bool:
        """As its sender has it, unless the broker or, before that, the policy of where it is sent says otherwise."""
        topology, forced = self._routing.table, self._settings.force_persistency
        if topology.forces_persistency:
            forced = forced_persistency(map(topology.policy_for, Destination.parse_list(send.destination)), forced)
        return send.persistent if forced is None else forced

    def route_message(
        self,
        client: Client,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        *,
        noted: bool = True,
    ) -> RoutedMessage:
        """Find the message's way, and let the queues on it exist. `sent_to` is the list it is an element of.

        Unless it is `noted`, that it was sent is recorded later: see record_sent.
        """
        if destination not in client.producing_to:
            self.check(destination)
            if destination.is_temporary:
                self._temporaries.sent_by(client, destination)
            self._producers.began(client, destination)
        return self.prepare(message, destination, sent_to, client, noted=noted)

    def check(self, destination: Destination) -> None:
        """Raise RequestRefused when, as things are, no client may send there."""
        if destination.is_temporary:
            self._temporaries.check(destination)
        elif destination.is_queue and destination.address is None:
            self._queues.check_direct(destination)
        self._creation.check(destination)

    def prepare(
        self,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        sender: Client | None = None,
        *,
        noted: bool = True,
    ) -> RoutedMessage:
        """The way of a message; its queues exist from now on. Without a sender no client sends it right now."""
        by = sender.client_id if sender is not None else ""
        if noted:
            self._record_sent(message, destination, sender, message.born_us)
        held = message.held if sender is not None and sender.bridge else ()
        message, found = self.route(message, destination, sent_to, by, held)
        return RoutedMessage(message, message.stored() if found.groups else b"", destination, found, sender)

    def record_sent(self, placed: Sequence[RoutedMessage], now_us: int) -> None:
        """Record that these were sent: those of a transaction, when it is committed."""
        for each in placed:
            self._record_sent(each.message, each.destination, each.sender, now_us)

    def _record_sent(self, message: Message, destination: Destination, sender: Client | None, ts_us: int) -> None:
        by, sent_to, recorder = sender.client_id if sender is not None else "", str(destination), self._tracer
        if sender is not None and sender.bridge:
            recorder.record_one(BRIDGE_RECEIVE, ts_us, message, sent_to, sent_to, by, None)
        recorder.record_enqueue(ts_us, (message,), sent_to, by or None)

    def record_rolled_back(self, placed: Sequence[RoutedMessage], why: str) -> None:
        """Record that these were sent in a transaction of which nothing came."""
        now_us = time.time_ns() // 1000
        for each in placed:
            sent_to, by = str(each.destination), each.sender.client_id if each.sender is not None else None
            self._tracer.record_one(ROLLBACK, now_us, each.message, sent_to, sent_to, by, why)

    def route(
        self,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        by: str = "",
        held: tuple[str, ...] = (),
        *,
        is_moved: bool = False,
    ) -> tuple[Message, Route]:
        """A message as it takes its way, and that way, whose queues exist from now on; see route.

        Bound queues in `held` hold a copy of it elsewhere. What is kept for bridges to where it came from is spared.
        """
        found = route(message, destination, self._routing.table, sent_to, by, is_moved=is_moved)
        if held:
            found = exclude_bound(found, held)
        if message.path and (back := self._durables.leading_back(message.path)):
            found = exclude_logs(found, back)
        message = annotate_bound(message, found, held)
        if found.groups is None:
            found.groups = self.append_groups(found)
        return message, found

    def publish_internal(self, message: Message, destination: Destination) -> None:
        """Publish what no client sent, but the broker itself. There is nobody to tell when it has no way."""
        try:
            message, found = self.route(message, destination)
            self._by_itself(message, destination, found)
        except BrokerError as error:
            logger.warning("%s was not published to %s: %s", message.id, destination, error)

    def copy_to_log(self, message: Message, copy: RoutedCopy) -> None:
        """Let a log have a copy of a message that was published before."""
        self._by_itself(message, copy.destination, Route(queues=[copy]))

    def _by_itself(self, message: Message, destination: Destination, found: Route) -> None:
        if found.groups is None:
            found.groups = self.append_groups(found)
        placed = RoutedMessage(message, message.stored() if found.groups else b"", destination, found)
        if not found.groups:
            self._writer.on_committed([placed], 0)
            return

        def done(seq: int, refused: str) -> None:
            if not refused:
                self._writer.on_committed([placed], seq)

        self._commits.submit(PendingWrite([(placed.stored, group.rows) for group in found.groups], callback=done))

    def append_groups(self, found: Route) -> list[AppendGroup]:
        """The logs of a route, whose queues exist from now on, in groups of which none has a log twice."""
        groups: list[AppendGroup] = []
        for copy in found.queues:
            log = self._queues.ensure_target(copy.destination)
            if log is None:
                continue
            group = next((each for each in groups if log not in each.logs), None)
            if group is None:
                groups.append(group := AppendGroup())
            group.add(log, copy, bool(found.dropping) and copy in found.dropping)
        return groups
