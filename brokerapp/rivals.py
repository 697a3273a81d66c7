"""Rivals: consumers of bridges that are there for the same consumers elsewhere, by different ways.

Where brokers are joined in a circle a consumer is heard of by more than one way. Of the bridges that would take its
messages there one serves it, that of the highest priority and among those that of the shortest way; the others rest,
until that one ends (ActiveMQ's suppressDuplicateTopicSubscriptions and suppressDuplicateQueueSubscriptions). The way is
counted also where bridges have one priority (decreaseNetworkConsumerPriority is false): who serves must not depend on
which of them was heard of first, as it does in ActiveMQ, nor messages take two bridges where one leads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from brokerapp.destination import Destination
from brokerapp.engine.crossing import Crossing
from brokerapp.engine.subscription import Subscription

if TYPE_CHECKING:
    from brokerapp.broker import Broker


class Rivals:
    """Those of one broker: of each destination, the consumers of bridges, and whether they serve. A part of it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._at: dict[Destination, dict[Subscription, bool]] = {}

    def admits(self, subscription: Subscription) -> bool:
        """Whether a consumer that begins is served; those who rest for it from now on do."""
        if subscription.crossing is None:
            return True
        target = subscription.destinations[0]
        known = self._at.setdefault(target, {})
        known[subscription] = False
        serving = who_serve(known)
        admitted = subscription in serving
        known[subscription] = admitted
        self._follow(target, serving)
        return admitted

    def is_for(self, subscription: Subscription, crossing: Crossing, priority: int) -> None:
        """The consumers that a bridge's is there for are others now, and perhaps nearer, or farther away.

        Whoever listens is told, but for what rests: of that they are told when it does so no longer.
        """
        before = subscription.crossing
        if (before.consumers, before.path, subscription.priority) == (crossing.consumers, crossing.path, priority):
            return
        before.consumers, before.path, subscription.priority = crossing.consumers, crossing.path, priority
        target = subscription.destinations[0]
        known = self._at.get(target, {})
        if known.get(subscription, True):
            self._broker.advisories.consumer_is_for(subscription)
        if subscription in known:
            self._follow(target, who_serve(known))

    def rests(self, subscription: Subscription) -> bool:
        """Whether it stands aside."""
        return not self._at.get(subscription.destinations[0], {}).get(subscription, True)

    def left(self, subscription: Subscription) -> bool:
        """A consumer ends: who rested for it is served. Whether it rested itself."""
        target = subscription.destinations[0]
        known = self._at.get(target, {})
        if subscription not in known:
            return False
        served = known.pop(subscription)
        if not known:
            del self._at[target]
        elif served:
            self._follow(target, who_serve(known))
        return not served

    def _follow(self, target: Destination, serving: set[Subscription]) -> None:
        known = self._at[target]
        for each, served in list(known.items()):
            if served is not (each in serving):
                known[each] = not served
                (self._broker.subscribing.rest if served else self._broker.subscribing.rise)(each)


def who_serve(known: dict[Subscription, bool]) -> set[Subscription]:
    """Of these, each with whether it serves now, those that are to: for each consumer one at least."""
    covered: set[str] = set()
    serving = set()
    for each in _by_precedence(known):
        consumers = each.crossing.consumers
        if not (each.crossing.yields and consumers and consumers <= covered):
            serving.add(each)
            covered |= consumers
    return serving


def _by_precedence(known: dict[Subscription, bool]) -> Iterable[Subscription]:
    """The higher priority first, then the shorter way; among equals who serves goes on doing so."""
    return sorted(known, key=lambda each: (-each.priority, len(each.crossing.path), not known[each]))
