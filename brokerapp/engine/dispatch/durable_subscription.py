"""Represent a named subscription, and decide which client may use it next.

What it keeps never changes: whoever wants something else under the same name gets another one, if they may. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.policy.authorization import AuthorizationMap, Principal
from brokerapp.engine.routing.subscription_feeds import SubscriptionFeed
from brokerapp.errors import AccessDenied, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity


@dataclass(slots=True, eq=False)
class DurableSubscription:
    """Represent a named subscription that exists."""

    log: MessageLog
    feed: SubscriptionFeed
    offline_since_ms: int  #: since the epoch, or since the node started; of no meaning while it has consumers
    maybe_consumed: Callable[[str], bool]  #: asked of the log: whether a consumer may go on behind a lost link

    @property
    def identity(self) -> SubscriptionIdentity:
        """Return what the subscription keeps, and for whom."""
        return self.feed.subscription

    @property
    def is_active(self) -> bool:
        """Return whether anybody consumes it, as far as is known here."""
        return bool(self.log.consumers) or self.maybe_consumed(self.log.name)

    def matches(self, wanted: SubscriptionIdentity) -> bool:
        """Return whether it keeps what is wanted. Raises RequestRefused when the consumer cannot have or replace it."""
        if self.identity.shared != wanted.shared:
            raise RequestRefused(f"there is a {self.identity}: it cannot be shared and unshared")
        same = self.identity.has_same_contents(wanted)
        if self.is_active and not wanted.shared:
            raise RequestRefused(f"the {self.identity} has a consumer already")
        if self.is_active and not same:
            raise RequestRefused(f"the {self.identity} has consumers, with another topic or selector")
        return same

    def must_be_replaced(self, wanted: SubscriptionIdentity, access: AuthorizationMap | None) -> bool:
        """Return whether its next consumer needs a new one. Raises RequestRefused, AccessDenied."""
        same, entitled = self.matches(wanted), self._may_read_all(wanted, access)
        if self.is_active and not entitled:
            raise AccessDenied(f"the {self.identity} has consumers, and is given what this user may not read")
        if not same:
            self._check_may_drop(wanted, access)
        return not (same and entitled)

    def _may_read_all(self, wanted: SubscriptionIdentity, access: AuthorizationMap | None) -> bool:
        """Return whether its next consumer may read all that it may hold; of a pattern users get what they may read."""
        if access is None or wanted.groups == self.identity.groups:
            return True
        return all(access.may(_reader(wanted), "read", topic) for topic in self.identity.topics)

    def _check_may_drop(self, wanted: SubscriptionIdentity, access: AuthorizationMap | None) -> None:
        """Raise AccessDenied unless a user could consume what would be dropped with the former subscription."""
        if access is None:
            return
        for topic in self.identity.topics:
            may = access.may_some if topic.is_pattern else access.may
            if not may(_reader(wanted), "read", topic):
                raise AccessDenied(f"the {self.identity} keeps {topic}, which this user may not read")


def may_read(subscription: SubscriptionIdentity, topic: Destination, access: AuthorizationMap | None) -> bool:
    """Return whether the user of a subscription may read one of the topics that its pattern matches."""
    if access is None or subscription.groups is None:
        return True
    return access.may(_reader(subscription), "read", topic)


def _reader(subscription: SubscriptionIdentity) -> Principal:
    return Principal("", frozenset(subscription.groups or ()))
