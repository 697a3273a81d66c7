"""Reports connections: in brief with the status of the node every second, in full on request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from itertools import islice

from brokerapp.core.clients.connections import ClientRegistry
from brokerapp.core.ports import DurablesPort
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.slow_consumer import is_slow
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.errors import RequestRefused
from brokerapp.model import JsonObject
from brokerapp.model.selector_prefixes import condition_of
from brokerapp.model.stats_records import ConnectionDetails, ConnectionStats, ConsumerStats, ProducerStats
from brokerapp.system import clock
from brokerapp.system.timers import Timers

#: Connections in one reply; their consumers, which the last connection may exceed; and destinations of one producer.
MAX_PEERS = 1_000
MAX_CONSUMERS = 20_000
MAX_PRODUCING = 100
#: Destinations that the brief form of a connection names.
MAX_NAMED = 20
#: Milliseconds a client has to read the ERROR before its connection is aborted.
CLOSE_GRACE_MS = 5_000


def connection_of(client: Client) -> ConnectionStats:
    """Return the brief form of a connection."""
    return ConnectionStats(
        id=client.id,
        client_id=client.client_id,
        remote_address=client.remote_address,
        user=client.principal.name,
        version=client.protocol_version,
        connected_ms=client.connected_ms,
        subscriptions=list(islice(_consumed(client), MAX_NAMED)),
        sent=client.sent_count,
        delivered=client.delivered_count,
        slow=_is_slow(client),
        discarded=sum(each.pending.discarded_count for each in client.subscriptions.values()),
        blocked=client.blocked_sends > 0,
    )


def is_listed(client: Client) -> bool:
    """Return whether a client counts as a connection: not a part of the broker, such as its own end of a bridge."""
    return bool(client.cluster_member) or not client.is_internal


def connection_counts(clients: Collection[Client]) -> dict[str, int]:
    """Count all connections, those with a blocked SEND, and slow ones."""
    return {
        "all": len(clients),
        "held_back": sum(each.blocked_sends > 0 for each in clients),
        "slow": sum(map(_is_slow, clients)),
    }


def _is_slow(client: Client) -> bool:
    return client.is_socket_full or any(map(is_slow, client.subscriptions.values()))


def _consumed(client: Client) -> Iterator[str]:
    return (each.stomp for subscription in client.subscriptions.values() for each in subscription.destinations)


def details_of(client: Client) -> ConnectionDetails:
    """Return the full form of a connection."""
    pulse = client.sink.heart_beat_times()
    return ConnectionDetails(
        connection=connection_of(client).to_json(),
        consumers=[asdict(consumer_of(client, each)) for each in client.subscriptions.values()],
        producing_to=sorted(map(str, client.producing_to))[:MAX_PRODUCING],
        producers=[asdict(each) for each in islice(_producers_of(client), MAX_PRODUCING)],
        transactions=len(client.transactions),
        beats_every_ms=pulse[0],
        expects_every_ms=pulse[1],
        heard_ms_ago=pulse[2],
    )


def _producers_of(client: Client) -> Iterator[ProducerStats]:
    """Yield the producers of a JMS client, which announces them; those of others are what it sent to."""
    if client.connection_id:
        for id, destinations in client.producers.items():
            yield ProducerStats(id, list(map(str, destinations)))


def consumer_of(client: Client, subscription: Subscription) -> ConsumerStats:
    """Return one subscription of a connection."""
    first = next(iter(subscription.pending), None)
    return ConsumerStats(
        connection=client.id,
        id=subscription.id or "",
        destinations=[str(each) for each in subscription.destinations],
        log=subscription.logs[0].name if subscription.durable and subscription.logs else "",
        selector=condition_of((subscription.selector and subscription.selector.text) or ""),
        ack_mode=subscription.ack_mode,
        prefetch=subscription.prefetch,
        priority=subscription.priority,
        exclusive=subscription.exclusive,
        browser=subscription.browse_cursor is not None,
        pending=len(subscription.pending),
        in_flight=len(subscription.unacked),
        delivered=subscription.delivered_count,
        acked=subscription.acked_count,
        discarded=subscription.pending.discarded_count,
        slow=is_slow(subscription),
        oldest_ms=first.message.born_us // 1000 if first else 0,
    )


class ConnectionReports:
    """Reports connections and offline subscriptions of this node, and closes connections."""

    def __init__(
        self,
        *,
        clients: Mapping[str, Client],
        connections: ClientRegistry,
        durables: DurablesPort,
        timers: Timers,
        pump: Callable[[], None],
    ) -> None:
        self._clients, self._connections, self._durables = clients, connections, durables
        self._timers, self._pump = timers, pump

    async def peers(self, ids: list[str] | None = None) -> list[JsonObject]:
        """Return ConnectionDetails as JSON: of these connections or of all, up to a limit."""
        found, consumers = [], 0
        for client in islice(self._selected(ids), MAX_PEERS):
            found.append(details_of(client).to_json())
            consumers += len(client.subscriptions)
            if consumers >= MAX_CONSUMERS:
                break
        return found

    async def offline(self) -> dict[str, int]:
        """Return the logs of offline durable subscriptions that this node owns, with milliseconds since the epoch
        since when.
        """
        here = (each for each in self._durables if not (each.is_active or each.log.is_remote))
        return {each.log.name: each.offline_since_ms for each in here}

    async def close_connection(self, id: str) -> None:
        """Close a connection: its unacknowledged messages are requeued, and its client gets an ERROR."""
        client = self._clients.get(id)
        if client is None:
            raise RequestRefused(f"connection {id!r} not found")
        client.sink.refuse(RequestRefused("an operator closed this connection"), None)
        self._connections.disconnect(client)  # now: a client that does not read may not receive the ERROR either
        client.sink.close()
        self._timers.at(clock.now_ms() + CLOSE_GRACE_MS, client.sink.abort)
        self._pump()

    def _selected(self, ids: list[str] | None) -> Iterator[Client]:
        found = self._clients.values() if ids is None else [self._clients[id] for id in ids if id in self._clients]
        return filter(is_listed, list(found))
