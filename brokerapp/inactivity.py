"""Inactivity: queues and topics that nobody uses any more are removed where their policy asks for it.

One is idle that has no messages, no consumers and no subscribers, and to which nothing was sent since it was looked at
last; a connection that once sent there does not count, as in ActiveMQ over STOMP. What operators declared stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from brokerapp import clock
from brokerapp.destination import Destination, Kind

if TYPE_CHECKING:
    from brokerapp.broker import Broker

#: Milliseconds an idle destination is kept when its policy does not say.
DEFAULT_TIMEOUT_MS = 60_000
#: Milliseconds between looks at the number of topics, where no policy's destinations are to be removed.
BOUND_PERIOD_MS = 60_000
#: Destinations looked at in one step, and milliseconds between steps: bounds how long clients wait for one.
STEP = 2_000
STEP_PAUSE_MS = 5


class Inactivity:
    """Looks at destinations in the period that the settings ask for. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._idle: dict[Destination, tuple[int, int]] = {}  # since when (ms), and what was sent there by then

    def watch(self) -> None:
        """Look from now on."""
        period = self._broker.settings.schedule_period_for_destination_purge
        now_ms = clock.now_ms()
        if period > 0:
            self._broker.timers.every(period, self.sweep, now_ms)
        self._broker.timers.every(BOUND_PERIOD_MS, self.bound_topics, now_ms)

    def sweep(self) -> None:
        """Look at all destinations, and remove those whose time has come."""
        if any(policy.gc_inactive_destinations for policy in self._broker.topology.definitions.policies):
            limit = self._broker.settings.max_purged_destinations_per_sweep
            self._step(iter(self._broker.stats.known()), limit if limit > 0 else -1)

    def _step(self, destinations: Iterator[Destination], left: int) -> None:
        """Look at some of them; `left` may still be removed in this sweep, below 0: any number."""
        seen = 0
        for destination in itertools.islice(destinations, STEP):
            seen += 1
            if left and self._is_due(destination):
                self._remove(destination)
                left -= 1
        if seen == STEP and left:
            self._broker.timers.at(clock.now_ms() + STEP_PAUSE_MS, lambda: self._step(destinations, left))

    def _is_due(self, destination: Destination) -> bool:
        """Whether it is idle for as long as its policy says."""
        policy = self._broker.topology.policy_for(destination)
        if policy is None or not policy.gc_inactive_destinations or not self._is_idle(destination):
            self._idle.pop(destination, None)
            return False
        numbers, now_ms = self._broker.stats.of(destination), clock.now_ms()
        since, sent = self._idle.setdefault(destination, (now_ms, numbers.EnqueueCount))
        if sent != numbers.EnqueueCount:
            since, _ = self._idle[destination] = (now_ms, numbers.EnqueueCount)
        timeout = policy.inactive_timeout_before_gc
        return now_ms - since >= (DEFAULT_TIMEOUT_MS if timeout is None else timeout)

    def _is_idle(self, destination: Destination) -> bool:
        if destination not in self._broker.stats or self._broker.creation.is_declared(destination):
            return False
        if not self._broker.homes.is_here(str(destination)):
            return False
        if destination.kind is Kind.TOPIC:
            subscribers = self._broker.delivery.subscribers(destination)
            subscribers = subscribers or self._broker.homes.known.listeners_elsewhere(destination)
            return not (subscribers or self._broker.topology.feeds_of(destination.name))
        if destination.kind is not Kind.QUEUE:
            return False
        log = self._broker.queues.get(str(destination))
        if log is None:  # a composite that only forwards
            return True
        return not (log.consumers or log.depth or log.coming or self._broker.committer.brings_to(log.name))

    def _remove(self, destination: Destination) -> None:
        self._idle.pop(destination, None)
        log = self._broker.queues.get(str(destination))
        if log is not None:
            self._broker.delete(log)
        else:
            self._broker.delete_topics([destination])

    def bound_topics(self) -> None:
        """Forget the numbers of topics nobody listens to, the first known ones first, when there are too many."""
        topics = [each for each in self._broker.stats.known() if each.kind is Kind.TOPIC]
        too_many = len(topics) - self._broker.stats.bound
        if too_many > 0:
            idle = itertools.islice(filter(self._is_idle, topics), too_many)
            self._broker.delete_topics(list(idle))
