"""Topic subscriptions for pages, as a table that is paged, sorted and searched.

Their details are requested from the node when a page needs them. Everything else has no I/O.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import ConsumerStats, DestinationStats
from brokerapp.model.subscription_identity import SubscriptionIdentity
from console.broker.gateway import gateway
from console.destinations.clients.clients import ConnectionView, current_connections, destinations_of, to_datetime
from console.ui.formatting.tables import Table, TableColumn


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """A topic subscription: of an open connection, or a named one that exists while its client is offline."""

    client_id: str
    name: str  #: subscription name, or the client's own id of a non-durable one
    state: str  #: active, offline or plain
    topics: tuple[Destination, ...]
    selector: str = ""
    connection: str = ""
    log: str = ""  #: of a named one: the destination that stores its messages, in native form
    shared: bool = False
    pending: int = 0
    in_flight: int = 0
    dispatched: int = 0
    enqueued: int = 0
    dequeued: int = 0
    since_ms: int = 0  #: connected or offline since; 0: unknown
    oldest_ms: int = 0  #: arrival of the oldest message; 0: none
    slow: bool = False

    @property
    def state_label(self) -> str:
        """Return the label of its state."""
        return {"active": "Active", "offline": "Offline"}.get(self.state, "Non-durable")

    @property
    def badge(self) -> str:
        """Return the class of the badge that shows its state."""
        return {"active": "badge-good", "offline": "badge-look"}.get(self.state, "")

    @property
    def log_name(self) -> str:
        """Return the name of its log, as URLs contain it; "" for a non-durable one."""
        return self.log.partition("://")[2]

    @property
    def since(self) -> datetime | None:
        """Return since when it is connected or offline."""
        return to_datetime(self.since_ms) if self.since_ms else None

    @property
    def age(self) -> float:
        """Return the seconds since it connected or went offline."""
        return max(0.0, time.time() - self.since_ms / 1000) if self.since_ms else 0.0

    @property
    def lag(self) -> float:
        """Return the age of its oldest message in seconds."""
        return max(0.0, time.time() - self.oldest_ms / 1000) if self.oldest_ms else 0.0


#: Labels of the states of subscriptions.
SUBSCRIPTION_STATES = {"active": "Durable, active", "offline": "Durable, offline", "plain": "Non-durable"}

SUBSCRIPTION_TABLE = Table[TopicSubscription](
    columns=(
        TableColumn("client", "Client", lambda each: each.client_id.lower(), "ClientId"),
        TableColumn("name", "Subscription", lambda each: each.name.lower(), "SubscriptionName"),
        TableColumn("topic", "Topic", lambda each: str(each.topics[0]) if each.topics else "", "DestinationName"),
        TableColumn("age", "Duration", lambda each: each.age, "Time since it connected or went offline", True),
        TableColumn("pending", "Backlog", lambda each: each.pending, "PendingQueueSize", True),
        TableColumn("lag", "Oldest message", lambda each: each.lag, "Age of the oldest message in the backlog", True),
        TableColumn("flight", "In flight", lambda each: each.in_flight, "DispatchedQueueSize", True),
        TableColumn("dispatched", "Dispatched", lambda each: each.dispatched, "DispatchedCounter", True),
        TableColumn("enqueued", "Enqueued", lambda each: each.enqueued, "EnqueueCounter", True),
        TableColumn("dequeued", "Dequeued", lambda each: each.dequeued, "DequeueCounter", True),
    ),
    chips={
        **{
            state: (label, lambda each, state=state: each.state == state)
            for state, label in SUBSCRIPTION_STATES.items()
        },
        "behind": ("Lagging", lambda each: each.pending > 0),
    },
    text=lambda each: " ".join((each.client_id, each.name, *map(str, each.topics), each.selector)),
    subject=lambda each: each.log,
)


def build_subscriptions(
    peers: Iterable[ConnectionView],
    numbers: Mapping[Destination, DestinationStats],
    kept: Mapping[Destination, SubscriptionIdentity],
    offline: Mapping[str, int],
    oldest: Mapping[Destination, int],
) -> list[TopicSubscription]:
    """Build the list of all topic subscriptions. No I/O.

    `numbers` and `kept` are by the log of a named subscription. `offline`: since when it has no consumer, by name of
    the log; `oldest`: arrival of the first message of a log (both in ms since the epoch).
    """
    peers = list(peers)
    of_log = {each.log: (peer, each) for peer in peers for each in peer.consumers if each.log}
    found = [_non_durable(peer, session, each) for peer in peers for session, each in _non_durable_of(peer)]
    for log, subscription in kept.items():
        peer, consumer = of_log.get(str(log), (None, None))
        stats = numbers.get(log) or DestinationStats(log)
        found.append(
            TopicSubscription(
                client_id=subscription.client_id,
                name=subscription.name,
                state="plain" if not subscription.durable else "active" if stats.ConsumerCount or peer else "offline",
                topics=subscription.topics,
                selector=subscription.condition or "",
                connection=peer.stats.id if peer else "",
                log=str(log),
                shared=subscription.shared,
                pending=stats.QueueSize,
                in_flight=stats.InFlightCount,
                dispatched=stats.DispatchCount,
                enqueued=stats.EnqueueCount,
                dequeued=stats.DequeueCount,
                since_ms=peer.stats.connected_ms if peer else offline.get(str(log), 0),
                oldest_ms=oldest.get(log, 0),
                slow=bool(consumer and consumer.slow),
            )
        )
    return found


def _non_durable_of(peer: ConnectionView) -> Iterator[tuple[str, ConsumerStats]]:
    """Yield non-durable subscriptions with their JMS sessions, but for those that a JMS library has for itself."""
    for session, each in peer.consumers_by_session:
        if _is_non_durable(each) and (session or not peer.is_jms):
            yield session, each


def _is_non_durable(consumer: ConsumerStats) -> bool:
    return not consumer.log and any(
        each.kind in (DestinationKind.TOPIC, DestinationKind.TEMP_TOPIC) for each in destinations_of(consumer)
    )


def _non_durable(peer: ConnectionView, session: str, consumer: ConsumerStats) -> TopicSubscription:
    return TopicSubscription(
        client_id=peer.name,
        name=f"session {session}, consumer {consumer.id.rpartition(':')[2]}" if session else consumer.id,
        state="plain",
        topics=tuple(destinations_of(consumer)),
        selector=consumer.selector,
        connection=peer.stats.id,
        pending=consumer.pending,
        in_flight=consumer.in_flight,
        dispatched=consumer.delivered,
        enqueued=consumer.delivered + consumer.pending,
        dequeued=consumer.acked,
        since_ms=peer.stats.connected_ms,
        oldest_ms=consumer.oldest_ms,
        slow=consumer.slow,
    )


def current_subscriptions(numbers: Mapping[Destination, DestinationStats]) -> list[TopicSubscription]:
    """Return all topic subscriptions; those of connections only while a node responds."""
    broker = gateway()
    logs = list(numbers)
    kept = broker.run(broker.admin.peers.named(logs))
    waiting = [log for log in kept if numbers[log].QueueSize]
    oldest = broker.run(broker.admin.peers.oldest(waiting))
    try:
        peers, offline = current_connections(), broker.run(broker.admin.peers.offline())
    except BrokerError:
        peers, offline = [], {}
    return build_subscriptions(peers, numbers, kept, offline, oldest)


def visible_subscription_logs(logs: Iterable[Destination], sees: Callable[[Destination], bool]) -> frozenset[str]:
    """Return the log names of the visible named subscriptions. Raises BrokerError."""
    broker = gateway()
    kept = broker.run(broker.admin.peers.named(list(logs)))
    return frozenset(log.name for log, each in kept.items() if any(map(sees, each.topics)))
