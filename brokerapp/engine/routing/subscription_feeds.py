"""Decide which messages of its topics a named subscription stores, and in which log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import compile_selector


class SubscriptionFeed:
    """Feeds the log `target` from the topics of a subscription. Raises SelectorSyntaxError."""

    __slots__ = ("_may_read", "persistent_only", "selector", "subscription", "target")

    def __init__(
        self,
        subscription: SubscriptionIdentity,
        target: Destination,
        may_read: Callable[[SubscriptionIdentity, Destination], bool],
    ) -> None:
        self.subscription, self.target, self._may_read = subscription, target, may_read
        self.selector = compile_selector(subscription.selector) if subscription.selector else None
        self.persistent_only = False  #: nobody consumes, and the broker keeps only such messages then

    def may_read(self, topic: Destination) -> bool:
        """Whether its user may have what is sent there."""
        return self._may_read(self.subscription, topic)

    @property
    def depends_on_message(self) -> bool:
        """Whether it takes some messages of a topic and not others."""
        return self.selector is not None or self.subscription.no_local or self.persistent_only

    def takes(self, headers: Mapping[str, str], sender: str) -> bool | None:
        """Whether it keeps a message with these headers, sent by the client of this client-id; None: unknown."""
        if self.persistent_only and headers.get("persistent") != "true":
            return False
        if self.subscription.no_local and sender == self.subscription.client_id:
            return False
        return self.selector is None or self.selector.evaluate(headers)
