"""Build the replies to requests for statistics, under ActiveMQ's names.

Memory is the node's own: what waits there to be handed out. Store is what all messages take in the store, temp what
those of them take that are not persistent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.core.advisories.destination_measurements import DestinationMeasurements, Reported
from brokerapp.core.advisories.documents import connection_id, consumer_id
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.slow_consumer import is_slow
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.destination import Destination, DestinationKind

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, RoutingPort
    from brokerapp.engine.clients.quotas import Quotas

Value = str | int | float | bool | None
Numbers = dict[str, Value]

#: Whole numbers that ActiveMQ writes as `int`; the others are `long`.
_INTS = frozenset({
    "memoryPercentUsage", "storePercentUsage", "tempPercentUsage", "prefetchSize", "maximumPendingMessageLimit",
})  # fmt: skip
#: Connectors whose address is told, "" where there is none, by the scheme of it.
_CONNECTORS = ("stomp", "stomp+ssl", "ws", "wss", "openwire", "ssl")
#: Numbers of destinations that the broker's sums are made of.
_SUMMED = {
    "size": "QueueSize", "enqueueCount": "EnqueueCount", "dequeueCount": "DequeueCount",
    "dispatchCount": "DispatchCount", "expiredCount": "ExpiredCount", "inflightCount": "InFlightCount",
    "consumerCount": "ConsumerCount", "producerCount": "ProducerCount",
}  # fmt: skip


def as_document(numbers: Mapping[str, Value]) -> Any:
    """Return the map as ActiveMQ's library writes one in JSON; an empty one is an empty text."""
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


class StatisticsDocuments:
    """Builds the maps that statistics requests are answered with."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        clients: Mapping[str, Client],
        measurements: DestinationMeasurements,
        quotas: Quotas,
        routing: RoutingPort,
        url: Callable[[], str],
    ) -> None:
        self._name, self._counters, self._commits = context.name, context.counters, context.commits
        self._broker_id = f"ID:{context.name}-{context.session}"
        self._clients, self._measurements, self._quotas = clients, measurements, quotas
        self._routing, self._url = routing, url

    def of_destination(self, destination: Destination, told: Reported) -> Numbers:
        """Return the statistics of a destination."""
        stats = self._measurements.of(destination, told)
        used, cached = self._measurements.held(destination)
        policy = self._routing.table.policy_for(destination)
        return {
            **self._whose(),
            "destinationName": str(destination),
            **{name: getattr(stats, field) for name, field in _SUMMED.items()},
            "messagesCached": cached,
            "averageMessageSize": stats.AverageMessageSize,
            **_usage("memory", used, (policy and policy.memory_limit) or self._quotas.memory),
            "averageEnqueueTime": stats.AverageEnqueueTime,
            "maxEnqueueTime": float(stats.MaxEnqueueTime),
            "minEnqueueTime": float(stats.MinEnqueueTime),
        }

    def of_broker(self, told: Reported) -> Numbers:
        """Return the sums over all destinations, the use of memory and store, and the broker's addresses."""
        named = [each for each in self._counters.destinations() if each.kind is not DestinationKind.SUBSCRIPTION]
        every = [self._measurements.of(each, told) for each in named]
        held = [self._measurements.held(each) for each in named]
        handed_out = [each for each in every if each.DispatchCount]
        committer, limits = self._commits, self._commits.limits
        dispatched, arrived = sum(each.DispatchCount for each in every), sum(each.EnqueueCount for each in every)
        return {
            **self._whose(),
            **{name: sum(getattr(each, field) for each in every) for name, field in _SUMMED.items()},
            "messagesCached": sum(cached for _, cached in held),
            "averageMessageSize": sum(each.EnqueueBytes for each in every) // (arrived or 1),
            **_usage("memory", sum(used for used, _ in held), self._quotas.memory),
            **_usage("store", committer.used, limits.total),
            **_usage("temp", committer.temp, limits.temp or limits.total),
            "averageEnqueueTime": sum(each.EnqueueTimeUs for each in every) / 1000 / (dispatched or 1),
            "maxEnqueueTime": float(max((each.MaxEnqueueTime for each in handed_out), default=0)),
            "minEnqueueTime": float(min((each.MinEnqueueTime for each in handed_out), default=0)),
            **self._addresses(),
        }

    def of_subscriptions(self, queues: bool) -> Iterator[Numbers]:
        """Yield the statistics of each consumer of queues, or of topics; as in ActiveMQ not of durable ones."""
        for client in list(self._clients.values()):
            for each in [] if client.is_internal else list(client.subscriptions.values()):
                first = each.destinations[0]
                if first.is_queue is queues and each.durable is None and each.browse_cursor is None:
                    yield self._of_subscription(client, each)

    def _of_subscription(self, client: Client, subscription: Subscription) -> Numbers:
        first, in_flight = subscription.destinations[0], len(subscription.unacked)
        return {
            **self._whose(),
            "destinationName": ",".join(each.name for each in subscription.destinations),
            "clientId": client.client_id,
            "connectionId": connection_id(client, self._name),
            "sessionId": consumer_id(subscription, self._name)["sessionId"],
            "selector": subscription.selector.text if subscription.selector else None,
            "enqueueCounter": subscription.delivered_count + len(subscription.pending),
            "dequeueCounter": subscription.acked_count
            if subscription.ack_mode != "auto"
            else subscription.delivered_count,
            "dispatchedCounter": subscription.delivered_count,
            "dispatchedQueueSize": in_flight,
            "prefetchSize": subscription.prefetch,
            "maximumPendingMessageLimit": 0 if first.is_queue else subscription.pending.max_count,
            "exclusive": subscription.exclusive,
            "retroactive": subscription.retroactive,
            "slowConsumer": is_slow(subscription),
        }

    def _whose(self) -> Numbers:
        return {"brokerName": self._name, "brokerId": self._broker_id}

    def _addresses(self) -> Numbers:
        scheme = self._url().partition("://")[0]
        return {
            **{name: self._url() if name == scheme else "" for name in _CONNECTORS},
            "vm": f"vm://{self._name}",
        }


def _usage(what: str, used: int, limit: int) -> Numbers:
    return {f"{what}Usage": used, f"{what}Limit": limit, f"{what}PercentUsage": used * 100 // limit if limit else 0}
