"""Send advisories about what exists already to new subscribers of advisories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.core.advisories import documents
from brokerapp.core.advisories.advisory_publisher import AdvisoryPublisher
from brokerapp.core.advisories.existing import ExistingState
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.destination_trie import matches, overlap
from brokerapp.model.destination import Destination, DestinationKind

if TYPE_CHECKING:
    from brokerapp.core.ports import Authorizer, BrokerContext, Placement


class AdvisoryReplay:
    """Gives a new subscriber of advisories one advisory of each thing that exists."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        existing: ExistingState,
        placement: Placement,
        publisher: AdvisoryPublisher,
    ) -> None:
        self._settings, self._authorizer, self._existing = context.settings, authorizer, existing
        self._placement, self._publisher = placement, publisher

    def start(self, subscriber: Subscription) -> None:
        """Tell this subscriber, and nobody else, what exists of what it wants to hear of."""
        wanted = [each for each in subscriber.destinations if each.kind is DestinationKind.TOPIC]
        if not self._settings.advisory_support or not any(overlap(each.name, topics.ALL) for each in wanted):
            return
        told, of_sluice = 0, _is_bridge_of_sluice(subscriber.client)
        for family, existing in self._existing.news(to_bridge=of_sluice).items():
            if not any(overlap(each.name, family) for each in wanted):
                continue
            for name, headers, document in existing():
                topic = Destination.topic(name)
                if any(matches(each.name, name) for each in wanted) and self._authorizer.may(subscriber, "read", topic):
                    self._publisher.offer(subscriber, name, headers, document)
                    told += 1
        self._placement.remote_advisories.listen(wanted, lambda: self._tell_all_told(subscriber, told))

    def _tell_all_told(self, subscriber: Subscription, told: int) -> None:
        """Let a bridge know that it knows all consumers now, those of other nodes' clients too."""
        client = subscriber.client
        if _is_bridge_of_sluice(client) and client.subscriptions.get(subscriber.name) is subscriber:
            self._publisher.offer(subscriber, topics.PREFIX + topics.BRIDGE_CONSUMER, {}, documents.all_told(told))
            self._placement.request_dispatch()


def _is_bridge_of_sluice(client: Client) -> bool:
    """Return whether a client understands what only bridges of Sluice are told: all others are of ActiveMQ."""
    return bool(client.bridge) and not client.is_openwire
