"""Decide which destinations may be created because a client names them, and which an operator created.

Those an operator made, or the configuration names, are *declared*: they stay until an operator deletes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.engine.routing.consumer_queues import is_consumer_queue
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.errors import LimitExceeded, RequestRefused
from brokerapp.model.definitions import CompositeDestination, PolicyEntry
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind, check_one

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, QueueLifecycle, RoutingPort


class AutoCreation:
    """Says which destinations exist, and which may be created because a client or an operator names them."""

    def __init__(self, *, context: BrokerContext, queues: QueueLifecycle, routing: RoutingPort) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._queues, self._routing = queues, routing
        self._topics: set[Destination] = set()  # declared ones

    # -- by clients

    def check(self, destination: Destination) -> None:
        """Raise RequestRefused when a client names what is not there and may not come into being."""
        if destination.is_pattern or destination.is_temporary or self.exists(destination):
            return
        policy = self._routing.table.policy_for(destination)
        if policy is None:
            return
        if policy.auto_create is False:
            raise RequestRefused(
                f"{destination} not found; the policy for {policy.destination} allows only operators to create it"
            )
        self._check_number(policy)

    def exists(self, destination: Destination) -> bool:
        """Return whether the queue or topic exists; a composite does once it is defined."""
        if destination.is_queue and destination.physical in self._queues:
            return True
        if not destination.is_queue and (is_advisory(destination) or destination in self._counters):
            return True
        found = self._routing.table.virtual_destinations_for(destination)
        return any(isinstance(each, CompositeDestination) for each in found)

    def _check_number(self, policy: PolicyEntry) -> None:
        most = policy.max_destinations
        if most is not None and 0 <= most <= self._number(policy.destination):
            raise LimitExceeded(
                f"the policy for {policy.destination} allows {most} destinations, and they exist already"
            )

    def _number(self, pattern: Destination) -> int:
        """Destinations that match a pattern, whatever other policy they may have."""
        if pattern.is_queue:
            return len(self._routing.table.queues.find(pattern.name))
        known = (
            each
            for each in self._counters.destinations()
            if each.kind is DestinationKind.TOPIC and not is_advisory(each)
        )
        return sum(matches(pattern.name, each.name) for each in known)

    # -- by operators

    def check_named(self, destination: Destination) -> None:
        """Raise InvalidDestination unless operators may have a queue or topic of this name: to create it, or to have
        messages sent there, which creates it. Only a queue that collects what virtual topics feed is called like a
        pattern."""
        if destination.kind in NAMED_KINDS:
            named = Destination(destination.kind, destination.name)  # options are no part of the name
            check_one(named, or_pattern=is_consumer_queue(self._routing.table.definitions, named.name))

    def declare(self, destination: Destination) -> None:
        """Create a destination that exists until an operator deletes it. Raises RequestRefused."""
        if not self.exists(destination):
            policy = self._routing.table.policy_for(destination)
            if policy is not None:
                self._check_number(policy)
        if destination.is_queue:
            self._queues.declare(destination)
        elif destination not in self._topics:
            self._commits.create(str(destination), json.dumps({"kind": DestinationKind.TOPIC}))
            self.recover(destination)

    def recover(self, topic: Destination) -> None:
        """Restore a topic that was declared to a former node."""
        self._topics.add(topic)
        self._counters.of(topic)

    def on_deleted_remotely(self, topic: Destination) -> None:
        """Forget a topic that an operator of another node deleted."""
        self._topics.discard(topic)

    def declared(self) -> Iterator[Destination]:
        """Yield the destinations that operators created or the configuration names."""
        yield from (log.destination for log in self._queues if self.is_declared(log.destination))
        yield from list(self._topics)

    def is_declared(self, destination: Destination) -> bool:
        """Return whether an operator created it, or the configuration names it."""
        if destination.is_queue:
            return self._queues.is_declared(destination)
        return destination in self._topics

    def forget(self, topic: Destination) -> None:
        """An operator deleted the topic."""
        if topic in self._topics:
            self._topics.discard(topic)
            self._commits.remove(str(topic))
