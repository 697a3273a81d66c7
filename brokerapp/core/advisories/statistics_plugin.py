"""Reply to requests for statistics as ActiveMQ's statisticsBrokerPlugin does.

A message to the queue or topic `ActiveMQ.Statistics.Broker` asks for the broker's numbers, one to
`ActiveMQ.Statistics.Destination.NAME` for those of the destinations of that kind with that name, or that match it as a
pattern, one to `ActiveMQ.Statistics.Subscription` for those of each consumer of queues, or of topics. The answers go to
its reply-to, a message each. What asks is an ordinary message, consumed by an inner client, so that nobody pays for
this who does not use it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from brokerapp.core.advisories.destination_measurements import Reported
from brokerapp.core.advisories.statistics_documents import (
    Numbers,
    StatisticsDocuments,
    as_document,
)
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.errors import BrokerError, InvalidDestination
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.model.jms.transformations import HEADER, MAP_JSON
from brokerapp.model.message import Message, escape
from brokerapp.model.stats_records import DestinationStats
from brokerapp.store import StoredLogEntry
from brokerapp.system.clock import now_ms

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        ConsumersPort,
        MessageFactoryPort,
        MessageRouterPort,
        Placement,
        TemporariesPort,
        TopicSubscribers,
    )

PREFIX = "ActiveMQ.Statistics."
#: What follows the prefix: ask for the broker, for destinations of this name or pattern, for consumers.
BROKER, DESTINATION, SUBSCRIPTION = "Broker", "Destination", "Subscription"
#: Headers that ask for more: when a queue's first message came, and an empty map behind the last.
DATED = "ActiveMQ.Statistics.Destination.Include.First.Message.Timestamp"
ENDED = "ActiveMQ.Statistics.Destination.List.End.With.Null"
#: Requests held at once: they are answered as they come.
PREFETCH = 1000
#: Answers to one request: a pattern may match any number of destinations.
MAX_ANSWERS = 10_000

#: An answer, and the queue that is to be asked of it when its first message came.
Answer = tuple[Numbers, Destination | None]


class StatisticsPlugin:
    """An internal client that answers requests for statistics, and its own sink: it gets no replies."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        placement: Placement,
        messages: MessageFactoryPort,
        router: MessageRouterPort,
        temporaries: TemporariesPort,
        consumers: ConsumersPort,
        subscribers: TopicSubscribers,
        documents: StatisticsDocuments,
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._placement, self._temporaries = placement, temporaries
        self._messages, self._router = messages, router
        self._consumers, self._subscribers, self._documents = consumers, subscribers, documents
        self._client = Client(f"{context.session}-statistics", self, client_id="statistics", is_internal=True)

    def start(self) -> None:
        """Consume requests from now on."""
        targets = tuple(Destination(kind, f"{PREFIX}>") for kind in NAMED_KINDS)
        subscription = Subscription("", "", "1", self._client, targets, "auto", PREFETCH, started=True)
        for target in targets:
            if target.is_queue:
                self._consumers.join(subscription, target)
            else:
                self._subscribers.add(subscription, target)

    # -- as a sink

    def deliver(self, _subscription: Subscription, entries: Sequence[LogEntry], _ack_ids: Sequence[str]) -> None:
        """Answer requests."""
        for entry in entries:
            self._answer(entry.message, Destination.parse(entry.shown_destination or entry.log))

    def end_of_browse(self, subscription: Subscription) -> None:
        """Ignore: it browses nothing."""

    def receipts(self, ids: Sequence[str]) -> None:
        """Ignore: it asks for none."""

    def refuse(self, error: BrokerError, receipt: str | None) -> None:
        """Ignore: it asks for nothing."""

    def flush(self) -> None:
        """Ignore: nothing goes out."""

    def close(self) -> None:
        """Ignore: it ends with the broker."""

    def abort(self) -> None:
        """Ignore: it ends with the broker."""

    def pause_reading(self, held: bool) -> None:
        """Ignore: nothing is read."""

    def heart_beat_times(self) -> tuple[int, int, int]:
        """Return zeros: it has no connection."""
        return 0, 0, 0

    # -- answers

    def _answer(self, request: Message, asked: Destination) -> None:
        try:
            target = Destination.parse(request.headers.get("reply-to", ""))
        except InvalidDestination:  # as in ActiveMQ, who asks so gets no answer
            return
        if target.is_temporary and target not in self._temporaries:
            return

        def begin(told: Reported) -> None:
            self._go_on(islice(self._answers(asked, request.headers, told), MAX_ANSWERS), target, request.headers)

        names = [str(each) for each in self._about(asked)]
        if away := [each for each in names if not self._placement.is_local(each)]:
            self._commits.read_with(lambda store: store.stats.read(away), lambda rows: begin(_by_destination(rows)))
        else:
            begin({})

    def _about(self, asked: Destination) -> list[Destination]:
        """The destinations whose numbers the answers are made of."""
        known, what = self._counters.destinations(), asked.name.removeprefix(PREFIX)
        if what.startswith(BROKER):
            return [each for each in known if each.kind is not DestinationKind.SUBSCRIPTION]
        if not what.startswith(DESTINATION):
            return []
        wanted = what.removeprefix(DESTINATION).removeprefix(".")
        named = (each for each in known if each.kind is asked.kind and not each.name.startswith(PREFIX))
        return [each for each in named if matches(wanted, each.name)]

    def _go_on(self, answers: Iterator[Answer], target: Destination, headers: Mapping[str, str]) -> None:
        """Send the rest of the answers; where one lacks a time that only the store knows, when that is known."""

        def dated(numbers: Numbers, found: list[StoredLogEntry]) -> None:
            if found:
                numbers["firstMessageTimestamp"] = found[0].message.born_us // 1000
            self._send(numbers, target, headers)
            self._go_on(answers, target, headers)

        for numbers, undated in answers:
            if undated is not None:
                self._commits.read(str(undated), 0, 1, partial(dated, numbers))
                return
            self._send(numbers, target, headers)

    def _answers(self, asked: Destination, headers: Mapping[str, str], told: Reported) -> Iterator[Answer]:
        what = asked.name.removeprefix(PREFIX)
        if what.startswith(BROKER):
            yield self._documents.of_broker(told), None
        elif what.startswith(SUBSCRIPTION):
            for numbers in self._documents.of_subscriptions(asked.is_queue):
                yield numbers, None
        elif what.startswith(DESTINATION):
            for each in self._about(asked):
                yield self._documents.of_destination(each, told), each if DATED in headers and each.is_queue else None
            if ENDED in headers:
                yield {}, None

    def _send(self, numbers: Numbers, target: Destination, request: Mapping[str, str]) -> None:
        """A map in JSON; a subscription may ask for XML."""
        id = self._messages.next_id()
        head = f"message-id:{escape(id)}\nexpires:0\npriority:4\ntimestamp:{now_ms()}\ntype:Advisory\n"
        head += f"{HEADER}:{MAP_JSON}\n"
        if "correlation-id" in request:
            head += f"correlation-id:{escape(request['correlation-id'])}\n"
        body = json.dumps(as_document(numbers), separators=(",", ":"), ensure_ascii=False)
        self._router.publish_internal(Message(id, head.encode(), body.encode()), target)


def _by_destination(rows: Sequence[str]) -> Reported:
    """What the store knows of destinations."""
    found = (DestinationStats.from_json(json.loads(row)) for row in rows)
    return {each.destination: each for each in found}
