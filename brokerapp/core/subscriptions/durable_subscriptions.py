"""Manage the named subscriptions of topics, durable and shared, each with a log of its messages.

Such a log is consumed like a queue. What it keeps never changes: whoever wants something else under the same name gets
a new log, and the old one goes with what it holds.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from brokerapp.core.subscriptions.served_subscriptions import ServedSubscriptions
from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription, may_read
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing.subscription_feeds import SubscriptionFeed
from brokerapp.errors import RequestRefused, SubscriptionNotFound
from brokerapp.model.broker_path import BRIDGE_DURABLE_PREFIX
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.store import DISCARDED, LogState
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        BrokerEvents,
        ConsumersPort,
        Placement,
        RoutingPort,
        SubscriptionLogs,
    )

logger = logging.getLogger(__name__)

#: Abandoned subscriptions are looked for no more often than this: each look goes through all of them.
SHORTEST_SCHEDULE_MS = 100


class DurableSubscriptions:
    """Manages the named subscriptions of topics, durable and shared."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        consumers: ConsumersPort,
        events: BrokerEvents,
        placement: Placement,
        queues: SubscriptionLogs,
        routing: RoutingPort,
        served: ServedSubscriptions,
    ) -> None:
        self._settings, self._commits = context.settings, context.commits
        self._authorizer, self._consumers, self._events = authorizer, consumers, events
        self._placement, self._queues = placement, queues
        self._routing, self._served = routing, served
        self._by_key: dict[tuple[str, str, bool], DurableSubscription] = {}
        self._by_log: dict[str, DurableSubscription] = {}
        self._leading: dict[str, set[Destination]] = {}  # logs kept for bridges, by the broker these lead to
        self._discarded: set[str] = set()  # names of logs that are not gone yet, whoever discards them
        if context.settings.offline_durable_subscriber_timeout > 0:
            period = max(SHORTEST_SCHEDULE_MS, context.settings.offline_durable_subscriber_task_schedule)
            context.timers.call_every(period, self._remove_abandoned, clock.now_ms())

    def __iter__(self) -> Iterator[DurableSubscription]:
        return iter(self._by_key.values())

    def find(self, client_id: str, name: str) -> DurableSubscription:
        """Return the durable subscription of this client id and name. Raises SubscriptionNotFound."""
        try:
            return self._by_key[client_id, name, True]
        except KeyError:
            of = f" of client-id {client_id!r}" if client_id else ""
            raise SubscriptionNotFound(f"durable subscription {name!r}{of} not found") from None

    def of_log(self, log: MessageLog) -> DurableSubscription:
        """Return the subscription whose messages are in this log."""
        return self._by_log[log.name]

    def known(self, log: str) -> DurableSubscription | None:
        """Return the subscription whose messages are in the log of this name, if there is one."""
        return self._by_log.get(log)

    def of_topic(self, topic: Destination) -> list[DurableSubscription]:
        """Return the subscriptions that store messages of this topic, online or not."""
        feeds = self._routing.table.feeds_of(topic.name)
        return [self._by_key[feed.subscription.key] for feed in feeds]

    def logs_kept_for_bridges(self, path: Iterable[str]) -> set[Destination]:
        """Return the logs of bridges to the brokers of this path."""
        return set().union(*[self._leading[each] for each in path if each in self._leading])

    # -- life

    def recover(self, state: LogState) -> None:
        """Restore a subscription from its log in the store."""
        if state.attributes["kind"] != DISCARDED and not state.attributes["topics"]:
            logger.warning("%s has no topics, as the API once let it be created: it is deleted", state.name)
        elif state.attributes["kind"] != DISCARDED:
            subscription = SubscriptionIdentity.from_attributes(state.attributes)
            if subscription.durable or not self._placement.is_alone:
                log = self._queues.restore(state)
                durable = self._add(SubscriptionFeed(subscription, log.destination, self._may_read), log)
                if state.attributes.get("prioritized") and not (log.policy.prioritized or log.is_remote):
                    self._queues.describe(log, self._attributes(durable))
                return
        self.discard(state.name)

    def claim(self, wanted: SubscriptionIdentity, retroactive: bool = False) -> DurableSubscription:
        """Return the subscription as its next consumer wants it; create it when it does not exist so.

        A new one begins with what its topics remember when it is `retroactive`. One that may hold what its next
        consumer may not read begins anew. Raises RequestRefused when its consumers, or the kind it is of, stand in
        the way, AccessDenied when that drops what the next consumer could not even have asked for.
        """
        if wanted.durable and self._settings.reject_durable_consumers:
            raise RequestRefused("there are no durable subscriptions on this broker (rejectDurableConsumers)")
        found = self._by_key.get(wanted.key)
        if found is not None:
            if not self._must_go(found, wanted):
                return found
            self._discard_log(found)
        durable = self.create(wanted)
        if retroactive:
            self._events.retroactive_durable_created(durable)
        return durable

    def find_conflicting(self, wanted: SubscriptionIdentity) -> DurableSubscription | None:
        """Return the subscription that must be removed first, if another node, which owns its log, decides about that.

        Raises what `claim` raises.
        """
        found = self._by_key.get(wanted.key)
        return found if found is not None and found.log.is_remote and self._must_go(found, wanted) else None

    def refusal(self, wanted: SubscriptionIdentity) -> RequestRefused | None:
        """Return why `claim` would refuse this; None where it would not."""
        found = self._by_key.get(wanted.key)
        try:
            if found is not None:
                self._must_go(found, wanted)
        except RequestRefused as error:
            return error
        return None

    def _must_go(self, found: DurableSubscription, wanted: SubscriptionIdentity) -> bool:
        return found.must_be_replaced(wanted, self._authorizer.access)

    def find_identity(self, wanted: SubscriptionIdentity) -> DurableSubscription | None:
        """Return the subscription of this identity, whatever its topics and selector."""
        return self._by_key.get(wanted.key)

    def check_free(self, subscription: SubscriptionIdentity) -> None:
        """Raise RequestRefused when there is one of this identity."""
        if subscription.key in self._by_key:
            raise RequestRefused(f"the {subscription} exists already")

    def would_change(self, wanted: SubscriptionIdentity) -> bool:
        """Return whether claiming it creates or replaces a subscription. Raises RequestRefused as `claim` does."""
        if wanted.durable and self._settings.reject_durable_consumers:
            raise RequestRefused("there are no durable subscriptions on this broker (rejectDurableConsumers)")
        found = self._by_key.get(wanted.key)
        return found is None or not found.matches(wanted)

    def create(self, subscription: SubscriptionIdentity) -> DurableSubscription:
        """Create a subscription. Raises RequestRefused when it exists already, SelectorSyntaxError."""
        self.check_free(subscription)
        queues = self._queues
        names = (subscription.log(generation) for generation in itertools.count(1))
        free = next(each for each in names if each not in queues and str(each) not in self._discarded)
        feed = SubscriptionFeed(subscription, free, self._may_read)
        return self._add(feed, queues.open(free, subscription.attributes()))

    def _add(self, feed: SubscriptionFeed, log: MessageLog) -> DurableSubscription:
        subscription = feed.subscription
        durable = DurableSubscription(log, feed, clock.now_ms(), self._placement.subscription_takeover.maybe_consumed)
        self._by_key[subscription.key] = self._by_log[log.name] = durable
        self._lead(durable)
        self._routing.table.add_feed(feed)
        self._events.topic_subscribers_changed()
        self._only_persistent(durable)
        self._tune(durable)
        return durable

    def retune(self) -> None:
        """Apply the policies that are in force."""
        for durable in self:
            self._tune(durable)

    def _tune(self, durable: DurableSubscription) -> None:
        """In order of priority where the policy of its topic says so; its other rules are for queues."""
        policy = self._routing.table.policy_for(durable.identity.topics[0])
        rules = DispatchPolicy(prioritized=bool(policy and policy.prioritized_messages))
        self._queues.tune(durable.log, rules, partial(self._attributes, durable))

    @staticmethod
    def _attributes(durable: DurableSubscription) -> dict[str, Any]:
        attributes = durable.identity.attributes()
        return {**attributes, "prioritized": True} if durable.log.policy.prioritized else attributes

    def _may_read(self, subscription: SubscriptionIdentity, topic: Destination) -> bool:
        """Return whether its user may read a topic that its pattern matches."""
        return may_read(subscription, topic, self._authorizer.access)

    def adopt(self, durable: DurableSubscription, subscription: Subscription) -> None:
        """Let the subscription belong to the user, or bridge, of its first consumer; all nodes are told."""
        wanted, subscription.takeover = subscription.takeover, None
        if wanted is not None and not durable.is_active and self._leave_to(durable, wanted):
            self._queues.describe(durable.log, self._attributes(durable))

    def described(self, log: MessageLog, attributes: Mapping[str, Any]) -> None:
        """Update a subscription that another node has changed in the store."""
        self._leave_to(self.of_log(log), SubscriptionIdentity.from_attributes(attributes))

    def _leave_to(self, durable: DurableSubscription, wanted: SubscriptionIdentity) -> bool:
        """Let it belong to this user, or bridge; return whether it belonged to another."""
        known = durable.identity
        if (known.groups, known.leads_to) == (wanted.groups, wanted.leads_to):
            return False
        self._lead_nowhere(durable)
        durable.feed.subscription = known.for_reader(wanted.groups, wanted.leads_to)
        self._lead(durable)
        self._routing.table.plans.clear()
        return True

    def _lead(self, durable: DurableSubscription) -> None:
        if to := durable.identity.leads_to:
            self._leading.setdefault(to, set()).add(durable.log.destination)

    def _lead_nowhere(self, durable: DurableSubscription) -> None:
        self._leading.get(durable.identity.leads_to, set()).discard(durable.log.destination)

    def remove(self, durable: DurableSubscription) -> None:
        """Remove a subscription with its messages. Raises RequestRefused while it has consumers."""
        if durable.is_active:
            raise RequestRefused(f"the {durable.identity} is in use: its consumers unsubscribe first")
        self._discard_log(durable)

    def remove_unused_of_bridge(self, client_id: str, names: Collection[str]) -> None:
        """Remove the durable subscriptions of a bridge that have neither consumers nor one of these names."""
        for durable in list(self):
            named = durable.identity
            is_its = named.client_id == client_id and named.name.startswith(BRIDGE_DURABLE_PREFIX)
            if is_its and named.name not in names and not durable.is_active:
                logger.info("%s is no longer needed: removed", named)
                self._placement.subscription_removal.remove(durable, lambda _in_use: None)

    def _discard_log(self, durable: DurableSubscription) -> None:
        del self._by_key[durable.identity.key], self._by_log[durable.log.name]
        self._lead_nowhere(durable)
        self._routing.table.remove_feed(durable.feed)
        self._events.topic_subscribers_changed()
        self._queues.forget(durable.log)
        self.discard(durable.log.name)
        if durable.identity.durable:
            for topic in durable.identity.topics:
                self._events.durable_removed(*durable.identity.key[:2], topic)

    def on_removed_remotely(self, log: MessageLog) -> None:
        """Forget a subscription that another node removes."""
        self._discarded.add(log.name)
        durable = self._by_log.pop(log.name)
        if self._by_key.get(durable.identity.key) is durable:
            del self._by_key[durable.identity.key]
        self._lead_nowhere(durable)
        self._routing.table.remove_feed(durable.feed)
        self._queues.forget(log)

    def discard(self, log: str) -> None:
        """Discard what is in, or on its way to, the log of this name."""

        def done() -> None:
            self._discarded.discard(log)
            self._placement.announce_removed(log)

        self._discarded.add(log)
        self._commits.discard_log(log, done)

    def on_removal_completed(self, log: str) -> None:
        """Free the name of a log that another node has removed."""
        self._discarded.discard(log)

    # -- consumers

    def join(self, subscription: Subscription, durable: DurableSubscription) -> None:
        """Attach a consumer. Whether it is the first is known at the node that owns the log."""
        subscription.durable = durable
        if subscription.owner_session or not durable.log.is_remote:
            self.adopt(durable, subscription)
        self._consumers.attach(subscription, durable.log)
        self._only_persistent(durable)
        self._note_topics(durable)

    def on_consumer_detached(self, durable: DurableSubscription) -> None:
        """Note that a consumer is detached; a shared subscription without consumers that is not durable is removed."""
        self._note_topics(durable)
        if durable.is_active or durable.log.is_remote:
            return
        durable.offline_since_ms = clock.now_ms()
        if durable.identity.durable:
            self._only_persistent(durable)
        else:
            self._discard_log(durable)

    def moved(self, log: MessageLog) -> None:
        """Note that this node owns a log now, or no more; since when it is offline is counted anew."""
        durable = self.known(log.name)
        if durable is None:
            return
        durable.offline_since_ms = clock.now_ms()
        self._only_persistent(durable)
        if not (log.is_remote or log.consumers or durable.identity.durable):
            self.on_consumer_detached(durable)

    def _note_topics(self, durable: DurableSubscription) -> None:
        for topic in durable.identity.topics:
            self._served.note_subscribers(topic)

    def _only_persistent(self, durable: DurableSubscription) -> None:
        """Without keepDurableSubsActive one that is offline keeps persistent messages only."""
        may_be_active = durable.is_active or durable.log.is_remote  # of one at home elsewhere that node knows
        only = not (may_be_active or self._settings.keep_durable_subs_active)
        if durable.feed.persistent_only != only:
            durable.feed.persistent_only = only
            self._routing.table.plans.clear()

    def _remove_abandoned(self) -> None:
        """Those nobody consumed for offlineDurableSubscriberTimeout go."""
        latest = clock.now_ms() - self._settings.offline_durable_subscriber_timeout
        idle = [each for each in self if not (each.is_active or each.log.is_remote)]
        for durable in [each for each in idle if each.offline_since_ms <= latest]:
            logger.info("%s was offline for too long: removed", durable.identity)
            self._discard_log(durable)
