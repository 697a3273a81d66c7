"""Build the parts of a node that use its broker: connections, networks, its cluster, reports, requests of operators."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerapp.admin.handlers.destination_operations import ClientDeletions
from brokerapp.admin.handlers.handler_table import build_handlers
from brokerapp.admin.handlers.request_handler import RequestHandler
from brokerapp.admin.handlers.request_router import RequestRouter
from brokerapp.connections.cluster_updates import addresses_by_node
from brokerapp.connections.connector_state import ClientServices, ConnectorState
from brokerapp.connections.login import Authenticate, LoginHandler
from brokerapp.connections.read_turns import ReadTurns
from brokerapp.connections.tls_renewal import ClientContexts
from brokerapp.core.broker import Broker
from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.model.commands import DestinationCommand
from brokerapp.network.connectors.accepted_bridges import AcceptedBridges
from brokerapp.network.connectors.assembly import NodeNetwork, build_network
from brokerapp.network.connectors.connector_store import NetworkConnectorStore
from brokerapp.network.connectors.stats import NetworkStatus
from brokerapp.runtime.definition_sync import DefinitionSync, RoutingUpdates
from brokerapp.runtime.dispatch_loop import DispatchLoop
from brokerapp.runtime.draining.client_release import ClientRelease
from brokerapp.runtime.draining.node_drain import NodeDrain
from brokerapp.runtime.listeners import Listeners
from brokerapp.runtime.node_cluster import NodeCluster, build_cluster
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.runtime.node_core import NodeCore
from brokerapp.runtime.reporting.heartbeat import NodeHeartbeat, StoreStatus
from brokerapp.runtime.reporting.node_reports import NodeReports
from brokerapp.runtime.reporting.statistics_writer import StatisticsWriter
from brokerapp.runtime.reporting.trace_writer import TraceWriter
from brokerapp.runtime.shards.family_mover import FamilyMover
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.broker_store import BrokerStore


@dataclass(frozen=True, slots=True)
class NodeParts:
    """The parts of a node that use its broker. None of them does anything before the node begins its work."""

    listeners: Listeners
    network: NodeNetwork
    cluster: NodeCluster | None  #: None: the broker is in none
    routing: RoutingUpdates
    reports: NodeReports
    drain: NodeDrain
    mover: FamilyMover
    requests: RequestRouter
    deletions: ClientDeletions


async def build_parts(
    core: NodeCore,
    config: NodeConfig,
    store: BrokerStore,
    control: RedisStore,
    *,
    is_first: bool,
    definition_sync: DefinitionSync,
    dispatch_loop: DispatchLoop,
    authenticate: Authenticate | None,
) -> NodeParts:
    """Build the parts of a node that has joined, perhaps as the first of its broker. Raises StoreUnavailable.

    `control` has connections of its own: it blocks on them.
    """
    broker, placement = core.broker, core.placement
    services = client_services(broker, dispatch_loop)
    internal = ConnectorState(services, None, "network")
    accepted = AcceptedBridges(internal, broker.advisories)
    listeners = Listeners(services, authenticate, internal, accepted)
    registry = NetworkConnectorStore(store.connectors)
    await registry.initialize(
        config.network, impose=config.replaces_definitions, first=is_first, starts=not config.is_copy
    )
    trust = ClientContexts(config.tls)
    network = build_network(
        broker, placement.peers, registry,
        internal=internal, accepted=accepted, trust=trust, at_once=config.network_at_once,
    )  # fmt: skip
    reports = await _reports(core, store, listeners, network.status, lambda: drain.status())
    drain = _drain(core, config.node, store, listeners, reports)
    routing = RoutingUpdates(definition_sync, broker.routing, broker.apply_definitions)

    async def apply_definitions() -> None:
        await routing.refresh()
        await reports.heartbeat.send()  # which says that it routes by them

    handlers = build_handlers(broker, pump=dispatch_loop.request, refresh=apply_definitions)
    cluster = None
    if config.cluster is not None:
        cluster = await build_cluster(
            core, config, config.cluster, store,
            operations=handlers.recorded_changes, trust=trust, request_dispatch=dispatch_loop.request,
        )  # fmt: skip
    mover = FamilyMover(store, broker.commits, broker.shard_placement, broker.session)
    handler = RequestHandler({**handlers.by_verb, **network.requests.verbs, **mover.verbs})
    return NodeParts(
        listeners=listeners, network=network, cluster=cluster, routing=routing, reports=reports, drain=drain,
        mover=mover, requests=RequestRouter(placement, config.node, control.requests, store.requests, handler),
        deletions=_deletions(broker, control, dispatch_loop),
    )  # fmt: skip


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


async def _reports(
    core: NodeCore,
    store: BrokerStore,
    listeners: Listeners,
    network: NetworkStatus,
    drain: Callable[[], Mapping[str, Any]],
) -> NodeReports:
    broker = core.broker
    statistics = StatisticsWriter(
        counters=broker.counters, gauges=broker.gauges, placement=broker.placement, store=store.stats,
        snapshot=await store.stats.version(),
    )  # fmt: skip
    trace = TraceWriter(
        recorder=broker.tracer, routing=broker.routing, queues=broker.queues,
        consumers=broker.consumer_recorder, write=store.write_trace,
    )  # fmt: skip
    store_status = StoreStatus(
        context=broker.context(), store=store, limits=core.limits, rollbacks=await store.server.rollbacks()
    )
    heartbeat = NodeHeartbeat(
        context=broker.context(), listeners=listeners, clients=broker.clients, quotas=broker.quotas,
        routing=broker.routing, store=store_status, sections=_status_sections(core, network, drain),
        write=core.membership.send_heartbeat,
    )  # fmt: skip
    return NodeReports(
        heartbeat=heartbeat, statistics=statistics, trace=trace, limits=core.limits, period=core.membership.period,
        recount_idle=core.placement.depth_recount.recount_idle,
    )  # fmt: skip


def _status_sections(
    core: NodeCore, network: NetworkStatus, drain: Callable[[], Mapping[str, Any]]
) -> Mapping[str, Callable[[], Any]]:
    """Return what describes those fields of the node's status that other parts know."""
    broker = core.broker

    def cluster() -> Mapping[str, Any]:
        return broker.cluster.status(brief=True).to_json() if broker.cluster is not None else {}

    def homes() -> Mapping[str, Any]:
        found = broker.placement.status()
        return {**found, **drain()} if found else {}

    return {
        "network": lambda: network.stats().to_json(),
        "cluster": cluster,
        "homes": homes,
        "transactions": broker.branches.status,
        "shards": core.shards.status,
    }


