"""Follow the consumers at the target of a bridge by that broker's advisories."""

from __future__ import annotations

import logging
from collections.abc import Callable

from brokerapp.model.destination import DestinationKind
from brokerapp.network.bridge.demand import Demand, DemandChange
from brokerapp.network.links.broker_link import BrokerLink
from brokerapp.network.links.remote_consumers import (
    AllConsumersTold,
    ConsumerEvent,
    ConsumerStarted,
    ConsumerStopped,
    OriginsChanged,
    SubscriptionRemoved,
)
from brokerapp.network.options.options import ConnectorOptions

logger = logging.getLogger(__name__)

#: Seconds that a consumer has to be back after a broken link, where any is served as a durable one (forceDurable).
FORCED_DURABLE_GRACE_SECONDS = 60.0
#: The subscription by which a bridge hears of consumers.
SUBSCRIPTION_ID = "demand"
_CONSUMERS = "ActiveMQ.Advisory.Consumer."
_VIRTUAL_CONSUMERS = "ActiveMQ.Advisory.VirtualDestination.Consumer."
_WORDS = {DestinationKind.QUEUE: "Queue", DestinationKind.TOPIC: "Topic"}


class AdvisoryListener:
    """Of the bridge of this name. `follow` is told how demand changes, `all_known` when all of it is known.

    How all begins that is the bridge's on its links is `prefix`.
    """

    def __init__(
        self, name: str, target: BrokerLink, prefix: str, terms: ConnectorOptions, demand: Demand,
        follow: Callable[[DemandChange], None], all_known: Callable[[], None],
    ) -> None:  # fmt: skip
        self._name, self._target, self._prefix, self._terms, self._demand = name, target, prefix, terms, demand
        self._on_demand_change, self._on_complete = follow, all_known
        self._event_count = 0  # but the one that all were told

    def start(self) -> None:
        """Hear of who consumes there."""
        self._target.follow_consumers(self._prefix + SUBSCRIPTION_ID, self._topics(), self._on_event)

    def _topics(self) -> list[str]:
        """Return the advisory topics about the consumers that concern this bridge."""
        terms = self._terms
        if terms.destination_filter is not None:
            first, *others = terms.destination_filter.split(",")
            topics = [_CONSUMERS + first, *others]
        elif terms.dynamically_included:
            about = [f"{_WORDS[each.kind]}.{each.name}" for each in terms.dynamically_included]
            topics = [_CONSUMERS + each for each in about]
            if terms.use_virtual_dest_subs:
                topics += [_VIRTUAL_CONSUMERS + each for each in about]
        else:
            topics = [_CONSUMERS + ">"]
            if terms.use_virtual_dest_subs:
                topics.append(_VIRTUAL_CONSUMERS + ">")
        return topics

    def _on_event(self, event: ConsumerEvent) -> None:
        if isinstance(event, AllConsumersTold):
            self._on_all_consumers(event.count)
            return
        self._event_count += 1
        match event:
            case ConsumerStarted(consumer):
                change = self._demand.on_consumer_started(consumer)
            case OriginsChanged(consumer):
                change = self._demand.on_origins_changed(consumer)
            case ConsumerStopped(id):
                change = self._demand.on_consumer_stopped(id)
            case SubscriptionRemoved(client_id, name):
                change = self._demand.on_subscription_removed(client_id, name)
        self._on_demand_change(change)

    def _on_all_consumers(self, told: int) -> None:
        """All consumers and durable subscriptions there are known now.

        Consumers that are served as durable ones, and are none, get some time to come back.
        """
        if self._event_count < told:
            logger.warning("%s: %s reported more consumers than advisories announced", self._name, self._target.remote)
        elif self._terms.forced_durable:
            self._target.call_later(FORCED_DURABLE_GRACE_SECONDS, self._on_complete)
        else:
            self._on_complete()
