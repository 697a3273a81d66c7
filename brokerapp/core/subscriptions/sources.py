"""Check that a client may consume from the destinations it names, and create them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.subscribe_options import subscription_name
from brokerapp.model.broker_path import TO_HEADER
from brokerapp.model.commands import SubscribeCommand
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import Authorizer, CreationPort, Queues, TemporariesPort


class SubscriptionSources:
    """Resolves the destinations of SUBSCRIBE commands."""

    def __init__(
        self, *, authorizer: Authorizer, creation: CreationPort, queues: Queues, temporaries: TemporariesPort
    ) -> None:
        self._authorizer, self._creation, self._queues = authorizer, creation, queues
        self._temporaries = temporaries

    def open(self, client: Client, subscribe: SubscribeCommand) -> tuple[Destination, ...]:
        """Return what a client wants to consume from, all of which it may read. Raises RequestRefused."""
        targets = Destination.parse_list(subscribe.destination)
        for each in targets:
            if each.is_temporary:
                if TO_HEADER in subscribe.options and client.is_broker:
                    self._temporaries.host_for_bridge(
                        client, subscription_name(subscribe.id, subscribe.destination), each
                    )
                self._temporaries.check(each)
            self._authorizer.require(client, "read", each)
            self._creation.check(each)
            if each.address is not None:
                self._queues.ensure(each, subscribe.selector)
        return targets

    def close(self, client: Client, name: str, sources: tuple[Destination, ...]) -> None:
        """Give back temporary destinations of other brokers that a bridge consumed by the subscription of this name."""
        for each in sources:
            if each.is_temporary:
                self._temporaries.release_remote(client, name, each)
