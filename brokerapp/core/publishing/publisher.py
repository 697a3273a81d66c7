"""Publisher: from what clients send in one turn of the event loop to messages with their routes, on their way to the
store.

What does not depend on a message is decided once for all that are sent alike; the rest for each, without leaving the
batch. A message that is refused stops no other.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING

from brokerapp.core.publishing.message_factory import MessageTemplate
from brokerapp.core.publishing.routed_batches import RoutedBatches
from brokerapp.core.publishing.scheduler import has_schedule_headers
from brokerapp.engine.clients.client import Client, RoutedBatch, Transaction
from brokerapp.engine.routing.route_walk import Route
from brokerapp.errors import RequestRefused
from brokerapp.model.broker_path import format_path
from brokerapp.model.commands import RefusedSend, SendBatchCommand, SendCommand
from brokerapp.model.destination import LIST_SEPARATOR, Destination, list_of
from brokerapp.model.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


#: How the keys of messages begin whose clients may send them again (see bridge_dedup.lua).
RESENDABLE = "resent "


class _SendTerms:
    """What was decided for messages of one batch that are sent alike."""

    __slots__ = ("_held", "admitted", "destination", "expires", "route", "template", "timestamp")

    def __init__(self, destination: Destination, admitted: Client) -> None:
        self.destination = destination
        self.admitted = admitted  #: who may send there, as was found last
        self.take_route(None)
        self.expires, self.timestamp = 0, None

    def take_route(self, route: Route | None) -> None:
        """Let this be the route from now on: that of all of them, or None where it depends on the message."""
        self.route = route
        self._held = tuple(route.bound) if route is not None else ()
        self.template: MessageTemplate | None = None

    def template_for(self, send: SendCommand, messages: MessageFactoryPort, now_us: int) -> MessageTemplate:
        """Return what this message has in common with those before it, if that is still so."""
        if self.template is None or send.expires != self.expires or send.timestamp != self.timestamp:
            self.template = messages.template(send, now_us, self._held)
            self.expires, self.timestamp = send.expires, send.timestamp
        return self.template


class _Sends:
    """What is sent at one time: messages on their way to the store, and what was decided for them."""

    __slots__ = ("gathered", "now_us", "terms")

    def __init__(self, client: Client) -> None:
        self.gathered, self.now_us = RoutedBatches(client), time.time_ns() // 1000
        #: By destination, persistence, priority and type; None where they have several destinations.
        self.terms: dict[tuple[str, bool, int, bool], _SendTerms | None] = {}


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
        self._is_joining = False
        self._joined: _Sends | None = None  # what clients have sent since it began to join them

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Publish messages of several clients together, as far as nobody can tell."""
        self._is_joining = True
        try:
            yield
        finally:
            self._is_joining, joined, self._joined = False, self._joined, None
            if joined is not None:
                self._submit(joined.gathered)

    def send(self, client: Client, batch: SendBatchCommand) -> None:
        """Publish messages; the receipts follow when they are stored."""
        sends = self._joined or _Sends(client)
        gathered = sends.gathered
        gathered.client = client
        try:
            for request in batch.requests:
                if isinstance(request, SendCommand):
                    try:
                        self._send(client, request, sends)
                    except RequestRefused as error:
                        transaction = client.transactions.get(request.transaction) if request.transaction else None
                        self._refuse(client, transaction, request.receipt, error)
                elif isinstance(request, RefusedSend):
                    self._replies.refuse(client, request.error, request.receipt)
                else:
                    self._submit(gathered)  # it overtakes nothing
                    self._replies.try_command(client, self._transactions.perform, request)
        finally:
            if self._is_joining and gathered.may_be_joined:
                self._joined = sends
            else:
                self._submit(gathered)

    def _send(self, client: Client, send: SendCommand, sends: _Sends) -> None:
        """Let a message be stored with those gathered so far, or with its transaction. Raises RequestRefused."""
        gathered = sends.gathered
        transaction = client.transaction(send.transaction) if send.transaction is not None else None
        if transaction is not gathered.transaction:
            self._submit(gathered)
            gathered.transaction = transaction
        if transaction is not None and send.may_come_again:
            if send.message_id in transaction.resendable:
                self._replies.confirm(client, send.receipt)
                return
            transaction.resendable.add(send.message_id)
        terms = None
        if send.bridged_from is None and not has_schedule_headers(send):
            terms = self._terms(client, send, sends)
        if terms is None:
            self._send_alone(client, send, gathered)
            return
        key = _known_by(send, transaction) if send.may_come_again else ""
        message, stored, route = self._make(client, terms, send, sends.now_us)
        self._gather(gathered, message, stored, terms.destination, route, send.receipt, key)

    def _refuse(
        self, client: Client, transaction: Transaction | None, receipt: str | None, error: RequestRefused
    ) -> None:
        """Tell the client why. One that awaits no answer may not notice: as in ActiveMQ it cannot commit the rest."""
        if transaction is not None and (receipt is None or client.is_openwire):
            transaction.failure = f"a SEND in it was refused: {error}"
        self._replies.refuse(client, error, receipt)

    def _terms(self, client: Client, send: SendCommand, sends: _Sends) -> _SendTerms | None:
        """What holds for all messages that are sent like this one; None where they have several destinations.

        Raises RequestRefused.
        """
        key = send.destination, send.persistent, send.priority, send.is_bytes
        terms = sends.terms.get(key)
        if terms is not None and terms.admitted is client:
            return terms
        if terms is None and key in sends.terms:
            return None
        targets = Destination.parse_list(send.destination)
        self._admission.admit(client, targets)
        if terms is not None:
            terms.admitted = client
        elif LIST_SEPARATOR not in send.destination:  # the copies of one in a list say so, even if it is alone
            terms = _SendTerms(targets[0], client)
        sends.terms[key] = terms
        return terms

    def _make(
        self, client: Client, terms: _SendTerms, send: SendCommand, now_us: int
    ) -> tuple[Message, bytes, Route]:  # fmt: skip
        """A message, its stored form, and its route."""
        route = self._router.plan(terms.destination)
        if route is not terms.route:  # what was sent before it may have created queues
            terms.take_route(route)
        template = terms.template_for(send, self._messages, now_us)
        made = message = template.make(send.properties, send.body, send.message_id)
        if route is None:
            message, route = self._router.route(made, terms.destination, by=client.client_id)
        if message is made:
            made.converted = send.converted
        if not route.groups:
            return message, b"", route
        encode = template.stored if message is made else Message.stored  # bound queues may hold copies of it
        return message, encode(message), route

    def _send_alone(self, client: Client, send: SendCommand, gathered: RoutedBatches) -> None:
        """Publish a message of which something is to be decided by itself."""
        transaction = gathered.transaction
        if self._scheduler.applies_to(send):
            self._submit(gathered)  # it overtakes nothing
            if self._scheduler.take(client, send):
                return
        placed = self._route(client, send)
        key = _known_by(send, transaction)
        if len(placed) > 1:
            self._submit(gathered)
            if transaction is not None:
                self._transactions.add(client, transaction, placed, [send.receipt])
                return
            client.sent_count += 1
            self._router.record_sent(placed, placed[0].message.born_us)
            self._writer.perform(client, placed, [send.receipt], dedup_key=key)
            self._expiration.expire_on_arrival(placed)
            return
        [each] = placed
        self._gather(gathered, each.message, each.stored[0], each.destination, each.route, send.receipt, key)

    def _gather(
        self, gathered: RoutedBatches, message: Message, stored: bytes, destination: Destination, route: Route,
        receipt: str | None, key: str,
    ) -> None:  # fmt: skip
        """Let a message go with those gathered so far, or after them where they are of others and it may not join."""
        if not gathered.may_take(message, route):
            self._submit(gathered)
        gathered.add(message, stored, destination, route, receipt, key)
        if gathered.is_full:
            self._submit(gathered)

    def _route(self, client: Client, send: SendCommand) -> list[RoutedBatch]:
        """A message with its routes, one for each of its destinations."""
        targets = Destination.parse_list(send.destination)
        sent_to = send.sent_to or list_of(send.destination)
        self._admission.admit(client, targets)
        message = self._messages.message(send)
        return [self._router.prepare(message, each, sent_to, client, noted=False) for each in targets]

    def _submit(self, gathered: RoutedBatches) -> None:
        """Let what was gathered so far be stored, or wait for the COMMIT of its transaction."""
        placed, client, transaction = gathered.placed, gathered.client, gathered.transaction
        if not placed:
            return
        gathered.clear()
        if transaction is not None:
            self._add(client, transaction, placed)
            return
        for each in placed:
            for sender in each.senders:
                sender.sent_count += 1
            self._router.record_sent((each,), each.message.born_us)
        self._writer.send(placed)
        self._expiration.expire_on_arrival(placed)

    def _add(self, client: Client, transaction: Transaction, placed: Sequence[RoutedBatch]) -> None:
        """Let messages wait for a COMMIT, each by itself where a limit refuses some of them."""
        try:
            self._transactions.add(
                client, transaction, placed, [receipt for each in placed for receipt in each.receipts]
            )
        except RequestRefused:
            for each in sorted([part for batch in placed for part in batch.split()], key=attrgetter("places")):
                try:
                    self._transactions.add(client, transaction, [each], each.receipts)
                except RequestRefused as error:
                    self._refuse(client, transaction, each.receipts[0], error)


def _known_by(send: SendCommand, transaction: Transaction | None) -> str:
    """Return what tells a message, which may come again, from all others, however often it does; "": it may not.

    One that is part of a transaction comes again with the whole of it, if nothing of that was kept.
    """
    if transaction is not None or not (send.persistent or send.receipt is not None):
        return ""
    if send.may_come_again:
        return f"{RESENDABLE}{send.message_id}"
    return _bridged_key(send)


def _bridged_key(send: SendCommand) -> str:
    """Return the key of a message that another broker hands over; "": it is new here.

    To a queue it may come again by a longer path, when it went back and forth: that is no repetition. To a topic it is.
    """
    passed_on = send.bridged_from
    if passed_on is None or not passed_on.path:
        return ""
    sent_to_topic = not Destination.parse_list(send.destination)[0].is_queue
    return passed_on.message_id if sent_to_topic else f"{format_path(passed_on.path)} {passed_on.message_id}"
