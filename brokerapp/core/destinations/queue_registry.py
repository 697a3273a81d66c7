"""Create queues, restore their attributes after a restart, and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from brokerapp.core.destinations.log_registry import LogRegistry
from brokerapp.core.subscriptions.selector_memory import SelectorMemory
from brokerapp.engine.dispatch.dispatch_policy import dispatch_policy_of
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selector_cache import SelectorCache
from brokerapp.engine.routing.bindings import Binding, RoutingType, new_binding
from brokerapp.errors import RequestRefused, TemporaryDestinationGone
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.store import LogState

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, BrokerEvents, DispatchQueue, Placement, RoutingPort


class QueueRegistry(LogRegistry):
    """Holds all logs, and creates, restores and deletes queues. The routing table learns of new and deleted ones."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        dispatcher: DispatchQueue,
        events: BrokerEvents,
        placement: Placement,
        routing: RoutingPort,
        selectors: SelectorCache | None,
    ) -> None:
        super().__init__(context=context, dispatcher=dispatcher, placement=placement, routing=routing)
        self.remembering = SelectorMemory(selectors, self._describe)
        self._declared: set[str] = set()  # by operators
        #: What the store is to know of temporary queues that are there after a restart: see reconnect_window.py.
        self.kept: dict[Destination, dict[str, Any]] = {}
        self._events = events

    def recover(self, state: LogState) -> None:
        """Restore a queue from the store."""
        log = self.restore(state)
        if not log.destination.is_temporary:
            self._routing.table.add_queue(log.destination.name)
        self.described(log, state.attributes)
        self._events.queue_added(log)
        if log.is_remote:
            return
        if bool(state.attributes.get("prioritized")) != log.policy.prioritized:
            self._describe(log)
        if log.depth:
            self._give_places(log)

    def described(self, log: MessageLog, attributes: Mapping[str, Any]) -> None:
        """Take the attributes of a queue from the store."""
        binding = Binding.from_json(log.destination.name, attributes)
        if binding is not None:
            self._routing.table.bind(binding)
        (self._declared.add if attributes.get("declared") else self._declared.discard)(log.name)
        log.paused = bool(attributes.get("paused"))
        log.counts.DLQ |= bool(attributes.get("dlq"))
        self.remembering.load(log, attributes.get("selectors", {}))
        self._dispatcher.touch(log)

    def redeclare(self, log: MessageLog) -> None:
        """Write a queue to the store again that was removed there but must exist."""
        self._describe(log)

    def is_wanted(self, queue: Destination, headers: Mapping[str, str]) -> bool:
        """Say whether a consumer of the queue, present or remembered, takes a message with these headers."""
        log = self.get(str(queue))
        if log is None:
            return False
        wanted = self._placement.selector_interest.selectors_of(log)  # equal ones are asked once
        if any(selector is None or selector.matches(headers) for selector in wanted):
            return True
        return self.remembering.wants(str(queue), headers)

    # -- how they come to be

    def ensure_target(self, destination: Destination) -> MessageLog | None:
        """Return the log that copies for a destination go to: a queue, created on demand, or a subscription.

        None when the subscription is gone.
        """
        if destination.kind is DestinationKind.SUBSCRIPTION:
            return self._logs.get(str(destination))
        return self.ensure(destination)

    def ensure(self, queue: Destination, selector: str | None = None) -> MessageLog:
        """Return a queue, created on demand, and bound when its name says to what. Raises RequestRefused.

        `selector` is that of the consumer for whom it may be created.
        """
        log = self._logs.get(str(queue))
        if log is None:
            if queue.address is not None:
                return self._qualified(queue, selector)
            if queue.is_temporary:
                raise TemporaryDestinationGone(str(queue))
            log = self.create(queue)
            self._events.queue_added(log)
        return log

    def _qualified(self, name: Destination, selector: str | None) -> MessageLog:
        """The queue of a fully qualified name."""
        binding = self._new_binding(name, selector)
        log = self.ensure(name.physical)
        if binding is not None:
            self._routing.table.bind(binding)
            self._describe(log)
        return log

    def _new_binding(self, name: Destination, selector: str | None = None) -> Binding | None:
        queue = name.physical
        return new_binding(name, self._routing.table.bindings.of(queue.name), queue in self, selector)

    def would_bind(self, name: Destination) -> bool:
        """Return whether a queue of this name is bound to an address when it is created. Raises RequestRefused."""
        return self._new_binding(name) is not None

    def check_direct(self, queue: Destination) -> None:
        """Raise RequestRefused for a subscription of a topic: messages come to it by the topic, or by its full name."""
        binding = self._routing.table.bindings.of(queue.name)
        if binding is None or binding.routing is not RoutingType.MULTICAST:
            return
        if not self._routing.table.copies_to(Destination.topic(binding.address), queue.name):
            raise RequestRefused(
                f"{queue} is a subscription of the topic {binding.address}: send to the topic, or to {binding.id}"
            )

    def create(self, queue: Destination) -> MessageLog:
        """Create a queue that does not exist yet."""
        log = self.open(queue, self._attributes(queue))
        if not queue.is_temporary:
            self._routing.table.add_queue(queue.name)
        return log

    def declare(self, queue: Destination) -> None:
        """Let a queue exist until an operator deletes it. Raises RequestRefused."""
        log = self.ensure(queue)
        if log.name not in self._declared:
            self._declared.add(log.name)
            self._describe(log)

    def is_declared(self, queue: Destination) -> bool:
        """Return whether an operator created it, or the configuration names it."""
        return str(queue.physical) in self._declared

    # -- what is known of them after a restart

    def _attributes(self, queue: Destination, paused: bool = False) -> dict[str, Any]:
        """What is to be known of a queue after a restart."""
        attributes: dict[str, Any] = {"kind": queue.kind, **self.kept.get(queue, {})}
        if (binding := self._routing.table.bindings.of(queue.name)) is not None:
            attributes |= binding.to_json()
        if str(queue) in self._declared:
            attributes["declared"] = True
        if paused:
            attributes["paused"] = True
        if dispatch_policy_of(self._routing.table.policy_for(queue)).prioritized:
            attributes["prioritized"] = True
        if self._counters.of(queue).DLQ:
            attributes["dlq"] = True
        if selectors := self.remembering.entries_of(str(queue)):
            attributes["selectors"] = selectors
        return attributes

    def redescribe(self, log: MessageLog) -> None:
        """Write the attributes of a queue to the store again."""
        self._describe(log)

    def _describe(self, log: MessageLog) -> None:
        self.describe(log, self._attributes(log.destination, log.paused))

    def pause(self, log: MessageLog, paused: bool) -> None:
        """Give out nothing of a queue any more, also after a restart, or do again. What comes is kept."""
        log.paused = paused
        self._describe(log)
        self._counters.mark_changed(log.counts)
        self._dispatcher.touch(log)

    def mark_as_dlq(self, log: MessageLog) -> None:
        """Dead letters come to it: it is listed as one that has such, also after a restart."""
        if log.counts.DLQ:
            return
        log.counts.DLQ = True
        self._counters.mark_changed(log.counts)
        if log.destination.kind is not DestinationKind.SUBSCRIPTION:
            self._describe(log)

    def retune(self) -> None:
        """Give out messages by the policies that are in force."""
        for log in self._logs.values():
            if log.destination.kind is not DestinationKind.SUBSCRIPTION:
                rules = dispatch_policy_of(self._routing.table.policy_for(log.destination))
                self.tune(log, rules, partial(self._attributes, log.destination, log.paused))

    # -- how they go

    def delete(self, log: MessageLog) -> None:
        """Remove a queue that is empty and has no consumers."""
        self.remembering.gone(log)
        self.forget(log)
        self._routing.table.remove_queue(log.destination.name)
        self._commits.remove(log.name)

    def discard(self, log: MessageLog) -> None:
        """Remove a temporary queue with all it holds, whoever consumes from it."""
        self._lose(log)
        self.forget(log)
        if log.counts.EnqueueCount or log.depth or log.shared or self._commits.has_pending_for(log.name):
            self._commits.discard_log(log.name)
        else:
            self._commits.remove(log.name)

    def on_removed_remotely(self, log: MessageLog) -> None:
        """Forget a queue that another node removed with its messages."""
        self._lose(log)
        self.remembering.gone(log)
        self.forget(log)
        if not log.destination.is_temporary:
            self._routing.table.remove_queue(log.destination.name)

    @staticmethod
    def _lose(log: MessageLog) -> None:
        for subscription in log.consumers:
            subscription.detach_log(log)
            for transaction in subscription.client.transactions.values():
                transaction.settled = [each for each in transaction.settled if each[2].log != log.name]
        log.consumers.clear()

    def forget(self, log: MessageLog) -> None:
        super().forget(log)
        self._declared.discard(log.name)
