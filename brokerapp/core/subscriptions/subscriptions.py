"""Subscribing: who consumes from where, from SUBSCRIBE to the end of the subscription."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from brokerapp.core.flow_control.limits import MESSAGE_BYTES
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.subscribe_options import (
    bridge_eligibility_of,
    delegated_principal,
    is_true,
    number_of,
    priority_of,
    subscription_identity,
    subscription_name,
)
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import MAX_PENDING_BYTES, Subscription
from brokerapp.engine.entries.entry_factory import is_from_log
from brokerapp.engine.entries.eviction import pending_limit
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.engine.policy.send_timeout import memory_limit_of
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.errors import RequestRefused
from brokerapp.model.broker_path import TO_HEADER
from brokerapp.model.commands import SubscribeCommand, UnsubscribeCommand
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.selectors import compile_selector
from brokerapp.tracing.schema import REDELIVER

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        BrokerEvents,
        BrowsersPort,
        ConsumersPort,
        CreationPort,
        DeadLettersPort,
        DispatchQueue,
        DuplicatesPort,
        DurablesPort,
        LifecycleAdvisories,
        Placement,
        Queues,
        Replies,
        RetainedPort,
        RoutingPort,
        TemporariesPort,
    )
    from brokerapp.engine.clients.quotas import Quotas

#: What ActiveMQ lets a consumer hold unacknowledged when nobody says otherwise.
DEFAULT_PREFETCH = {
    DestinationKind.QUEUE: 1000,
    DestinationKind.TEMP_QUEUE: 1000,
    DestinationKind.TOPIC: 32767,
    DestinationKind.TEMP_TOPIC: 32767,
    DestinationKind.SUBSCRIPTION: 100,
}
#: Fields of a policy that replace it.
_PREFETCH_FIELDS = {
    DestinationKind.QUEUE: "queue_prefetch",
    DestinationKind.TEMP_QUEUE: "queue_prefetch",
    DestinationKind.TOPIC: "topic_prefetch",
    DestinationKind.TEMP_TOPIC: "topic_prefetch",
    DestinationKind.SUBSCRIPTION: "durable_topic_prefetch",
}


class Subscriptions:
    """What concerns subscriptions. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        advisories: LifecycleAdvisories,
        authorizer: Authorizer,
        browsers: BrowsersPort,
        observers: BrokerEvents,
        consumers: ConsumersPort,
        creation: CreationPort,
        dead_letters: DeadLettersPort,
        dispatcher: DispatchQueue,
        duplicates: DuplicatesPort,
        durables: DurablesPort,
        placement: Placement,
        queues: Queues,
        quotas: Quotas,
        replies: Replies,
        retained: RetainedPort,
        routing: RoutingPort,
        temporaries: TemporariesPort,
    ) -> None:
        self._counters = context.counters
        self._advisories, self._authorizer, self._browsers = advisories, authorizer, browsers
        self._observers, self._consumers, self._creation = observers, consumers, creation
        self._dead_letters, self._dispatcher, self._duplicates = dead_letters, dispatcher, duplicates
        self._durables, self._placement, self._queues = durables, placement, queues
        self._quotas, self._replies, self._retained = quotas, replies, retained
        self._routing, self._temporaries = routing, temporaries

    def subscribe(self, client: Client, subscribe: SubscribeCommand) -> None:
        """Consume. Raises RequestRefused; messages follow the receipt."""
        targets = self._sources(client, subscribe)
        if subscribe.browser:
            self._browsers.check(subscribe, targets)
        selector = compile_selector(subscribe.selector) if subscribe.selector else None
        wanted = subscription_identity(client, subscribe, targets)
        retroactive = is_true(subscribe.options, "retroactive")
        crossing = bridge_eligibility_of(client, subscribe.options, selector)
        by_default = self._prefetch(targets[0], wanted is not None)
        if subscribe.browser:
            by_default = self._browsers.prefetch(targets[0])
        prefetch = number_of(subscribe.options, "prefetchSize", by_default)
        if prefetch < 0:
            raise RequestRefused(f"activemq.prefetchSize:{prefetch} is less than nothing")
        name = subscription_name(subscribe.id, subscribe.destination)
        old = client.subscriptions.get(name)
        if old is not None and self._goes_on(old, subscribe, targets, crossing):
            return
        if not client.cluster_member:  # it has those of many clients, each within what it may have at its own broker
            self._quotas.check_subscription(len(client.subscriptions) + 1, client.pattern_count + _patterns(targets))
        if wanted and (ask := self._placement.subscription_takeover.question_before_claim(wanted)) is not None:
            self._placement.pending_confirmations.wait(
                client, subscribe.receipt, ask, lambda: self.subscribe(client, subscribe)
            )
            return
        durable = self._durables.claim(wanted, retroactive) if wanted else None
        client.last_key += 1
        subscription = Subscription(
            subscribe.id,
            name,
            str(client.last_key),
            client,
            targets,
            subscribe.ack_mode,
            prefetch,
            None if durable else crossing or selector,
            subscribe.transformation,
            priority=priority_of(subscribe.options),
            exclusive=self._exclusive(targets[0], subscribe.options),
            no_local=is_true(subscribe.options, "noLocal"),
            retroactive=retroactive,
            bridge_eligibility=crossing,
            principal=delegated_principal(client, subscribe.options),
            takeover=wanted,
        )
        self._bound_pending(subscription, number_of(subscribe.options, "maximumPendingMessageLimit", 0))
        client.subscriptions[name] = client.by_key[subscription.key] = subscription
        client.pattern_count += _patterns(targets)
        self._quotas.subscriptions += 1
        client.update_reading()
        if subscribe.browser:
            self._browsers.join(subscription)
            self._advisories.consumer_started(subscription)
            self._replies.confirm_after(client, subscribe.receipt, subscription.browse_cursor.begin)
            return
        if durable is not None:
            self._durables.join(subscription, durable)
        elif not self._duplicates.admits(subscription):
            self._replies.confirm_after(client, subscribe.receipt)
            return
        else:
            self._join(subscription)
            self._retained.subscribed(subscription, retroactive)
        self._started(subscription)
        self._placement.when_propagated(
            lambda: self._replies.confirm_after(client, subscribe.receipt, lambda: self._start(subscription))
        )

    def _goes_on(
        self, old: Subscription, subscribe: SubscribeCommand, targets: tuple, crossing: BridgeEligibility | None
    ) -> bool:
        """Whether a bridge's subscription of that name goes on, with other facts; any other ends: a new one begins."""
        same = crossing is not None and old.bridge_eligibility is not None and targets == old.destinations
        if not (same and crossing.goes_on(old.bridge_eligibility)):
            self.end(old.client, old)
            return False
        self._duplicates.update_origins(old, crossing, priority_of(subscribe.options))
        self._replies.confirm_after(old.client, subscribe.receipt)
        return True

    def _started(self, subscription: Subscription) -> None:
        """It is served from now on."""
        self._advisories.consumer_started(subscription)
        self._observers.on_consumer_started(subscription)

    def _start(self, subscription: Subscription) -> None:
        subscription.started = True
        self._dispatcher.resume(subscription)

    def rest(self, subscription: Subscription) -> None:
        """It is given nothing more, and keeps what it holds until it acknowledges that, or ends."""
        self._consumers.detach_keeping_unacked(subscription)
        self._stopped(subscription)

    def rise(self, subscription: Subscription) -> None:
        """It is given messages, after a rest or for the first time."""
        self._join(subscription)
        self._started(subscription)
        self._start(subscription)

    def _join(self, subscription: Subscription) -> None:
        for target in subscription.destinations:
            if target.is_queue:
                self._consumers.join(subscription, target)
            else:
                self._dispatcher.subscribe(subscription, target)
                self.note_subscribers(target)

    def _bound_pending(self, subscription: Subscription, wanted: int) -> None:
        """How much of its topics may wait for it, and what goes when it is more: as the policy of the first says."""
        policy = self._routing.table.policy_for(subscription.destinations[0])
        limit = policy.pending_message_limit if policy else None
        subscription.max_pending = pending_limit(limit, subscription.prefetch, wanted)
        bound = memory_limit_of(policy).bytes
        subscription.max_pending_bytes = MAX_PENDING_BYTES + bound  # its producers wait before anything goes
        if limit is None:
            subscription.max_pending += bound // MESSAGE_BYTES
        subscription.eviction = policy.message_eviction if policy else None

    def _sources(self, client: Client, subscribe: SubscribeCommand) -> tuple[Destination, ...]:
        """What it consumes from: all of it may be read. Raises RequestRefused."""
        targets = Destination.parse_list(subscribe.destination)
        for each in targets:
            if each.is_temporary:
                if TO_HEADER in subscribe.options and client.is_broker:
                    self._temporaries.lend(client, subscription_name(subscribe.id, subscribe.destination), each)
                self._temporaries.check(each)
            self._authorizer.require(client, "read", each)
            self._creation.check(each)
            if each.address is not None:
                self._queues.ensure(each, subscribe.selector)
        return targets

    def _prefetch(self, destination: Destination, is_named: bool) -> int:
        """How much a consumer may hold when it does not say: as its policy has it, or ActiveMQ."""
        kind = DestinationKind.SUBSCRIPTION if is_named else destination.kind
        policy = self._routing.table.policy_for(destination)
        by_policy = getattr(policy, _PREFETCH_FIELDS[kind]) if policy else None
        return DEFAULT_PREFETCH[kind] if by_policy is None else by_policy

    def _exclusive(self, destination: Destination, options: Mapping[str, str]) -> bool:
        policy = self._routing.table.policy_for(destination)
        by_default = str(bool(policy and policy.all_consumers_exclusive_by_default))
        return options.get("exclusive", by_default).lower() == "true"

    def unsubscribe(self, client: Client, unsubscribe: UnsubscribeCommand) -> None:
        """End a subscription, what it holds goes back; or delete durable ones. Raises RequestRefused."""
        if unsubscribe.keep is not None:
            if client.is_broker:
                self._durables.keep_of_bridge(client.client_id, unsubscribe.keep)
            self._replies.confirm_after(client, unsubscribe.receipt)
            return
        if unsubscribe.subscription_name is not None:
            owner = client.client_id if client.has_client_id else ""
            durable = self._durables.find(owner, unsubscribe.subscription_name)
            for topic in durable.identity.topics:
                self._authorizer.require_read(client, topic)
            drop = partial(self._placement.subscription_removal.remove, durable)
            confirm = partial(self._replies.confirm, client, unsubscribe.receipt)
            self._placement.pending_confirmations.wait(client, unsubscribe.receipt, drop, confirm)
            return
        self.end(client, _meant(client, unsubscribe))
        self._replies.confirm_after(client, unsubscribe.receipt)

    def end(self, client: Client, subscription: Subscription) -> None:
        """It is over; what it holds goes back to its place."""
        if client.subscriptions.get(subscription.name) is subscription:
            del client.subscriptions[subscription.name]
            client.pattern_count -= _patterns(subscription.destinations)
            self._quotas.subscriptions -= 1
        client.by_key.pop(subscription.key, None)
        client.update_reading()
        is_resting = self._duplicates.left(subscription)
        if subscription.browse_cursor is not None:
            subscription.browse_cursor.stop()
            self._advisories.consumer_stopped(subscription)
            return
        held = [each for each in subscription.unacked.values() if not isinstance(each, RemoteLogEntry)]
        now_us = time.time_ns() // 1000
        for entry in held:
            log = self._queues.get(entry.log)
            if log is not None and log.is_remote:  # its home says so
                continue
            self._dead_letters.record(REDELIVER, now_us, entry, client.client_id, "consumer gone")
            self._counters.of(Destination.parse(entry.log)).RedeliveredCount += 1
            if not is_from_log(entry):
                self._counters.of(Destination.parse(entry.shown_destination)).InFlightCount -= 1
        self._consumers.part(subscription)
        if subscription.durable is not None:
            self._durables.parted(subscription.durable)
        if not is_resting:
            self._stopped(subscription)
        for each in subscription.destinations:
            if each.is_temporary:
                self._temporaries.give_back(client, subscription.name, each)

    def _stopped(self, subscription: Subscription) -> None:
        """It was served, and is no more."""
        if subscription.durable is None:
            self._part(subscription)
        self._advisories.consumer_stopped(subscription)
        self._observers.on_consumer_stopped(subscription)

    def dismiss(self, log: MessageLog, why: RequestRefused) -> None:
        """A log goes: who consumes from it and nothing else consumes no longer, and is told why."""
        for subscription in list(log.consumers):
            if len(subscription.destinations) > 1 or subscription.destinations[0].is_pattern:
                self._consumers.detach(subscription, log)
                continue
            client: Client = subscription.client
            self.end(client, subscription)
            if not client.cluster_member:  # another broker tells its clients itself
                self._replies.refuse(client, why, None)

    def _part(self, subscription: Subscription) -> None:
        for target in subscription.destinations:
            if not target.is_queue:
                self._dispatcher.unsubscribe(subscription, target)
                self.note_subscribers(target)

    def note_subscribers(self, target: Destination) -> None:
        """Those of a topic, or of all that match a pattern, are others now."""
        if target.is_temporary and target not in self._temporaries:
            return
        names = (
            [target]
            if not target.is_pattern
            else [d for d in self._counters.destinations() if d.kind is DestinationKind.TOPIC]
        )
        self._counters.changed.update(map(self._counters.of, names))
        self._advisories.listeners_changed()


def _meant(client: Client, unsubscribe: UnsubscribeCommand) -> Subscription:
    """The subscription that an UNSUBSCRIBE names. Raises RequestRefused.

    STOMP 1.0 may name a destination alone: then it is the oldest subscription of that destination, as one without an id
    is named by it, and one with an id may be.
    """
    name = subscription_name(unsubscribe.id, unsubscribe.destination)
    found = client.subscriptions.get(name)
    if found is None and unsubscribe.id is None:
        targets = Destination.parse_list(name)
        found = next((each for each in client.subscriptions.values() if each.destinations == targets), None)
    if found is None:
        raise RequestRefused(f"no subscription matched {name!r}")
    return found


def _patterns(targets: Iterable[Destination]) -> int:
    """How many of them have wildcards."""
    return sum([each.is_pattern for each in targets])
