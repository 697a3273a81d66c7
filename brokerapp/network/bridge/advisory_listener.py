"""Follow the consumers at the target of a bridge by that broker's advisories."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.model.destination import DestinationKind
from brokerapp.model.transformations import ADVISORY_JSON
from brokerapp.network.bridge.demand import Demand, DemandChange
from brokerapp.network.links.bridge_link import BridgeLink
from brokerapp.network.options.options import ConnectorOptions
from brokerapp.stomp.frames import Frame

logger = logging.getLogger(__name__)

#: Seconds that a consumer has to be back after a broken link, where any is served as a durable one (forceDurable).
FORCED_DURABLE_GRACE_SECONDS = 60.0
#: The subscription by which a bridge hears of consumers.
SUBSCRIPTION_ID = "demand"
_CONSUMERS = "ActiveMQ.Advisory.Consumer."
_VIRTUAL_CONSUMERS = "ActiveMQ.Advisory.VirtualDestination.Consumer."
#: Where a Sluice tells that bridges there are for others than when they began.
_BRIDGE_CONSUMERS = "ActiveMQ.Advisory.BridgeConsumer."
_WORDS = {DestinationKind.QUEUE: "Queue", DestinationKind.TOPIC: "Topic"}


class AdvisoryListener:
    """Of the bridge of this name. `follow` is told how demand changes, `all_known` when all of it is known.

    How all begins that is the bridge's on its links is `prefix`.
    """

    def __init__(
        self, name: str, target: BridgeLink, prefix: str, terms: ConnectorOptions, demand: Demand,
        follow: Callable[[DemandChange], None], all_known: Callable[[], None],
    ) -> None:  # fmt: skip
        self._name, self._target, self._prefix, self._terms, self._demand = name, target, prefix, terms, demand
        self._on_demand_change, self._on_complete = follow, all_known
        self._advisory_count = 0  # advisories

    def start(self) -> None:
        """Hear of who consumes there."""
        headers = {"transformation": ADVISORY_JSON, "ack": "auto"}
        topics = ",".join(f"/topic/{each}" for each in self._topics())
        self._target.subscribe(self._prefix + SUBSCRIPTION_ID, topics, self._on_advisory, headers)

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
        if self._target.dialect.is_sluice:
            said = [each.removeprefix(_CONSUMERS) for each in topics if each.startswith(_CONSUMERS)]
            topics += [_BRIDGE_CONSUMERS + each for each in said]
        return topics

    def _on_advisory(self, frame: Frame) -> None:
        try:
            document = json.loads(frame.body)
        except ValueError:
            logger.warning("%s: an advisory from %s is not valid JSON", self._name, self._target.remote)
            return
        if "AllConsumers" in document:
            self._on_all_consumers(document["AllConsumers"])
            return
        self._advisory_count += 1
        if "ConsumerInfo" in document:
            self._on_demand_change(
                self._demand.on_consumer_started(self._target.dialect.consumer_info(document["ConsumerInfo"]))
            )
        elif "BridgeConsumerInfo" in document:
            self._on_demand_change(self._demand.on_origins_changed(document["BridgeConsumerInfo"]))
        elif "RemoveInfo" in document:
            self._on_demand_change(self._demand.on_consumer_stopped(document["RemoveInfo"]))
        elif "RemoveSubscriptionInfo" in document:
            self._on_demand_change(self._demand.on_subscription_removed(document["RemoveSubscriptionInfo"]))

    def _on_all_consumers(self, said: Mapping[str, Any]) -> None:
        """All consumers and durable subscriptions there are known now.

        Consumers that are served as durable ones, and are none, get some time to come back.
        """
        if self._advisory_count < said.get("told", 0):
            logger.warning("%s: %s reported more consumers than advisories announced", self._name, self._target.remote)
        elif self._terms.forced_durable:
            self._target.call_later(FORCED_DURABLE_GRACE_SECONDS, self._on_complete)
        else:
            self._on_complete()
