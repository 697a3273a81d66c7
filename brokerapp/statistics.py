"""Statistics: answers requests for numbers, as ActiveMQ's statisticsBrokerPlugin does. A part of the broker.

A message to the queue or topic `ActiveMQ.Statistics.Broker` asks for the broker's numbers, one to
`ActiveMQ.Statistics.Destination.NAME` for those of the destinations of that kind with that name, or that match it as a
pattern. The answers go to its reply-to, a message each. What asks is an ordinary message, consumed by an inner client,
so that nobody pays for this who does not use it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from brokerapp.client import Client
from brokerapp.destination import NAMED_KINDS, Destination, Kind
from brokerapp.engine.destination_map import matches
from brokerapp.engine.entry import Entry
from brokerapp.engine.subscription import Subscription
from brokerapp.errors import InvalidDestination
from brokerapp.message import Message, escape
from brokerapp.transformations import HEADER, MAP_JSON

if TYPE_CHECKING:
    from brokerapp.broker import Broker

PREFIX = "ActiveMQ.Statistics."
#: What follows the prefix: ask for the broker, or for destinations of this name or pattern.
BROKER, DESTINATION = "Broker", "Destination."
#: Requests held at once: they are answered as they come.
PREFETCH = 1000
#: Answers to one request: a pattern may match any number of destinations.
MAX_ANSWERS = 10_000

Numbers = dict[str, str | int]


class Statistics:
    """The inner client that answers. It is its own sink."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._client = Client(f"{broker.session}-statistics", self, client_id="statistics", internal=True)
        targets = tuple(Destination(kind, f"{PREFIX}>") for kind in NAMED_KINDS)
        subscription = Subscription("", "", "1", self._client, targets, "auto", PREFETCH, started=True)
        for target in targets:
            if target.is_queue:
                broker.queues.join(subscription, target)
            else:
                broker.delivery.join(subscription, target)

    # -- as a sink

    def deliver(self, _subscription: Subscription, entries: Sequence[Entry], _ack_ids: Sequence[str]) -> None:
        """Requests."""
        for entry in entries:
            asked = Destination.parse(entry.shown or entry.log)
            reply_to = entry.message.headers.get("reply-to")
            if reply_to is not None:
                self._answer(asked, reply_to)

    def receipts(self, ids: Sequence[str]) -> None:
        """Nothing is asked here."""

    def refuse(self, error: Exception, receipt: str | None) -> None:
        """Nothing is asked here."""

    def flush(self) -> None:
        """Nothing goes out."""

    def close(self) -> None:
        """It ends with the broker."""

    def hold(self, held: bool) -> None:
        """Nothing is read."""

    # -- answers

    def _answer(self, asked: Destination, reply_to: str) -> None:
        try:
            target = Destination.parse(reply_to)
        except InvalidDestination:  # as in ActiveMQ, who asks so gets no answer
            return
        if target.is_temporary and target not in self._broker.temporaries:
            return
        for count, numbers in enumerate(self._numbers(asked)):
            if count == MAX_ANSWERS:
                return
            self._broker.publishing.originate(self._message(numbers), target)

    def _numbers(self, asked: Destination) -> Iterator[Numbers]:
        what = asked.name.removeprefix(PREFIX)
        if what.startswith(BROKER):
            yield self._of_broker()
        elif what.startswith(DESTINATION):
            wanted = what.removeprefix(DESTINATION)
            for each in self._broker.stats.known():
                if each.kind is asked.kind and matches(wanted, each.name) and not each.name.startswith(PREFIX):
                    yield self._of_destination(each)

    def _of_destination(self, destination: Destination) -> Numbers:
        stats = self._broker.stats.of(destination)
        self._broker.measure(stats)
        return {
            "brokerName": self._broker.name,
            "brokerId": self._broker.advisories.broker_id,
            "destinationName": str(destination),
            "size": stats.QueueSize,
            "enqueueCount": stats.EnqueueCount,
            "dequeueCount": stats.DequeueCount,
            "dispatchCount": stats.DispatchCount,
            "inflightCount": stats.InFlightCount,
            "expiredCount": stats.ExpiredCount,
            "consumerCount": stats.ConsumerCount,
            "producerCount": stats.ProducerCount,
            "averageMessageSize": stats.EnqueueBytes // (stats.EnqueueCount or 1),
        }

    def _of_broker(self) -> Numbers:
        """The sums over all destinations, and where clients reach the broker."""
        named = [each for each in self._broker.stats.known() if each.kind is not Kind.SUBSCRIPTION]
        each_ones = [self._of_destination(each) for each in named]
        sums: Numbers = {}
        for numbers in each_ones:
            for name, value in numbers.items():
                if isinstance(value, int):
                    sums[name] = int(sums.get(name, 0)) + value
        total = sum(self._broker.stats.of(each).EnqueueBytes for each in named)
        sums["averageMessageSize"] = total // (int(sums.get("enqueueCount", 0)) or 1)
        where = {"brokerName": self._broker.name, "brokerId": self._broker.advisories.broker_id}
        return {**where, "stomp": self._broker.url, **sums, **self._usages()}

    def _usages(self) -> Numbers:
        """Bytes of messages that are held, those that may be, and percent of these, as ActiveMQ names them.

        In memory are those on their way to the store. A limit of 0: there is none, and no percent of it.
        """
        committer, quotas = self._broker.committer, self._broker.quotas
        limits = committer.limits
        used_and_limit = {
            "memory": (quotas.share.pending_bytes, quotas.memory),
            "store": (committer.used, limits.total),
            "temp": (committer.temp, limits.temp or limits.total),
        }
        numbers: Numbers = {}
        for name, (used, limit) in used_and_limit.items():
            percent = 100 * used // limit if limit else 0
            numbers |= {f"{name}Usage": used, f"{name}Limit": limit, f"{name}PercentUsage": percent}
        return numbers

    def _message(self, numbers: Numbers) -> Message:
        """A map as ActiveMQ writes it in JSON; a subscription may ask for XML."""
        entries = [
            {"string": [name, value]} if isinstance(value, str) else {"string": name, "long": value}
            for name, value in numbers.items()
        ]
        id = self._broker.publishing.next_id()
        head = f"message-id:{escape(id)}\nexpires:0\npriority:4\ntype:Advisory\n{HEADER}:{MAP_JSON}\n"
        body = json.dumps({"map": {"entry": entries}}, separators=(",", ":"), ensure_ascii=False)
        return Message(id, head.encode(), body.encode())
