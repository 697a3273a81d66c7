"""Runs: SENDs of one read that differ in body and receipt only, from one decision to one unit of the store.

What a run shares is looked at once: who may send, the way, the stored form's first line, the counts, the trace. A run
goes this way when nothing has to be decided message by message (`_way`); else each message takes the general one, see
publishing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from brokerapp.core.publishing.scheduler import MARK as SCHEDULED
from brokerapp.core.writes.pending_write import ClientBatchWrite, ClientWrite
from brokerapp.engine.clients.client import Client, RoutedMessage
from brokerapp.engine.routing.route_walk import Route
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import RefusedSend, SendBatchCommand, SendCommand
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        ConcurrentDispatchPort,
        DispatcherPort,
        FlowControlPort,
        LimitsPort,
        MessageWriterPort,
        PublisherPort,
        Replies,
        RoutingPort,
    )

#: Copies that one run may have the store make: longer ones are cut, so that batches stay what the committer wants.
MAX_COPIES = 2_000


class BatchPublisher:
    """What concerns many messages sent at once. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        concurrent: ConcurrentDispatchPort,
        dispatcher: DispatcherPort,
        flow_control: FlowControlPort,
        limits: LimitsPort,
        publisher: PublisherPort,
        replies: Replies,
        routing: RoutingPort,
        send_message: Callable[[Client, SendCommand], None],
        writer: MessageWriterPort,
    ) -> None:
        self._commits, self._tracer = context.commits, context.tracer
        self._authorizer, self._concurrent, self._dispatcher = authorizer, concurrent, dispatcher
        self._flow_control, self._limits, self._publisher = flow_control, limits, publisher
        self._replies, self._routing, self._send_message = replies, routing, send_message
        self._writer = writer

    def send(self, client: Client, batch: SendBatchCommand) -> None:
        """Publish; a SEND that is refused does not stop the others. Receipts follow when the messages are stored."""
        for like, run in groupby(batch.sends, _what_a_run_shares):
            if like is None:
                for refused in run:
                    self._replies.refuse(client, refused.error, refused.receipt)
            else:
                self._send_run(client, list(run))

    def _send_run(self, client: Client, run: Sequence[SendCommand]) -> None:
        like = run[0]
        try:
            way = self._way(client, like)
            if way is not None:
                self._authorizer.require(client, "write", way[0])
        except RequestRefused as error:
            for send in run:
                self._replies.refuse(client, error, send.receipt)
            return
        if way is None:
            for send in run:
                self._replies.try_command(client, self._send_message, send)
            return
        destination, route = way
        messages = self._publisher.messages(like, [send.body for send in run])
        receipts = [send.receipt for send in run]
        if route.bound:
            for each in messages:
                each.held = tuple(route.bound)
        client.sent_count += len(messages)
        self._tracer.record_enqueue(messages[0].born_us, messages, str(destination), client.client_id)
        if not messages[0].persistent and self._passed_through(client, messages, destination, route):
            self._replies.confirm(client, *receipts)
            return
        length = max(1, MAX_COPIES // len(route.groups[0].rows))
        for start in range(0, len(messages), length):
            part = slice(start, start + length)
            unit = ClientBatchWrite(self, client, messages[part], receipts[part], destination, route)
            unit.given = self._concurrent.offer(unit.messages, unit.sizes, route.groups)
            client.on_write_started(unit.size)
            self._commits.submit(unit, unit.given)

    def _way(self, client: Client, like: SendCommand) -> tuple[Destination, Route] | None:
        """Where the messages go, if that is known, the same for all, and nothing else must be asked for each."""
        if like.transaction is not None or like.expires or like.bridged_from or SCHEDULED in like.properties:
            return None
        if self._flow_control.places or self._limits.is_disk_low:
            return None
        destination, *others = Destination.parse_list(like.destination)
        if others or destination.is_temporary or destination not in client.producing_to:
            return None
        route = self._routing.table.plans.get(destination)
        if route is None or route.groups is None or len(route.groups) != 1 or route.dropping:
            return None
        if route.topics and self._flow_control.is_active:
            return None
        return destination, route

    def _passed_through(
        self, client: Client, messages: Sequence[Message], destination: Destination, route: Route
    ) -> bool:
        """Give them straight to the consumers of their one queue, if nothing is before them and all are taken."""
        [group] = route.groups
        if client.pending_writes or len(group.logs) > 1 or route.topics:
            return False
        return self._publisher.pass_through(messages, group, str(destination))

    def on_result(self, run: ClientBatchWrite, seq: int, refused: Mapping[int, str]) -> None:
        """The store did what it could; what found no room goes on by itself."""
        run.client.on_write_done(run.size)
        if not refused:
            self._stored(run, slice(None), seq)
            return
        for is_refused, places in groupby(range(len(run.stored)), refused.__contains__):
            first, *others = places
            if not is_refused:
                self._stored(run, slice(first, first + 1 + len(others)), seq + first)
                continue
            for place, unit in zip((first, *others), self.split(run, (first, *others)), strict=True):
                self._writer.on_result(unit, 0, refused[place])

    def split(self, run: ClientBatchWrite, places: Iterable[int]) -> list[ClientWrite]:
        """These messages of a run, each in a unit of its own."""
        storing, units = self._writer, []
        for place in places:
            placed = [RoutedMessage(run.messages[place], run.stored[place], run.destination, run.route)]
            appends = [(run.stored[place], run.rows)]
            given = {log: [entries[place]] for log, entries in run.given.items()}
            units.append(ClientWrite(storing, run.client, placed, appends, (), (), run.receipts[place], None, given))
            run.client.on_write_started(units[-1].size)
        return units

    def _stored(self, run: ClientBatchWrite, part: slice, seq: int) -> None:
        """These of its messages are stored, numbered from `seq` on."""
        messages = run.messages[part]
        [group] = run.route.groups
        given = {log: entries[part] for log, entries in run.given.items()}
        self._writer.on_appended(messages, run.sizes[part], group, str(run.destination), seq, given)
        for copy in run.route.topics:
            self._dispatcher.publish(messages, copy, run.client)
        self._replies.confirm(run.client, *run.receipts[part])


def _what_a_run_shares(send: SendCommand | RefusedSend) -> object:
    if isinstance(send, RefusedSend):
        return None
    return (
        send.destination, send.properties, send.persistent, send.priority, send.expires, send.timestamp,
        send.transaction, send.is_bytes, send.bridged_from,
    )  # fmt: skip
