"""Delete idle queues and topics where their policy requests it.

One is idle that has no messages, no consumers and no subscribers, and to which nothing was sent since it was looked at
last; a connection that once sent there does not count, as in ActiveMQ over STOMP. What operators declared stays.
Where the broker says how long auto-created destinations live (Open MQ's clusters), those go too, also when the broker
starts and finds nothing in them; a connection that once sent there keeps them while it is open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.policy.life_cycles import (
    DestinationOrigin,
    DestinationUsage,
    should_delete_at_restart,
    should_delete_when_idle,
)
from brokerapp.engine.routing.consumer_queues import is_consumer_queue
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        CreationPort,
        DestinationRemovalPort,
        Destinations,
        Placement,
        RoutingPort,
        TopicSubscribers,
    )

#: Milliseconds an idle destination is kept when its policy does not say.
DEFAULT_TIMEOUT_MS = 60_000
#: Looks within the time after which auto-created destinations go, and the shortest time between two, milliseconds.
LOOKS = 4
SHORTEST_PERIOD_MS = 100
#: Milliseconds between looks at the number of topics, where no policy's destinations are to be removed.
BOUND_PERIOD_MS = 60_000
#: Destinations looked at in one step, and milliseconds between steps: bounds how long clients wait for one.
STEP = 2_000
STEP_PAUSE_MS = 5


class IdleDestinations:
    """Looks at destinations in the period that the settings ask for. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        creation: CreationPort,
        subscribers: TopicSubscribers,
        placement: Placement,
        queues: Destinations,
        removal: DestinationRemovalPort,
        routing: RoutingPort,
    ) -> None:
        self._settings, self._timers, self._commits, self._counters = (
            context.settings,
            context.timers,
            context.commits,
            context.counters,
        )
        self._creation, self._subscribers, self._placement = creation, subscribers, placement
        self._queues, self._removal, self._routing = queues, removal, routing
        self._idle: dict[Destination, tuple[int, int]] = {}  # since when (ms), and what was sent there by then

    def watch(self) -> None:
        """Start to look for idle destinations periodically."""
        settings, now_ms = self._settings, clock.now_ms()
        period = settings.schedule_period_for_destination_purge
        if settings.auto_destroy_after > 0:
            often = max(SHORTEST_PERIOD_MS, settings.auto_destroy_after // LOOKS)
            period = min(period, often) if period > 0 else often
        if period > 0:
            self._timers.call_every(period, self.sweep, now_ms)
        self._timers.call_every(BOUND_PERIOD_MS, self.bound_topics, now_ms)

    def sweep(self) -> None:
        """Look at all destinations, and remove those whose time has come."""
        policies = self._routing.table.definitions.policies
        if self._settings.auto_destroy_after or any(policy.gc_inactive_destinations for policy in policies):
            limit = self._settings.max_purged_destinations_per_sweep
            self._step(iter(self._counters.destinations()), limit if limit > 0 else -1)

    def _step(self, destinations: Iterator[Destination], left: int) -> None:
        """Look at some of them; `left` may still be removed in this sweep, below 0: any number."""
        seen = 0
        for destination in itertools.islice(destinations, STEP):
            seen += 1
            if left and self._is_due(destination):
                self._remove(destination)
                left -= 1
        if seen == STEP and left:
            self._timers.at(clock.now_ms() + STEP_PAUSE_MS, lambda: self._step(destinations, left))

    def _is_due(self, destination: Destination) -> bool:
        """Whether it is idle for as long as its policy says; or unused, for as long as clients' own are kept."""
        policy = self._routing.table.policy_for(destination)
        by_policy = policy if policy is not None and policy.gc_inactive_destinations else None
        if not (by_policy or self._settings.auto_destroy_after) or not self._is_idle(destination):
            self._idle.pop(destination, None)
            return False
        idle_ms = self._idle_ms(destination)
        if by_policy:
            timeout = by_policy.inactive_timeout_before_gc
            return idle_ms >= (DEFAULT_TIMEOUT_MS if timeout is None else timeout)
        use = DestinationUsage(producers=self._numbers(destination).ProducerCount)
        if not use.is_unused:
            self._idle.pop(destination, None)
        kept, limit = self._is_subscription(destination), self._settings.auto_destroy_after
        return not kept and should_delete_when_idle(DestinationOrigin.AUTO, use, idle_ms, limit)

    def _idle_ms(self, destination: Destination) -> int:
        """Since when it was found idle, and nothing sent there."""
        numbers, now_ms = self._numbers(destination), clock.now_ms()
        since, sent = self._idle.setdefault(destination, (now_ms, numbers.EnqueueCount))
        if sent != numbers.EnqueueCount:
            since, _ = self._idle[destination] = (now_ms, numbers.EnqueueCount)
        return now_ms - since

    def _numbers(self, destination: Destination) -> DestinationStats:
        return self._placement.stats_aggregation.with_remote_parts(self._counters.of(destination))

    def _is_subscription(self, destination: Destination) -> bool:
        """Whether it gets copies of what is sent elsewhere: somebody subscribed by it."""
        if not destination.is_queue:
            return False
        table, name = self._routing.table, destination.name
        return table.bindings.of(name) is not None or is_consumer_queue(table.definitions, name)

    def recovered(self, log: MessageLog) -> None:
        """Remove a queue that is empty after a restart if clients had created it."""
        destination = log.destination
        if not self._settings.auto_destroy_after or destination.kind is not DestinationKind.QUEUE:
            return
        declared = self._creation.is_declared(destination)
        origin = DestinationOrigin.ADMIN if declared else DestinationOrigin.AUTO
        is_subscription = self._is_subscription(destination)
        if should_delete_at_restart(origin, log.depth, is_subscription=is_subscription) and self._is_idle(destination):
            self._remove(destination)

    def _is_idle(self, destination: Destination) -> bool:
        if destination not in self._counters or self._creation.is_declared(destination):
            return False
        if not self._placement.is_local(str(destination)):
            return False
        if destination.kind is DestinationKind.TOPIC:
            subscribers = self._subscribers.of(destination) or self._placement.topic_listeners.sessions_listening(
                destination
            )
            return not (subscribers or self._routing.table.feeds_of(destination.name))
        if destination.kind is not DestinationKind.QUEUE:
            return False
        log = self._queues.get(str(destination))
        if log is None:  # a composite that only forwards
            return True
        return not (log.consumers or log.depth or log.uncommitted_bytes or self._commits.has_pending_for(log.name))

    def _remove(self, destination: Destination) -> None:
        self._idle.pop(destination, None)
        log = self._queues.get(str(destination))
        if log is not None:
            self._removal.delete(log)
        else:
            self._removal.delete_topics([destination])

    def bound_topics(self) -> None:
        """Forget the numbers of topics nobody listens to, the first known ones first, when there are too many."""
        topics = [each for each in self._counters.destinations() if each.kind is DestinationKind.TOPIC]
        too_many = len(topics) - self._counters.limit
        if too_many > 0:
            idle = itertools.islice(filter(self._is_idle, topics), too_many)
            self._removal.delete_topics(list(idle))
