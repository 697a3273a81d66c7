"""Sending by operators: a message from the console goes the way of any client's, and who sent it is told where it came.

The inner client below sends; what the broker confirms or refuses is handed to whoever waits for it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from brokerapp.core.broker import Broker
from brokerapp.engine.clients.client import Client
from brokerapp.engine.editing import message_properties
from brokerapp.engine.editing.operator_message import OperatorMessage, batch_size, estimate_bytes
from brokerapp.engine.policy.broker_headers import SENT_BY
from brokerapp.engine.routing.route_walk import explain_route
from brokerapp.errors import BrokerError, LimitExceeded, RequestRefused
from brokerapp.model.commands import SendCommand
from brokerapp.model.destination import Destination, list_of

#: Messages alike that one request may send.
MAX_COUNT = 10_000
#: Sent before the first of them must be confirmed: bounds what is under way.
BATCH_SIZE = 500
#: Steps of a route that are told.
MAX_HOPS_REPORTED = 200
#: Messages of which it can be asked at once where they would come.
MAX_ROUTES = 500
#: Seconds a message waits for room before who sent it is told that there is none: other requests wait behind.
TIMEOUT_SECONDS = 3.0


class TestSender:
    """Sends what operators want sent. It is the inner client's sink."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._client = Client(f"{broker.session}-operators", self, client_id="operators", is_internal=True)
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._numbers = itertools.count(1)

    async def send(self, message: dict[str, Any], count: int, actor: str) -> dict[str, Any]:
        """Send so many messages alike. The first one's id, how many were sent, and where messages like it come now."""
        wanted = OperatorMessage.from_json(message)
        message_properties.check_properties(wanted.properties, may_wait=True)
        for each in Destination.parse_list(wanted.destination):
            self._broker.creation.check_named(each)
        if not 0 < count <= MAX_COUNT:
            raise RequestRefused(f"{count} messages at once: from 1 to {MAX_COUNT} can be sent")
        first, sent, send = "", 0, wanted.send({SENT_BY: actor} if actor else {})
        at_once = batch_size(BATCH_SIZE, estimate_bytes(wanted.properties, wanted.body))
        try:
            while sent < count:
                size = min(at_once, count - sent)
                under_way = [self._give(send)]
                first = first or self._broker.publisher.last_id
                under_way += [self._give(send) for _ in range(size - 1)]
                await self._confirmed(under_way, sent)
                sent += size
        finally:
            self._broker.producers.left(self._client)
        return {"id": first, "count": sent, **self._places(wanted.destination, wanted.properties)}

    async def routes(self, messages: list[tuple[str, dict[str, str]]]) -> list[dict[str, Any]]:
        """Where messages with these headers would come if they were sent now; of each that has no way, why."""
        if len(messages) > MAX_ROUTES:
            raise RequestRefused(f"{len(messages)} routes at once: {MAX_ROUTES} can be asked for")
        found = []
        for destination, headers in messages:
            try:
                found.append(self._places(destination, headers))
            except BrokerError as error:
                found.append({"queues": [], "topics": [], "error": str(error)})
        return found

    def _give(self, send: SendCommand) -> asyncio.Future[None]:
        receipt = str(next(self._numbers))
        self._waiting[receipt] = done = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda _done: self._waiting.pop(receipt, None))
        try:
            self._broker.scheduler.send(self._client, replace(send, receipt=receipt))
        except BrokerError as error:
            self.refuse(error, receipt)
        return done

    async def _confirmed(self, under_way: list[asyncio.Future[None]], before: int) -> None:
        done, waiting = await asyncio.wait(under_way, timeout=TIMEOUT_SECONDS)
        if waiting:
            raise LimitExceeded(
                f"{before + len(done)} were sent, {len(waiting)} wait for room and go when there is some"
            )
        for each in under_way:
            each.result()

    def _places(self, destination: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Where a message like this comes, by the routing in force."""
        targets = Destination.parse_list(destination)
        for each in targets:
            self._broker.creation.check_named(each)
        headers = {**headers, "destination": (list_of(destination) or targets[0]).stomp}
        explained = [explain_route(headers, each, self._broker.routing.table) for each in targets]
        routes = [found for found, _ in explained]
        return {
            "hops": [
                [str(hop.at), hop.definition, str(hop.target), hop.selector, hop.outcome]
                for _, hops in explained
                for hop in hops[:MAX_HOPS_REPORTED]
            ],
            "queues": [str(copy.destination) for found in routes for copy in found.queues],
            "topics": [
                [str(copy.destination), len(self._broker.dispatcher.subscribers(copy.destination))]
                for found in routes
                for copy in found.topics
            ],
        }

    # -- as a sink

    def receipts(self, ids: Sequence[str]) -> None:
        """These are stored."""
        for each in ids:
            if (waiting := self._waiting.get(each)) is not None and not waiting.done():
                waiting.set_result(None)

    def refuse(self, error: Exception, receipt: str | None) -> None:
        """This one was not."""
        if (waiting := self._waiting.get(receipt or "")) is not None and not waiting.done():
            waiting.set_exception(error)

    def deliver(self, *_messages: object) -> None:
        """It consumes nothing."""

    def end_of_browse(self, _subscription: object) -> None:
        """It browses nothing."""

    def flush(self) -> None:
        """Nothing goes out."""

    def close(self) -> None:
        """It ends with the broker."""

    def abort(self) -> None:
        """It ends with the broker."""

    def hold(self, held: bool) -> None:
        """Nothing is read."""
