"""The maps of numbers that statistics are answered with, under ActiveMQ's names.

Memory is the node's own: what waits there to be handed out. Store is what all messages take in the store, temp what
those of them take that are not persistent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.core.advisories.documents import connection_id
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.slow_consumer import is_slow
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker

Value = str | int | float | bool | None
Numbers = dict[str, Value]

#: What nodes told of destinations.
Told = Mapping[Destination, DestinationStats]

#: Whole numbers that ActiveMQ writes as `int`; the others are `long`.
_INTS = frozenset({
    "memoryPercentUsage", "storePercentUsage", "tempPercentUsage", "prefetchSize", "maximumPendingMessageLimit",
})  # fmt: skip
#: Connectors whose address is told, "" where there is none, by the scheme of it.
_CONNECTORS = ("stomp", "stomp+ssl", "ws", "wss", "openwire", "ssl")
#: What no session has: STOMP knows none.
_NO_SESSION = -1
#: Numbers of destinations that the broker's sums are made of.
_SUMMED = {
    "size": "QueueSize", "enqueueCount": "EnqueueCount", "dequeueCount": "DequeueCount",
    "dispatchCount": "DispatchCount", "expiredCount": "ExpiredCount", "inflightCount": "InFlightCount",
    "consumerCount": "ConsumerCount", "producerCount": "ProducerCount",
}  # fmt: skip


def as_document(numbers: Mapping[str, Value]) -> Any:
    """The map as ActiveMQ's library writes one in JSON; an empty one is an empty text."""
    return {"map": {"entry": [_entry(name, value) for name, value in numbers.items()]} if numbers else ""}


def _entry(name: str, value: Value) -> dict[str, Any]:
    match value:
        case str():
            return {"string": [name, value]}
        case None:
            return {"string": name, "null": ""}
        case bool():
            return {"string": name, "boolean": value}
        case float():
            return {"string": name, "double": value}
    return {"string": name, "int" if name in _INTS else "long": value}


def of_destination(broker: Broker, destination: Destination, told: Told) -> Numbers:
    """The numbers of a destination."""
    stats = measured(broker, destination, told)
    used, cached = _held(broker, destination)
    policy = broker.topology.policy_for(destination)
    return {
        **_whose(broker),
        "destinationName": str(destination),
        **{name: getattr(stats, field) for name, field in _SUMMED.items()},
        "messagesCached": cached,
        "averageMessageSize": stats.AverageMessageSize,
        **_usage("memory", used, (policy and policy.memory_limit) or broker.quotas.memory),
        "averageEnqueueTime": stats.AverageEnqueueTime,
        "maxEnqueueTime": float(stats.MaxEnqueueTime),
        "minEnqueueTime": float(stats.MinEnqueueTime),
    }


def of_broker(broker: Broker, told: Told) -> Numbers:
    """The sums over all destinations, what is used, and where clients reach the broker."""
    named = [each for each in broker.counters.known() if each.kind is not DestinationKind.SUBSCRIPTION]
    every = [measured(broker, each, told) for each in named]
    held = [_held(broker, each) for each in named]
    handed_out = [each for each in every if each.DispatchCount]
    committer, limits = broker.commits, broker.commits.limits
    dispatched, arrived = sum(each.DispatchCount for each in every), sum(each.EnqueueCount for each in every)
    return {
        **_whose(broker),
        **{name: sum(getattr(each, field) for each in every) for name, field in _SUMMED.items()},
        "messagesCached": sum(cached for _, cached in held),
        "averageMessageSize": sum(each.EnqueueBytes for each in every) // (arrived or 1),
        **_usage("memory", sum(used for used, _ in held), broker.quotas.memory),
        **_usage("store", committer.used, limits.total),
        **_usage("temp", committer.temp, limits.temp or limits.total),
        "averageEnqueueTime": sum(each.EnqueueTimeUs for each in every) / 1000 / (dispatched or 1),
        "maxEnqueueTime": float(max((each.MaxEnqueueTime for each in handed_out), default=0)),
        "minEnqueueTime": float(min((each.MinEnqueueTime for each in handed_out), default=0)),
        **_addresses(broker),
    }


def of_subscriptions(broker: Broker, queues: bool) -> Iterator[Numbers]:
    """The numbers of each consumer of queues, or of topics. As in ActiveMQ, durable ones are none of these."""
    for client in list(broker.clients.values()):
        for each in [] if client.internal else list(client.subscriptions.values()):
            first = each.destinations[0]
            if first.is_queue is queues and each.durable is None and each.browse is None:
                yield _of_subscription(broker, client, each)


def _of_subscription(broker: Broker, client: Client, subscription: Subscription) -> Numbers:
    in_flight = len(subscription.unacked)
    return {
        **_whose(broker),
        "destinationName": ",".join(each.name for each in subscription.destinations),
        "clientId": client.client_id,
        "connectionId": connection_id(client, broker.name),
        "sessionId": _NO_SESSION,
        "selector": subscription.selector.text if subscription.selector else None,
        "enqueueCounter": subscription.delivered + len(subscription.pending),
        "dequeueCounter": subscription.acked if subscription.ack_mode != "auto" else subscription.delivered,
        "dispatchedCounter": subscription.delivered,
        "dispatchedQueueSize": in_flight,
        "prefetchSize": subscription.prefetch,
        "maximumPendingMessageLimit": subscription.max_pending,
        "exclusive": subscription.exclusive,
        "retroactive": subscription.retroactive,
        "slowConsumer": is_slow(subscription),
    }


def measured(broker: Broker, destination: Destination, told: Told) -> DestinationStats:
    """Its numbers, as they are now; of one that is at home at another node, as that told last."""
    if destination in told and not broker.placement.is_here(str(destination)):
        return told[destination]
    stats = broker.counters.of(destination)
    broker.measure(stats)
    return broker.placement.shares.total(stats)


def _whose(broker: Broker) -> Numbers:
    return {"brokerName": broker.name, "brokerId": broker.advisories.broker_id}


def _held(broker: Broker, destination: Destination) -> tuple[int, int]:
    """Bytes and number of the messages that wait in the node's memory."""
    if destination.is_queue:
        if destination not in broker.queues:
            return 0, 0
        log = broker.queues.find(destination)
        return log.ready_bytes + log.coming, len(log.ready)
    waiting = broker.dispatcher.subscribers(destination)
    return sum(each.pending_bytes for each in waiting), sum(len(each.pending) for each in waiting)


def _usage(what: str, used: int, limit: int) -> Numbers:
    return {f"{what}Usage": used, f"{what}Limit": limit, f"{what}PercentUsage": used * 100 // limit if limit else 0}


def _addresses(broker: Broker) -> Numbers:
    scheme = broker.url.partition("://")[0]
    return {
        **{name: broker.url if name == scheme else "" for name in _CONNECTORS},
        "vm": f"vm://{broker.name}",
    }