def _drain(core: NodeCore, node: str, store: BrokerStore, listeners: Listeners, reports: NodeReports) -> NodeDrain:
    broker, placement = core.broker, core.placement

    async def other_addresses(connector: ConnectorState) -> Sequence[str]:
        found = addresses_by_node(connector, await store.nodes.statuses())
        return [address for name, address in sorted(found.items()) if name != node]

    def set_dispatching(is_dispatching: bool) -> None:
        """Dispatch to clients of this node, or not; logs of temporary queues may be left here."""
        broker.dispatcher.is_stopped = not is_dispatching
        for log in broker.queues:
            broker.dispatcher.touch(log)

    return NodeDrain(
        is_requested=lambda: placement.peers.members.is_drained(broker.session),
        is_handed_over=lambda: placement.handoff.others_took_over,
        entrance=listeners,
        release=ClientRelease(
            connectors=lambda: listeners.connectors, commit=broker.commits.barrier, other_addresses=other_addresses
        ),
        set_dispatching=set_dispatching,
        report=reports.send_status,
    )


def _deletions(broker: Broker, control: RedisStore, dispatch_loop: DispatchLoop) -> ClientDeletions:
    deletions = ClientDeletions(
        admission=broker.admission, authorizer=broker.authorizer, perform_temporary=broker.temporaries.perform,
        replies=broker.replies, request_dispatch=dispatch_loop.request, requests=control.requests,
    )  # fmt: skip
    broker.commands[DestinationCommand] = deletions.perform
    return deletions
