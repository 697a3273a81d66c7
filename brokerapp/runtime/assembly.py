"""Build the parts of a node that use its broker: logins and connections, its cluster, and its reports."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from brokerapp.cluster.admission import ClusterAdmission
from brokerapp.cluster.agreement import ClusterAgreement
from brokerapp.cluster.change_applier import ChangeApplier
from brokerapp.cluster.change_log import ChangeLog
from brokerapp.cluster.cluster import Cluster
from brokerapp.cluster.durable_changes import DurableSubscriptionChanges
from brokerapp.cluster.peer import ClusterPeer
from brokerapp.cluster.peer_requests import PeerRequests
from brokerapp.cluster.record import ClusterChange, ClusterRecord
from brokerapp.cluster.remote_consumers import RemoteConsumers
from brokerapp.cluster.remote_temporaries import RemoteTemporaries
from brokerapp.cluster.settings import ClusterSettings
from brokerapp.connections.connector_state import ClientServices
from brokerapp.connections.login import LoginHandler
from brokerapp.connections.read_turns import ReadTurns
from brokerapp.core.broker import Broker
from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.model.destination import Destination
from brokerapp.network.connectors.stats import NetworkStatus
from brokerapp.runtime.dispatch_loop import DispatchLoop
from brokerapp.runtime.heartbeat import NodeHeartbeat, StoreStatus
from brokerapp.runtime.listeners import Listeners
from brokerapp.runtime.statistics_writer import StatisticsWriter
from brokerapp.runtime.trace_writer import TraceWriter
from brokerapp.store import StoreLimits
from brokerapp.store.shards.broker_store import BrokerStore


def client_services(broker: Broker, dispatch_loop: DispatchLoop) -> ClientServices:
    """Return what connections of clients use of the broker."""
    numbers = itertools.count(1)
    return ClientServices(
        name=broker.name,
        session=broker.session,
        next_client_id=lambda: f"{broker.session}-{next(numbers)}",
        login=LoginHandler(
            settings=broker.settings,
            clients=broker.connections,
            bridges=broker.bridges,
            claims=broker.placement.client_id_claims,
            admit=broker.admit,
        ),
        commands=broker.commands,
        clients=broker.connections,
        dispatcher=broker.dispatcher,
        own_temporary=broker.temporaries.own,
        read_turns=ReadTurns(
            joining=broker.publisher.joining, dispatch=dispatch_loop.run, call_soon=dispatch_loop.call_soon
        ),
        request_dispatch=dispatch_loop.request,
        durable_subscriptions=lambda: [each.identity for each in broker.durables],
        broker_ids=BrokerIds(),
    )


def join_cluster(
    broker: Broker,
    member: str,
    terms: ClusterSettings,
    record: ClusterRecord,
    *,
    configured: Iterable[Destination],
    changes: ChangeApplier,
    request_dispatch: Callable[[], None],
) -> Cluster:
    """Make the node, which is this member, part of a cluster; see `recording.begin`."""
    name, context = broker.name, broker.context()
    peers = {each.name: ClusterPeer(each) for each in terms.others(member)}
    recording = ChangeLog(
        context=context,
        master=terms.master,
        peers=peers,
        record=record,
        configured=map(ClusterChange.of_destination, configured),
        target=changes,
    )
    remote_consumers = RemoteConsumers(
        name=name,
        peers=peers.values(),
        authorizer=broker.authorizer,
        dispatcher=broker.dispatcher,
        request_dispatch=request_dispatch,
        timers=broker.timers,
        retry_ms=terms.retry_ms,
    )
    remote_temporaries = RemoteTemporaries(temporaries=broker.temporaries, timers=broker.timers, peers=peers.values())
    requests = PeerRequests(
        name=name,
        peers=peers,
        recording=recording,
        changes=changes,
        remote_temporaries=remote_temporaries,
        creation=broker.creation,
        rejections=broker.rejections,
        replies=broker.replies,
    )
    agreement = ClusterAgreement(terms=terms, settings=broker.settings, routing=broker.routing)
    admission = ClusterAdmission(
        name=name,
        terms=terms,
        agreement=agreement,
        peers=peers,
        recording=recording,
        requests=requests,
        commands=broker.commands,
        subscriptions=broker.subscriptions,
    )
    durable_changes = DurableSubscriptionChanges(
        recording=recording,
        clients=broker.clients,
        commands=broker.commands,
        durables=broker.durables,
        authorizer=broker.authorizer,
        replies=broker.replies,
        timers=broker.timers,
    )
    cluster = Cluster(
        name=name,
        member=member,
        terms=terms,
        agreement=agreement,
        peers=peers,
        recording=recording,
        admission=admission,
        remote_consumers=remote_consumers,
        remote_temporaries=remote_temporaries,
    )
    events = broker.events
    events.suspend_while(lambda: admission.is_suspended)
    events.client_returned.add(remote_temporaries.on_client_returned)
    events.client_disconnected.add(admission.on_client_disconnected)
    events.consumer_started.add(remote_consumers.on_consumer_started)
    events.consumer_stopped.add(remote_consumers.on_consumer_stopped)
    events.temporary_added.add(remote_temporaries.on_temporary_added)
    events.temporary_removed.add(remote_temporaries.on_temporary_removed)
    admission.peer_lost.add(remote_temporaries.on_broker_lost)
    broker.commands.update(durable_changes.handlers)
    broker.cluster = cluster
    return cluster


def node_heartbeat(
    broker: Broker,
    *,
    store: BrokerStore,
    limits: StoreLimits,
    listeners: Listeners,
    network: NetworkStatus,
    rollbacks: Mapping[str, int],
    shards: Callable[[], Any],
    write: Callable[[Mapping[str, Any]], Awaitable[None]],
    drain: Callable[[], Mapping[str, Any]],
) -> NodeHeartbeat:
    """Return what writes the status of the broker's node."""

    def cluster_status() -> Mapping[str, Any]:
        return broker.cluster.status(brief=True).to_json() if broker.cluster is not None else {}

    def homes() -> Mapping[str, Any]:
        found = broker.placement.status()
        return {**found, **drain()} if found else {}

    return NodeHeartbeat(
        context=broker.context(),
        listeners=listeners,
        clients=broker.clients,
        quotas=broker.quotas,
        routing=broker.routing,
        store=StoreStatus(context=broker.context(), store=store, limits=limits, rollbacks=rollbacks),
        sections={
            "network": lambda: network.stats().to_json(),
            "cluster": cluster_status,
            "homes": homes,
            "transactions": broker.branches.status,
            "shards": shards,
        },
        write=write,
    )


def statistics_writer(broker: Broker, store: BrokerStore, snapshot: int) -> StatisticsWriter:
    """Return what writes the statistics of the broker's destinations."""
    return StatisticsWriter(
        counters=broker.counters,
        gauges=broker.gauges,
        placement=broker.placement,
        store=store.stats,
        snapshot=snapshot,
    )


def trace_writer(broker: Broker, store: BrokerStore) -> TraceWriter:
    """Return what writes the events that the broker records."""
    return TraceWriter(
        recorder=broker.tracer,
        routing=broker.routing,
        queues=broker.queues,
        consumers=broker.dispatcher.consumer_recorder,
        write=store.write_trace,
    )
