"""Sends messages for operators as a client would, and reports where messages would be delivered."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from brokerapp.core.destinations.auto_creation import AutoCreation
from brokerapp.core.ports import (
    BrokerContext,
    MessageFactoryPort,
    PreparedBranchesPort,
    ProducersPort,
    RoutingPort,
    TopicSubscribers,
)
from brokerapp.core.publishing.publisher import Publisher
from brokerapp.core.publishing.scheduler import MessageScheduler, has_schedule_headers
from brokerapp.engine.clients.client import Client
from brokerapp.engine.editing import message_properties
from brokerapp.engine.editing.operator_message import OperatorMessage, batch_size, estimate_bytes
from brokerapp.engine.policy.broker_headers import SENT_BY
from brokerapp.engine.routing.route_walk import explain_route
from brokerapp.errors import BrokerError, LimitExceeded, RequestRefused
from brokerapp.model import JsonObject
from brokerapp.model.commands import SendBatchCommand, SendCommand
from brokerapp.model.destination import Destination, list_of

#: Copies of a message that one request may send.
MAX_COUNT = 10_000
#: Messages sent before the first of them must be confirmed.
BATCH_SIZE = 500
#: Hops of a route that are reported.
MAX_HOPS_REPORTED = 200
#: Messages that one request may ask the routes of.
MAX_ROUTES = 500
#: Seconds that messages may be blocked by a limit before the request fails: other requests wait meanwhile.
TIMEOUT_SECONDS = 3.0


class OperatorSend:
    """Sends messages from operators, cancels scheduled ones, and ends transactions that prepared some."""

    def __init__(
        self,
        *,
        branches: PreparedBranchesPort,
        context: BrokerContext,
        creation: AutoCreation,
        subscribers: TopicSubscribers,
        messages: MessageFactoryPort,
        producers: ProducersPort,
        publisher: Publisher,
        routing: RoutingPort,
        scheduler: MessageScheduler,
    ) -> None:
        self._session, self._creation, self._subscribers = context.session, creation, subscribers
        self._producers, self._publisher, self._routing = producers, publisher, routing
        self._scheduler, self._messages, self._branches = scheduler, messages, branches

    async def send(self, message: JsonObject, count: int, actor: str) -> JsonObject:
        """Send copies of a message; return the id of the first, how many were sent, and where such messages go."""
        wanted = OperatorMessage.from_json(message)
        message_properties.check_properties(wanted.properties, may_wait=True)
        for each in Destination.parse_list(wanted.destination):
            self._creation.check_named(each)
        if not 0 < count <= MAX_COUNT:
            raise RequestRefused(f"Cannot send {count} messages at once: the number must be from 1 to {MAX_COUNT}.")
        first, sent, send = "", 0, wanted.send({SENT_BY: actor} if actor else {})
        size = batch_size(BATCH_SIZE, estimate_bytes(wanted.properties, wanted.body))
        receipts = ReceiptSink()
        client = Client(f"{self._session}-operators", receipts, client_id="operators", is_internal=True)
        try:
            while sent < count:
                pending = []
                for _ in range(min(size, count - sent)):
                    pending.append(self._submit(client, receipts, send))
                    first = first or self._messages.last_id
                await _confirmed(pending, sent)
                sent += len(pending)
        finally:
            self._producers.left(client)
        return {"id": first, "count": sent, **self._route(wanted.destination, wanted.properties)}

    async def routes(self, messages: list[tuple[str, dict[str, str]]]) -> list[JsonObject]:
        """Return where messages with these headers would be delivered, or for each why it would not."""
        if len(messages) > MAX_ROUTES:
            raise RequestRefused(f"Too many messages ({len(messages)}): one request can route up to {MAX_ROUTES}.")
        found = []
        for destination, headers in messages:
            try:
                found.append(self._route(destination, headers))
            except BrokerError as error:
                found.append({"queues": [], "topics": [], "error": str(error)})
        return found

    async def cancel_scheduled(self, job: str) -> None:
        """Cancel a scheduled message. Raises RequestRefused if there is none with this job id."""
        found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._scheduler.remove(job, found.set_result)
        if not await found:
            raise RequestRefused(f"scheduled message {job!r} not found")

    async def end_transaction(self, id: str, commit: bool) -> None:
        """Commit a prepared transaction, or roll it back. Raises TransactionNotFound if there is none."""
        ended: asyncio.Future[BrokerError | None] = asyncio.get_running_loop().create_future()
        self._branches.end(id, is_committed=commit, then=ended.set_result)
        error = await ended
        if error is not None:
            raise error

    def _submit(self, client: Client, receipts: ReceiptSink, send: SendCommand) -> asyncio.Future[None]:
        receipt, done = receipts.expect()
        send = replace(send, receipt=receipt)
        try:
            # an operator's schedule holds even where the broker ignores those of clients (schedulerSupport)
            if not (has_schedule_headers(send) and self._scheduler.take(client, send)):
                self._publisher.send(client, SendBatchCommand([send]))
        except BrokerError as error:
            receipts.refuse(error, receipt)
        return done

    def _route(self, destination: str, headers: Mapping[str, str]) -> JsonObject:
        """Return the route of a message by the active definitions."""
        targets = Destination.parse_list(destination)
        for each in targets:
            self._creation.check_named(each)
        headers = {**headers, "destination": (list_of(destination) or targets[0]).stomp}
        explained = [explain_route(headers, each, self._routing.table) for each in targets]
        routes = [found for found, _ in explained]
        return {
            "hops": [
                [str(hop.at), hop.definition, str(hop.target), hop.selector, hop.outcome]
                for _, hops in explained
                for hop in hops[:MAX_HOPS_REPORTED]
            ],
            "queues": [str(copy.destination) for found in routes for copy in found.queues],
            "topics": [
                [str(copy.destination), len(self._subscribers.of(copy.destination))]
                for found in routes
                for copy in found.topics
            ],
        }


async def _confirmed(pending: list[asyncio.Future[None]], sent_before: int) -> None:
    """Wait until all are stored. Raises the first refusal, or LimitExceeded after the timeout."""
    done, blocked = await asyncio.wait(pending, timeout=TIMEOUT_SECONDS)
    if blocked:
        raise LimitExceeded(
            f"{sent_before + len(done)} messages were sent; {len(blocked)} are blocked by flow control and will be"
            " stored when there is space"
        )
    for each in pending:
        each.result()


class ReceiptSink:
    """Sink of an internal client that only sends: completes a future for each receipt."""

    def __init__(self) -> None:
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._numbers = itertools.count(1)

    def expect(self) -> tuple[str, asyncio.Future[None]]:
        """Return a new receipt id and its future."""
        receipt, done = str(next(self._numbers)), asyncio.get_running_loop().create_future()
        self._pending[receipt] = done
        done.add_done_callback(lambda _done: self._pending.pop(receipt, None))
        return receipt, done

    def receipts(self, ids: Sequence[str]) -> None:
        """Complete these receipts."""
        for each in ids:
            if (done := self._pending.get(each)) is not None and not done.done():
                done.set_result(None)

    def refuse(self, error: BrokerError, receipt: str | None) -> None:
        """Fail a receipt."""
        if (done := self._pending.get(receipt or "")) is not None and not done.done():
            done.set_exception(error)

    def deliver(self, *_messages: object) -> None:
        """Ignore messages: the client consumes nothing."""

    def end_of_browse(self, _subscription: object) -> None:
        """Ignore: the client browses nothing."""

    def flush(self) -> None:
        """Ignore: there is no connection."""

    def close(self) -> None:
        """Ignore: there is no connection."""

    def abort(self) -> None:
        """Ignore: there is no connection."""

    def pause_reading(self, held: bool) -> None:
        """Ignore: nothing is read from the client."""

    def heart_beat_times(self) -> tuple[int, int, int]:
        """Return no heart-beats."""
        return 0, 0, 0
