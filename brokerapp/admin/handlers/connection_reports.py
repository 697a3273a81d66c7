"""Peers: what a node tells about those who are connected, in brief every second, and in full when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from brokerapp.core.broker import Broker
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.slow_consumer import is_slow
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.errors import RequestRefused
from brokerapp.model.stats_records import ConnectionDetails, ConnectionStats, ConsumerStats
from brokerapp.system import clock

#: Connections told of in one answer; their consumers, of which the last connection may make more; and destinations of
#: one producer.
MAX_PEERS = 1_000
MAX_CONSUMERS = 20_000
MAX_PRODUCING = 100
#: Destinations it consumes that are named where a connection is told of in brief, as all are every second.
MAX_NAMED = 20
#: Milliseconds a client has to read why its connection ends.
CLOSE_GRACE_MS = 5_000


def connection_of(client: Client) -> ConnectionStats:
    """A connection in brief."""
    return ConnectionStats(
        id=client.id,
        client_id=client.client_id,
        remote_address=client.remote_address,
        user=client.principal.name,
        version=client.protocol_version,
        connected_ms=client.connected_ms,
        subscriptions=list(islice(_consumed(client), MAX_NAMED)),
        sent=client.sent,
        delivered=client.delivered,
        slow=_is_slow(client),
        discarded=sum(each.discarded for each in client.subscriptions.values()),
        blocked=client.waiting > 0,
    )


def connection_counts(clients: Collection[Client]) -> dict[str, int]:
    """How many connections there are, of how many a send waits for room, and how many do not keep up."""
    return {
        "all": len(clients),
        "held_back": sum(each.waiting > 0 for each in clients),
        "slow": sum(map(_is_slow, clients)),
    }


def _is_slow(client: Client) -> bool:
    return client.blocked or any(map(is_slow, client.subscriptions.values()))


def _consumed(client: Client) -> Iterator[str]:
    return (each.stomp for subscription in client.subscriptions.values() for each in subscription.destinations)


def details_of(client: Client) -> ConnectionDetails:
    """A connection in full."""
    pulse = client.sink.pulse()
    return ConnectionDetails(
        connection=connection_of(client).to_json(),
        consumers=[asdict(consumer_of(client, each)) for each in client.subscriptions.values()],
        producing_to=sorted(map(str, client.producing_to))[:MAX_PRODUCING],
        transactions=len(client.transactions),
        beats_every_ms=pulse[0],
        expects_every_ms=pulse[1],
        heard_ms_ago=pulse[2],
    )


def consumer_of(client: Client, subscription: Subscription) -> ConsumerStats:
    """One subscription of a connection."""
    first = next(iter(subscription.pending), None)
    return ConsumerStats(
        connection=client.id,
        id=subscription.id or "",
        destinations=[str(each) for each in subscription.destinations],
        log=subscription.logs[0].name if subscription.durable and subscription.logs else "",
        selector=subscription.selector.text if subscription.selector else "",
        ack_mode=subscription.ack_mode,
        prefetch=subscription.prefetch,
        priority=subscription.priority,
        exclusive=subscription.exclusive,
        browser=subscription.browse is not None,
        pending=len(subscription.pending),
        in_flight=len(subscription.unacked),
        delivered=subscription.delivered,
        acked=subscription.acked,
        discarded=subscription.discarded,
        slow=is_slow(subscription),
        oldest_ms=first.message.born_us // 1000 if first else 0,
    )


class ConnectionReports:
    """What operators ask about connections, and do to them."""

    def __init__(self, broker: Broker, pump: Callable[[], None]) -> None:
        self._broker, self._pump = broker, pump

    async def peers(self, ids: list[str] | None = None) -> list[dict[str, Any]]:
        """Connections in full: those of these ids, or all, of which there may be more than are told of."""
        found, consumers = [], 0
        for client in islice(self._asked(ids), MAX_PEERS):
            found.append(details_of(client).to_json())
            consumers += len(client.subscriptions)
            if consumers >= MAX_CONSUMERS:
                break
        return found

    async def offline(self) -> dict[str, int]:
        """The durable subscriptions at home here that nobody consumes, by log: since when, ms since the epoch."""
        here = (each for each in self._broker.durables if not (each.active or each.log.away))
        return {each.log.name: each.offline_since_ms for each in here}

    async def close_connection(self, id: str) -> None:
        """End a connection: what it holds goes back, its client is told why."""
        client = self._broker.clients.get(id)
        if client is None:
            raise RequestRefused(f"there is no connection {id!r} any more")
        client.sink.refuse(RequestRefused("an operator closed this connection"), None)
        self._broker.connections.disconnect(client)  # now: a client that reads nothing may not even take this in
        client.sink.close()
        self._broker.timers.at(clock.now_ms() + CLOSE_GRACE_MS, client.sink.abort)
        self._pump()

    def _asked(self, ids: list[str] | None) -> Iterator[Client]:
        clients = self._broker.clients
        found = clients.values() if ids is None else [clients[id] for id in ids if id in clients]
        return (each for each in list(found) if each.member or not each.is_internal)
