"""Decide what clients may do at destinations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.policy.authorization import AuthorizationMap, Principal
from brokerapp.errors import AccessDenied
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import CreationPort, Queues

#: What a permission allows, as ActiveMQ's errors call it.
_TO_BE_AUTHORIZED_TO = {"read": "read from", "write": "write to", "admin": "create"}


#: Says whether a user may do something at a destination.
MayDo = Callable[[Principal, str, Destination], bool]


class ClientAuthorizer:
    """Checks permissions. Without an authorization map everybody may do everything."""

    def __init__(self, *, access: AuthorizationMap | None, creation: CreationPort, queues: Queues) -> None:
        self.access = access
        self._creation, self._queues = creation, queues

    def require(self, client: Client, verb: str, destination: Destination) -> None:
        """Raise AccessDenied unless the client may; the first at a destination must be allowed to create it, too."""
        if self.access is None or client.is_internal:
            return
        may: MayDo = self.access.may
        verbs = [verb]
        if destination.is_pattern and verb == "read":
            may = self.access.may_some  # it is given what it may read
        elif not self._exists(destination):
            verbs.append("admin")
        for each in verbs:
            self._require(client, may, each, destination)
        if destination.address and self._queues.would_bind(destination) and not self.access.names(destination):
            self._require(client, may, "read", Destination.topic(destination.address))  # what will come to the queue

    def require_read(self, client: Client, destination: Destination) -> None:
        """Raise AccessDenied unless the client may read there (or some of a pattern), whether it exists or not."""
        if self.access is not None:
            may = self.access.may_some if destination.is_pattern else self.access.may
            self._require(client, may, "read", destination)

    def _require(self, client: Client, may: MayDo, verb: str, destination: Destination) -> None:
        if not may(client.principal, verb, destination):
            user, what = client.principal.name, _TO_BE_AUTHORIZED_TO[verb]
            raise AccessDenied(f"User {user} is not authorized to {what}: {destination}")

    def _exists(self, destination: Destination) -> bool:
        if destination.is_temporary:  # whoever may have one made it
            return True
        return self._creation.exists(destination)

    def may(self, subscription: Subscription, verb: str, destination: Destination) -> bool:
        """Say whether the owner of a subscription has a permission; a bridge has none at destinations it excludes."""
        client: Client = subscription.client
        if subscription.bridge_eligibility is not None and subscription.bridge_eligibility.excludes(destination.name):
            return False
        if self.access is None or (client.is_internal and subscription.principal is None):
            return True
        return self.access.may(subscription.principal or client.principal, verb, destination)
