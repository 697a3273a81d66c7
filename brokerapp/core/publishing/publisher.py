"""Publisher: from what a client sends in one read to messages with their routes, on their way to the store.

What does not depend on a message is decided once for all that are sent alike; the rest for each, without leaving the
batch. A message that is refused stops no other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from brokerapp.core.publishing.message_factory import MessageTemplate
from brokerapp.core.publishing.routed_batches import RoutedBatches
from brokerapp.core.publishing.scheduler import MARK as SCHEDULE_MARK
from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.engine.routing.route_walk import Route
from brokerapp.errors import RequestRefused
from brokerapp.model.broker_path import format_path
from brokerapp.model.commands import RefusedSend, SendBatchCommand, SendCommand
from brokerapp.model.destination import Destination, list_of
from brokerapp.model.message import Message

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        ExpirationPort,
        MessageFactoryPort,
        MessageRouterPort,
        MessageWriterPort,
        Replies,
        SchedulerPort,
        SendAdmissionPort,
        TransactionsPort,
    )


class _SendTerms:
    """What was decided for messages of one batch that are sent alike."""

    __slots__ = ("_held", "destination", "expires", "route", "template", "timestamp")

    def __init__(self, destination: Destination, route: Route | None) -> None:
        self.destination = destination
        self.route = route  #: that of all of them; None: it depends on the message
        self._held = tuple(route.bound) if route is not None else ()
        self.template: MessageTemplate | None = None
        self.expires, self.timestamp = 0, None

    def template_for(self, send: SendCommand, messages: MessageFactoryPort, now_us: int) -> MessageTemplate:
        """Return what this message has in common with those before it, if that is still so."""
        if self.template is None or send.expires != self.expires or send.timestamp != self.timestamp:
            self.template = messages.template(send, now_us, self._held)
            self.expires, self.timestamp = send.expires, send.timestamp
        return self.template


class Publisher:
    """Publishes what clients send. A part of the broker."""

    def __init__(
        self,
        *,
        admission: SendAdmissionPort,
        expiration: ExpirationPort,
        messages: MessageFactoryPort,
        replies: Replies,
        router: MessageRouterPort,
        scheduler: SchedulerPort,
        transactions: TransactionsPort,
        writer: MessageWriterPort,
    ) -> None:
        self._admission, self._expiration, self._messages, self._replies = admission, expiration, messages, replies
        self._router, self._scheduler, self._transactions, self._writer = router, scheduler, transactions, writer

    def send(self, client: Client, batch: SendBatchCommand) -> None:
        """Publish messages; the receipts follow when they are stored."""
        gathered, now_us = RoutedBatches(client), time.time_ns() // 1000
        known: dict[tuple[str, bool, int, bool], _SendTerms | None] = {}
        for send in batch.sends:
            try:
                if isinstance(send, RefusedSend):
                    raise send.error
                if send.transaction is None and send.bridged_from is None and SCHEDULE_MARK not in send.properties:
                    key = send.destination, send.persistent, send.priority, send.is_bytes
                    terms = known[key] if key in known else known.setdefault(key, self._terms(client, send))
                    if terms is not None:
                        self._gather(gathered, terms, send, now_us)
                        continue
                self._send_alone(client, send, gathered)
            except RequestRefused as error:
                self._replies.refuse(client, error, send.receipt)
        self._submit(gathered)

    def _terms(self, client: Client, send: SendCommand) -> _SendTerms | None:
        """What holds for all messages that are sent like this one; None where they have several destinations."""
        [destination, *others] = targets = Destination.parse_list(send.destination)
        self._admission.admit(client, targets)
        return None if others else _SendTerms(destination, self._router.plan(destination))

    def _gather(self, gathered: RoutedBatches, terms: _SendTerms, send: SendCommand, now_us: int) -> None:
        template = terms.template_for(send, self._messages, now_us)
        made, destination, route = template.make(send.properties, send.body), terms.destination, terms.route
        message = made
        if route is None:
            message, route = self._router.route(made, destination, by=gathered.client.client_id)
        encode = template.stored if message is made else Message.stored  # bound queues may hold copies of it
        gathered.add(message, encode(message) if route.groups else b"", destination, route, send.receipt)
        if gathered.is_full:
            self._submit(gathered)

    def _send_alone(self, client: Client, send: SendCommand, gathered: RoutedBatches) -> None:
        """Publish a message of which something is to be decided by itself."""
        if self._scheduler.concerns(send):
            self._submit(gathered)  # it overtakes nothing
            if self._scheduler.take(client, send):
                return
        if send.transaction is not None:
            self._send_in_transaction(client, send)
            return
        placed = self._route(client, send)
        key = _dedup_key(send) if placed[0].message.persistent or send.receipt is not None else ""
        if len(placed) > 1:
            self._submit(gathered)
            self._router.record_sent(placed, placed[0].message.born_us)
            self._writer.perform(client, placed, [send.receipt], dedup_key=key)
            self._expiration.expire_on_arrival(placed)
            return
        [each] = placed
        gathered.add(each.message, each.stored[0], each.destination, each.route, send.receipt, key)
        if gathered.is_full:
            self._submit(gathered)

    def _route(self, client: Client, send: SendCommand) -> list[RoutedBatch]:
        """A message with its routes, one for each of its destinations."""
        targets, sent_to = Destination.parse_list(send.destination), list_of(send.destination)
        self._admission.admit(client, targets)
        message = self._messages.message(send)
        return [self._router.prepare(message, each, sent_to, client, noted=False) for each in targets]

    def _send_in_transaction(self, client: Client, send: SendCommand) -> None:
        """Publish in a transaction: nobody sees it before COMMIT.

        A client that asks no receipt may not notice what was refused, so it cannot commit the rest, as in ActiveMQ.
        """
        transaction = client.transaction(str(send.transaction))
        try:
            self._transactions.add(client, transaction, self._route(client, send))
        except RequestRefused as error:
            if send.receipt is None:
                transaction.failure = str(error)
            raise
        client.sent_count += 1
        self._replies.confirm(client, send.receipt)

    def _submit(self, gathered: RoutedBatches) -> None:
        """Let what was gathered so far be stored."""
        placed, client = gathered.placed, gathered.client
        if not placed:
            return
        gathered.clear()
        for each in placed:
            client.sent_count += len(each.messages)
            self._router.record_sent((each,), each.message.born_us)
        self._writer.send(client, placed)
        self._expiration.expire_on_arrival(placed)


def _dedup_key(send: SendCommand) -> str:
    """What tells a message that another broker hands over from all others, however often it does; "": it is new here.

    To a queue it may come again by a longer path, when it went back and forth: that is no repetition. To a topic it is.
    """
    passed_on = send.bridged_from
    if passed_on is None or not passed_on.path:
        return ""
    sent_to_topic = not Destination.parse_list(send.destination)[0].is_queue
    return passed_on.message_id if sent_to_topic else f"{format_path(passed_on.path)} {passed_on.message_id}"
