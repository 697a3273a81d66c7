"""Admit bridges of other brokers to this one, and count what they deliver."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import Principal
from brokerapp.engine.routing.bridge_eligibility import BridgeFilterCounts
from brokerapp.errors import AuthenticationFailed
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.network_stats import InboundBridgeStats

if TYPE_CHECKING:
    from brokerapp.core.ports import Authorizer, BrokerContext, BrokerEvents

#: Where rights say who may be a bridge: who may create the topic of this name and the bridge's broker.
RIGHT = "Sluice.Network."


#: Messages of topics from other brokers that are known again: seconds of a busy network, some 10 MB.
REMEMBERED = 50_000


def delivering_bridge(message: Message, sender: Client | None) -> str | None:
    """Return the connection of a bridge that delivers several copies of a message on purpose; "": of any other bridge.

    That is so without conduit subscriptions: each subscriber here is one for the bridge, too.
    """
    if sender is None or not sender.bridge or not message.path:
        return None
    return sender.id if sender.sends_copy_per_subscriber else ""


class BridgeClients:
    """Admits bridges of other brokers, and recognizes messages that they deliver twice."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        clients: Mapping[str, Client],
        events: BrokerEvents,
    ) -> None:
        self._settings = context.settings
        self._authorizer, self._clients, self._events = authorizer, clients, events
        #: By whom a message came: who brings copies on purpose brings more of it; "": nobody does.
        self._heard: OrderedDict[tuple[str, Destination], str] = OrderedDict()

    def check(self, principal: Principal, broker: str) -> None:
        """Raise AuthenticationFailed unless who logged in may be the bridge of the broker of this name.

        A bridge may do what no client may: it says where a message came from and which id it has, and lets temporary
        destinations of its broker exist here.
        """
        access, groups = self._authorizer.access, self._settings.bridge_groups
        if groups is not None:
            may = not groups.isdisjoint(principal.groups)
        else:
            may = access is None or access.may(principal, "admin", Destination.topic(RIGHT + broker))
        if not may:
            needed = (
                f"the permission to create the topic {RIGHT}{broker}"
                if groups is None
                else f"a user with the role {' or '.join(sorted(groups))}"
            )
            raise AuthenticationFailed(
                f"User {principal.name} may not be a bridge of {broker}: a bridge needs {needed}"
            )

    def on_bridge_connected(self, client: Client, broker: str, *, duplex: bool) -> None:
        """Note that a client is the bridge of that broker."""
        client.bridge, client.bridge_counts, client.is_duplex = broker, BridgeFilterCounts(), duplex
        if duplex:  # it takes messages to there, too
            self._events.bridge_started(client.id, broker, client.remote_address)

    def on_client_disconnected(self, client: Client) -> None:
        """Tell that a bridge is gone, if the client that is gone was one."""
        self._events.bridge_stopped(client.id)

    def is_repeated(self, message: Message, topic: Destination, sender: Client | None) -> bool:
        """Return whether a message of a topic arrived before, by another path through the network; record its arrival.

        Subscribers are to get it once. What is kept of it the store knows again (functions/bridge_dedup.lua).
        """
        by = delivering_bridge(message, sender)
        if sender is None or by is None:
            return False
        repeated = self.record_arrival(message, topic, by)
        if repeated and sender.bridge_counts is not None:
            sender.bridge_counts.repeated += 1
        return repeated

    def record_arrival(self, message: Message, topic: Destination, by: str) -> bool:
        """Do so for a message that came by a bridge to this node or another one; `by`: see `delivering_bridge`."""
        key = message.id, topic
        if key in self._heard:
            return not by or self._heard[key] != by
        self._heard[key] = by
        if len(self._heard) > REMEMBERED:
            self._heard.popitem(last=False)
        return False

    def incoming(self) -> list[InboundBridgeStats]:
        """Return the statistics of the bridges that are connected now."""
        return list(self._incoming())

    def _incoming(self) -> Iterator[InboundBridgeStats]:
        for each in self._clients.values():
            if each.bridge and each.bridge_counts is not None and not each.is_internal:
                given = 0 if each.is_openwire else each.delivered_count  # it consumes nothing but advisories
                yield InboundBridgeStats(
                    each.bridge, each.id, each.client_id, each.remote_address, each.principal.name, each.connected_ms,
                    received=each.sent_count, duplicates=each.bridge_counts.repeated, given=given,
                    dropped_by_ttl=each.bridge_counts.too_far,
                )  # fmt: skip
