"""Subscribing: who consumes from where, from SUBSCRIBE to the end of the subscription."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from brokerapp.actions import Subscribe, Unsubscribe
from brokerapp.client import Client
from brokerapp.delivery import is_queue
from brokerapp.destination import Destination, Kind
from brokerapp.engine.message_log import Subscription
from brokerapp.errors import RequestRefused
from brokerapp.recording.schema import REDELIVER
from brokerapp.selectors import compile_selector

if TYPE_CHECKING:
    from brokerapp.broker import Broker

#: What ActiveMQ lets a consumer hold unacknowledged when nobody says otherwise.
MAX_DIGITS = 9  #: of a number among the options
_IS_NUMBER = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}").fullmatch
DEFAULT_PREFETCH = {Kind.QUEUE: 1000, Kind.TOPIC: 32767, Kind.TEMP_QUEUE: 1000, Kind.TEMP_TOPIC: 32767}


class Subscribing:
    """What concerns subscriptions. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def subscribe(self, client: Client, subscribe: Subscribe) -> None:
        """Consume. Raises RequestRefused; messages follow the receipt."""
        if subscribe.browser:
            raise RequestRefused("browser:true is not served yet: browse with the console or brokerctl")
        if "subscriptionName" in subscribe.options:
            raise RequestRefused("activemq.subscriptionName: durable subscriptions are not served yet")
        targets = self._sources(client, subscribe)
        selector = compile_selector(subscribe.selector) if subscribe.selector else None
        prefetch = _number(subscribe.options, "prefetchSize", self._prefetch(targets[0]))
        if prefetch < 0:
            raise RequestRefused(f"activemq.prefetchSize:{prefetch} is less than nothing")
        name = subscription_name(subscribe.id, subscribe.destination)
        if (old := client.subscriptions.get(name)) is not None:
            self.end(client, old)
        client.keys += 1
        subscription = Subscription(
            subscribe.id, name, str(client.keys), client, targets, subscribe.ack_mode,
            prefetch, selector, subscribe.transformation, priority=_number(subscribe.options, "priority", 0),
            exclusive=self._exclusive(targets[0], subscribe.options),
        )  # fmt: skip
        client.subscriptions[name] = client.by_key[subscription.key] = subscription
        for target in targets:
            if target.is_queue:
                self._broker.queues.join(subscription, target)
            else:
                self._broker.delivery.join(subscription, target)
                self._note_subscribers(target)

        def start() -> None:
            subscription.started = True
            for log in subscription.logs:
                self._broker.delivery.touched[log] = None

        self._broker.advisories.consumer_started(subscription)
        self._broker.barrier(client, subscribe.receipt, start)

    def _sources(self, client: Client, subscribe: Subscribe) -> tuple[Destination, ...]:
        """What it consumes from: all of it may be read. Raises RequestRefused."""
        targets = Destination.parse_list(subscribe.destination)
        for each in targets:
            if each.is_temporary:
                self._broker.temporaries.check(each)
            self._broker.require(client, "read", each)
        return targets

    def _prefetch(self, destination: Destination) -> int:
        """How much a consumer may hold when it does not say: as its policy has it, or ActiveMQ."""
        policy = self._broker.topology.policy_for(destination)
        default = policy and (policy.queue_prefetch if destination.is_queue else policy.topic_prefetch)
        return DEFAULT_PREFETCH[destination.kind] if default is None else default

    def _exclusive(self, destination: Destination, options: Mapping[str, str]) -> bool:
        policy = self._broker.topology.policy_for(destination)
        by_default = str(bool(policy and policy.all_consumers_exclusive_by_default))
        return options.get("exclusive", by_default).lower() == "true"

    def unsubscribe(self, client: Client, unsubscribe: Unsubscribe) -> None:
        """End a subscription; what it holds goes back. Raises RequestRefused."""
        name = subscription_name(unsubscribe.id, unsubscribe.destination)
        subscription = client.subscriptions.get(name)
        if subscription is None:
            raise RequestRefused(f"no subscription matched {name!r}")
        self.end(client, subscription)
        self._broker.barrier(client, unsubscribe.receipt)

    def end(self, client: Client, subscription: Subscription) -> None:
        """It is over; what it holds goes back to its place."""
        if client.subscriptions.get(subscription.name) is subscription:
            del client.subscriptions[subscription.name]
        client.by_key.pop(subscription.key, None)
        held = subscription.unacked.values()
        now_us = time.time_ns() // 1000
        for entry in held:
            self._broker.failures.record(REDELIVER, now_us, entry, client.client_id, "consumer gone")
            if not is_queue(entry):
                self._broker.stats.of(Destination.parse(entry.shown)).InFlightCount -= 1
        self._broker.queues.part(subscription)
        for target in subscription.destinations:
            if not target.is_queue:
                self._broker.delivery.part(subscription, target)
                self._note_subscribers(target)
        self._broker.advisories.consumer_stopped(subscription)

    def _note_subscribers(self, target: Destination) -> None:
        """Those of a topic, or of all that match a pattern, are others now."""
        if target.is_temporary and target not in self._broker.temporaries:
            return
        names = [target] if not target.is_pattern else [d for d in self._broker.stats.known() if d.kind is Kind.TOPIC]
        self._broker.stats.changed.update(map(self._broker.stats.of, names))
        self._broker.advisories.listeners_changed()


def subscription_name(id: str | None, destination: str | None) -> str:
    """What tells a client's subscriptions apart: the id it gave, or else the destination."""
    return id if id is not None else str(destination)


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    """A whole number among the options of a subscription; raises RequestRefused."""
    text = options.get(name)
    if text is None:
        return default
    if not _IS_NUMBER(text.strip()):
        raise RequestRefused(f"activemq.{name}:{text[:40]} is not a whole number of at most {MAX_DIGITS} digits")
    return int(text)
