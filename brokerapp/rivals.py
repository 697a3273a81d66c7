"""Rivals: consumers of bridges that are there for the same consumers elsewhere, by different ways.

Where brokers are joined in a circle a consumer is heard of by more than one way. Of the bridges that would take its
messages there one serves it, that of the highest priority, which is that of the shortest way; the others rest, until
that one ends (ActiveMQ's suppressDuplicateTopicSubscriptions and suppressDuplicateQueueSubscriptions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.destination import Destination
from brokerapp.engine.subscription import Subscription

if TYPE_CHECKING:
    from brokerapp.broker import Broker


class Rivals:
    """Of one broker, by what they consume. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._serving: dict[Destination, list[Subscription]] = {}
        self._resting: dict[Destination, list[Subscription]] = {}

    def admits(self, subscription: Subscription) -> bool:
        """Whether a consumer that begins is served; those who must rest for it do. Others have no rivals."""
        crossing, target = subscription.crossing, subscription.destinations[0]
        if crossing is None or not crossing.consumers:
            return True
        rivals = self._rivals(subscription)
        if crossing.yields and any(each.priority >= subscription.priority for each in rivals):
            self._resting.setdefault(target, []).append(subscription)
            return False
        for each in rivals:
            if each.crossing.yields:
                _remove(self._serving, target, each)
                self._resting.setdefault(target, []).append(each)
                self._broker.subscribing.rest(each)
        self._serving.setdefault(target, []).append(subscription)
        return True

    def left(self, subscription: Subscription) -> bool:
        """A consumer ends: who rested for it is served. Whether it rested itself."""
        target = subscription.destinations[0]
        if subscription.crossing is None:
            return False
        if _remove(self._resting, target, subscription):
            return True
        if _remove(self._serving, target, subscription):
            waiting = sorted(self._resting.get(target, ()), key=lambda each: -each.priority)
            for each in waiting:
                if not self._rivals(each):
                    _remove(self._resting, target, each)
                    self._serving.setdefault(target, []).append(each)
                    self._broker.subscribing.rise(each)
        return False

    def _rivals(self, subscription: Subscription) -> list[Subscription]:
        """Those who are served for one of its consumers."""
        serving = self._serving.get(subscription.destinations[0], ())
        return [each for each in serving if each.crossing.consumers & subscription.crossing.consumers]


def _remove(known: dict[Destination, list[Subscription]], target: Destination, subscription: Subscription) -> bool:
    found = known.get(target, [])
    if subscription not in found:
        return False
    found.remove(subscription)
    if not found:
        del known[target]
    return True
