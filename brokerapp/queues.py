"""Queues: the message logs this node is home of, who consumes from which, and their marks in the store.

Beside queues these are the logs of named subscriptions, which `durables` opens and removes.

A mark tells a node that starts after a crash which messages may have been delivered before: all (`open`) while a log
has consumers, those up to a number once the last one left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from brokerapp import clock
from brokerapp.committer import Committer
from brokerapp.definitions import VirtualTopic
from brokerapp.delivery import Delivery, May
from brokerapp.destination import Destination, Kind
from brokerapp.engine.bindings import Binding, RoutingType, is_at, new_binding
from brokerapp.engine.destination_map import DestinationMap, matches
from brokerapp.engine.dispatch_rules import DispatchRules, rules_of
from brokerapp.engine.entry import COMING, Entry
from brokerapp.engine.message_log import MessageLog
from brokerapp.engine.selector_cache import SelectorCache
from brokerapp.engine.subscription import Subscription
from brokerapp.engine.topology import Topology
from brokerapp.errors import DestinationNotFound, RequestRefused
from brokerapp.remembering import Remembering
from brokerapp.stats import Stats
from brokerapp.store import LogState
from brokerapp.timers import Timers

#: Mark of a log whose messages may all have been delivered.
OPEN = "open"
#: Why a queue gives out nothing for a moment: it waits for more consumers (consumersBeforeDispatchStarts).
GATHERING = "gathering"
#: Another one: its policy asks for priorities, and what it held before is put in order.
ORDERING = "put in order"


class Queues:
    """All logs by name. `topology` is the broker's: it is told of new and deleted queues."""

    def __init__(
        self, committer: Committer, delivery: Delivery, stats: Stats, may: May, timers: Timers,
        selectors: SelectorCache | None = None,
    ) -> None:  # fmt: skip
        self._committer, self._delivery, self._stats, self._may = committer, delivery, stats, may
        self._timers = timers
        self.remembering = Remembering(selectors, self._describe)
        self._logs: dict[str, MessageLog] = {}
        self._declared: set[str] = set()  # by operators
        self._patterns: DestinationMap[Subscription] = DestinationMap()
        #: Which of the entries that return to a log may: some are given up instead.
        self.left_behind: Callable[[MessageLog, Sequence[Entry]], Sequence[Entry]] = lambda _log, entries: entries
        self.topology: Topology

    def __iter__(self) -> Iterator[MessageLog]:
        return iter(self._logs.values())

    def __contains__(self, queue: Destination) -> bool:
        return str(queue) in self._logs

    def holds(self, log: MessageLog) -> bool:
        """Whether this is the log of a queue that exists, not of a deleted one of the same name."""
        return self._logs.get(log.name) is log

    def __getitem__(self, log: str) -> MessageLog:
        return self._logs[log]

    def get(self, log: str) -> MessageLog | None:
        """The log of this name, if it is still there."""
        return self._logs.get(log)

    def receiving(self, destination: Destination) -> MessageLog | None:
        """Where copies for a destination go: to its queue, created when it is not there, or to a subscription.

        None when the subscription is gone.
        """
        if destination.kind is Kind.SUBSCRIPTION:
            return self._logs.get(str(destination))
        return self.ensure(destination)

    def find(self, queue: Destination) -> MessageLog:
        """The queue or subscription, which must exist; raises DestinationNotFound."""
        log = self._logs.get(str(queue.physical))
        if log is None or not is_at(queue, self.topology.bindings.of(log.destination.name)):
            raise DestinationNotFound(f"there is no {queue}")
        return log

    def recover(self, state: LogState, last: int) -> None:
        """A queue as the last node left it; `last` is the number of the last message."""
        if Destination.parse(state.name).is_temporary:
            self._committer.discard(state.name)
            return
        log = self.restore(state, last)
        queue = log.destination
        self.topology.add_queue(queue.name)
        binding = Binding.from_json(queue.name, state.attributes)
        if binding is not None:
            self.topology.bind(binding)
        if state.attributes.get("declared"):
            self._declared.add(log.name)
        log.paused = bool(state.attributes.get("paused"))
        self.remembering.load(log, state.attributes.get("selectors", {}))
        if bool(state.attributes.get("prioritized")) != log.rules.prioritized:
            self._describe(log)
        if log.depth:
            self._give_places(log)

    def restore(self, state: LogState, last: int) -> MessageLog:
        """A log as the last node left it."""
        suspect = last if state.mark == OPEN else int(state.mark or 0)
        if state.mark == OPEN:  # the node that opened it died: what comes from now on was delivered by nobody
            self._committer.mark(state.name, str(last))
        log = self._add(Destination.parse(state.name), state.depth, suspect)
        log.returned.update(state.returned)
        return log

    def ensure(self, queue: Destination, selector: str | None = None) -> MessageLog:
        """The queue, created when it is not there, and bound when its name says to what; raises RequestRefused.

        `selector` is that of the consumer for whom it may be created.
        """
        log = self._logs.get(str(queue))
        if log is None:
            if queue.address is not None:
                return self._qualified(queue, selector)
            if queue.is_temporary:
                raise RequestRefused(f"the destination {queue} does not exist: its connection has ended")
            log = self.create(queue)
            for subscription in self._patterns.find(queue.name):
                literally = queue in subscription.destinations or subscription.client.internal
                wanted = not queue.is_pattern or literally
                if wanted and self._may(subscription, "read", queue):
                    self.attach(subscription, log)
        return log

    def _qualified(self, name: Destination, selector: str | None) -> MessageLog:
        """The queue of a fully qualified name."""
        binding = self._new_binding(name, selector)
        log = self.ensure(name.physical)
        if binding is not None:
            self.topology.bind(binding)
            self._describe(log)
        return log

    def _new_binding(self, name: Destination, selector: str | None = None) -> Binding | None:
        queue = name.physical
        return new_binding(name, self.topology.bindings.of(queue.name), queue in self, selector)

    def would_bind(self, name: Destination) -> bool:
        """Whether a queue gets bound to an address when it is called so. Raises RequestRefused when it cannot."""
        return self._new_binding(name) is not None

    def check_direct(self, queue: Destination) -> None:
        """Raise RequestRefused for a subscription of a topic: messages come to it by the topic, or by its full name."""
        binding = self.topology.bindings.of(queue.name)
        if binding is None or binding.routing is not RoutingType.MULTICAST:
            return
        if not self.topology.copies_to(Destination.topic(binding.address), queue.name):
            raise RequestRefused(
                f"{queue} is a subscription of the topic {binding.address}: send to the topic, or to {binding.id}"
            )

    def create(self, queue: Destination) -> MessageLog:
        """A queue that does not exist yet."""
        log = self.open(queue, self._attributes(queue))
        if not queue.is_temporary:
            self.topology.add_queue(queue.name)
        return log

    def open(self, destination: Destination, attributes: Mapping[str, Any]) -> MessageLog:
        """A new log, which the store keeps with these attributes."""
        log = self._add(destination)
        self.describe(log, attributes)
        return log

    def describe(self, log: MessageLog, attributes: Mapping[str, Any]) -> None:
        """The store keeps it with these attributes from now on."""
        self._committer.create(log.name, json.dumps(attributes))

    def _add(self, destination: Destination, depth: int = 0, suspect: int = 0) -> MessageLog:
        rules = rules_of(self.topology.policy_for(destination))
        log = self._logs[str(destination)] = MessageLog(self._stats.of(destination), depth, suspect, rules)
        return log

    def _attributes(self, queue: Destination, paused: bool = False) -> dict[str, Any]:
        """What is to be known of a queue after a restart."""
        attributes: dict[str, Any] = {"kind": queue.kind}
        if (binding := self.topology.bindings.of(queue.name)) is not None:
            attributes |= binding.to_json()
        if str(queue) in self._declared:
            attributes["declared"] = True
        if paused:
            attributes["paused"] = True
        if rules_of(self.topology.policy_for(queue)).prioritized:
            attributes["prioritized"] = True
        if selectors := self.remembering.entries_of(str(queue)):
            attributes["selectors"] = selectors
        return attributes

    def _describe(self, log: MessageLog) -> None:
        self._committer.create(log.name, json.dumps(self._attributes(log.destination, log.paused)))

    def declare(self, queue: Destination) -> None:
        """Let a queue exist until an operator deletes it. Raises RequestRefused."""
        log = self.ensure(queue)
        if log.name not in self._declared:
            self._declared.add(log.name)
            self._describe(log)

    def is_declared(self, queue: Destination) -> bool:
        """Whether an operator made it, or the configuration names it."""
        return str(queue.physical) in self._declared

    def retune(self) -> None:
        """Give out messages by the policies that are in force."""
        for log in self._logs.values():
            if log.destination.kind is not Kind.SUBSCRIPTION:
                rules = rules_of(self.topology.policy_for(log.destination))
                self.tune(log, rules, partial(self._attributes, log.destination, log.paused))

    def tune(self, log: MessageLog, rules: DispatchRules, attributes: Callable[[], Mapping[str, Any]]) -> None:
        """Give out a log's messages by these rules from now on; the store keeps it with the attributes it has then."""
        was_prioritized = log.rules.prioritized
        log.tune(rules)
        if rules.prioritized != was_prioritized:
            self.describe(log, attributes())
            self._give_places(log)
        self._delivery.touched[log] = None

    def _give_places(self, log: MessageLog) -> None:
        """Let the store put what a prioritized queue holds in order, part by part; nothing is given out meanwhile."""
        if not log.rules.prioritized:
            return
        reason = f"{ORDERING} by definitions {self.topology.definitions.version}"
        log.stopped.add(reason)

        def came_to(number: int) -> None:
            if number:
                self._committer.prioritize(log.name, number, came_to)
            else:
                log.stopped.discard(reason)
                self._delivery.touched[log] = None

        self._committer.prioritize(log.name, 0, came_to)

    def pause(self, log: MessageLog, paused: bool) -> None:
        """Give out nothing of a queue any more, also after a restart, or do again. What comes is kept."""
        log.paused = paused
        self._describe(log)
        self._stats.changed.add(log.counts)
        self._delivery.touched[log] = None

    def delete(self, log: MessageLog) -> None:
        """Remove a queue that is empty and has no consumers."""
        self.remembering.gone(log)
        self.forget(log)
        self.topology.remove_queue(log.destination.name)
        self._committer.remove(log.name)

    def discard(self, log: MessageLog) -> None:
        """Remove a temporary queue with all it holds, whoever consumes from it."""
        for subscription in log.consumers:
            subscription.lose(log)
            for transaction in subscription.client.transactions.values():
                transaction.settled = [each for each in transaction.settled if each[2].log != log.name]
        log.consumers.clear()
        self.forget(log)
        if log.counts.EnqueueCount or self._committer.brings_to(log.name):
            self._committer.discard(log.name)
        else:
            self._committer.remove(log.name)

    def forget(self, log: MessageLog) -> None:
        """It is here no longer; the store is told by whoever asks this."""
        del self._logs[log.name]
        self._declared.discard(log.name)
        self._delivery.touched.pop(log, None)
        self._stats.forget(log.destination)

    # -- consumers

    def join(self, subscription: Subscription, queue: Destination) -> None:
        """Consume from a queue, or from all that match a pattern and may be read, later ones included."""
        if not queue.is_pattern:
            self.attach(subscription, self.ensure(queue))
            return
        self._patterns.add(queue.name, subscription)
        for log in self.readable(subscription, queue):
            self.attach(subscription, log)
        if self._collects(queue) and self._may(subscription, "read", queue) and self._may_exist(subscription, queue):
            self.attach(subscription, self.ensure(queue))

    def readable(self, subscription: Subscription, queue: Destination) -> list[MessageLog]:
        """The queue, or those there are that match a pattern and may be read."""
        if not queue.is_pattern:
            return [self._logs[str(queue.physical)]] if queue.physical in self else []
        return [
            log
            for log in self._logs.values()
            if log.destination.kind is queue.kind
            and (log.destination == queue or not log.destination.is_pattern)
            and matches(queue.name, log.destination.name)
            and self._may(subscription, "read", log.destination)
        ]

    def _may_exist(self, subscription: Subscription, queue: Destination) -> bool:
        """Whether the queue is there, or its first consumer may create it."""
        policy = self.topology.policy_for(queue)
        forbidden = policy is not None and policy.auto_create is False
        return queue in self or (not forbidden and self._may(subscription, "admin", queue))

    def _collects(self, queue: Destination) -> bool:
        """Whether a queue literally so named is a consumer queue of some virtual topic, hence a queue of its own."""
        return any(
            matches(each.prefix + each.name + each.postfix, queue.name)
            for each in self.topology.definitions.virtual_destinations
            if isinstance(each, VirtualTopic)
        )

    def attach(self, subscription: Subscription, log: MessageLog) -> None:
        """Consume from this log."""
        if subscription in log.consumers:
            return
        if not log.consumers:
            self._committer.mark(log.name, OPEN)
        log.consumers.append(subscription)
        subscription.logs.append(log)
        log.counts.ConsumerCount = len(log.consumers)
        self._stats.changed.add(log.counts)
        self._delivery.touched[log] = None
        if log.rules.patience_ms:
            self._gather(log)
        self.remembering.came(subscription, log)

    def _gather(self, log: MessageLog) -> None:
        """Let the first consumer wait for others, as the queue's policy wants it."""
        if len(log.consumers) == 1:
            log.stopped.add(GATHERING)
            self._timers.at(clock.now_ms() + log.rules.patience_ms, partial(self._begin, log))
        if log.rules.suffices(len(log.consumers)):
            self._begin(log)

    def _begin(self, log: MessageLog) -> None:
        log.stopped.discard(GATHERING)
        self._delivery.touched[log] = None

    def part(self, subscription: Subscription) -> None:
        """Consume no longer; what it holds goes back to its place."""
        for queue in subscription.destinations:
            if queue.is_queue and queue.is_pattern:
                self._patterns.remove(queue.name, subscription)
        self.take_back(subscription.unacked.values())
        subscription.unacked.clear()
        for log in subscription.logs:
            log.leave(subscription)
            self.remembering.went(subscription, log)
            log.counts.ConsumerCount = len(log.consumers)
            if not log.consumers:
                self._committer.mark(log.name, self._closing_mark(log))
            self._stats.changed.add(log.counts)
            self._delivery.touched[log] = None
        subscription.logs.clear()

    @staticmethod
    def _closing_mark(log: MessageLog) -> str:
        if log.coming:  # what was given early has no number yet
            return OPEN
        return str(max(log.dispatched, log.may_have_been_delivered)) if log.depth else "0"

    def take_back(self, entries: Iterable[Entry]) -> None:
        """Entries in flight return to their queues, flagged as redelivered."""
        by_log: dict[str, list[Entry]] = {}
        for entry in entries:
            by_log.setdefault(entry.log, []).append(entry)
        for name, back in by_log.items():
            log = self._logs.get(name)
            if log is not None:
                self._take_back(log, back)
                self._delivery.touched[log] = None
                self._stats.changed.add(log.counts)

    def _take_back(self, log: MessageLog, entries: Sequence[Entry]) -> None:
        back = [entry for entry in entries if 0 < entry.seq < COMING]
        if len(back) < len(entries):
            log.stranded += [entry for entry in entries if entry.seq == COMING]
            log.settled([entry for entry in entries if not entry.seq])  # that have no place to return to
        if back:
            log.take_back(self.left_behind(log, back))

    def return_stranded(self, log: MessageLog) -> None:
        """What consumers had before it was stored, and left or acknowledged, is so now, or never will be."""
        stranded, log.stranded = log.stranded, []
        self.take_back(stranded)
        if not log.consumers and self.holds(log):
            self._committer.mark(log.name, self._closing_mark(log))

    def close(self) -> None:
        """The node stops: leave a mark on every queue that has one open."""
        for log in self._logs.values():
            if log.consumers:
                self._committer.mark(log.name, self._closing_mark(log))
