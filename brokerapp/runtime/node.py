"""Run a node of a broker: open the store, serve listeners, do the periodic work, stop cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from brokerapp.admin.handlers.destination_operations import ClientDeletions
from brokerapp.admin.handlers.handler_table import build_handlers
from brokerapp.admin.handlers.recorded_changes import RecordedChanges
from brokerapp.admin.handlers.request_handler import RequestHandler
from brokerapp.admin.handlers.request_router import RequestRouter
from brokerapp.cluster.change_applier import ChangeApplier
from brokerapp.cluster.change_log import RecordLeader, read_record
from brokerapp.cluster.links import ClusterLinks
from brokerapp.cluster.record import ClusterRecord
from brokerapp.cluster.settings import ClusterSettings
from brokerapp.connections.cluster_updates import ClusterUpdates, addresses_by_node
from brokerapp.connections.connector_state import ConnectorState
from brokerapp.connections.login import Authenticate
from brokerapp.connections.tls_renewal import ClientContexts, keep_renewed
from brokerapp.core.assembly import AssembledBroker
from brokerapp.core.broker import Broker
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.errors import Fenced, NodeIsolated, RequestRefused, StoreUnavailable
from brokerapp.model.commands import DestinationCommand
from brokerapp.model.definitions import Definitions
from brokerapp.monitoring.health_pages import STARTING, NodeHealth, NodeState
from brokerapp.network.connectors.accepted_bridges import AcceptedBridges
from brokerapp.network.connectors.admin_handler import NetworkRequests
from brokerapp.network.connectors.connector_store import NetworkConnectorStore
from brokerapp.network.connectors.connectors import ConnectorManager
from brokerapp.network.connectors.diagnosis import BridgeDiagnosis
from brokerapp.network.connectors.leader import ConnectorLeader
from brokerapp.network.connectors.stats import NetworkStatus
from brokerapp.nodes.assembly import NodeAssembly
from brokerapp.nodes.links.members import RUNNING_VERSION
from brokerapp.nodes.membership import member_changes
from brokerapp.nodes.membership.compatibility import CLUSTERED
from brokerapp.nodes.membership.membership import NodeMembership
from brokerapp.runtime.assembly import client_services, join_cluster, node_heartbeat, statistics_writer, trace_writer
from brokerapp.runtime.definition_sync import DefinitionSync
from brokerapp.runtime.disk_watch import DiskWatch
from brokerapp.runtime.dispatch_loop import DispatchLoop
from brokerapp.runtime.draining.client_release import ClientRelease
from brokerapp.runtime.draining.node_drain import NodeDrain
from brokerapp.runtime.heartbeat import NodeHeartbeat
from brokerapp.runtime.listeners import Listeners
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.runtime.shards.family_mover import FamilyMover
from brokerapp.runtime.shards.node_shards import NodeShards
from brokerapp.runtime.startup_checks import (
    check_other_nodes,
    recover_logs,
    restored_config,
    wait_for_former_node,
    wait_for_replicas,
)
from brokerapp.store import StoreLimits
from brokerapp.store.memory_limits import store_limit
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.disk import StoreDisk
from brokerapp.store.server.durability import REMEDY, durability_loss
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.system.clock import now_ms
from brokerapp.system.process_tuning import tune_process
from brokerapp.system.supervised_tasks import STORE_RETRY_SECONDS, SupervisedTasks
from brokerapp.tracing.recorder import NullTraceRecorder, TraceRecorder
from brokerapp.tracing.schema import CHANGED, START
from brokerapp.version import VERSION

logger = logging.getLogger(__name__)

#: Seconds between snapshots of the numbers, heart-beats of the node, and flushes of the trace.
TICK_SECONDS = 1.0
#: Seconds between looks for a full batch of trace events: at full load almost as many come within a second as may wait.
FULL_BATCH_SECONDS = 0.2
#: Seconds between two times that a node notes which function library it uses.
LIBRARY_SECONDS = 3600.0
#: Seconds in which a node that stops hands over what it owns and lets its clients go, if there are other nodes. What
#: it does then takes up to DRAIN_SECONDS and CLOSE_SECONDS more: together less than the 30 s that Kubernetes waits.
HANDOVER_SECONDS = 14.0
#: Seconds a node that stops waits for the store to take what clients asked.
DRAIN_SECONDS = 10.0
#: Seconds it waits then for the store to take the marks of the queues.
CLOSE_SECONDS = 2.0


class Node:
    """Runs a node of a broker, from `start` until `stop`, or until `failed` is set because it cannot go on."""

    def __init__(self, config: NodeConfig, authenticate: Authenticate | None = None) -> None:
        self.config, self._authenticate = config, authenticate
        self.session = uuid.uuid4().hex[:8]
        self.addresses: list[str] = []
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._store = BrokerStore(config.redis_url, config.broker, config.replicas)
        self._control = RedisStore(config.redis_url, config.broker)  # its own connections: it blocks on them
        self._definition_sync = DefinitionSync(self._store.definitions)
        self._tasks = SupervisedTasks(self._fail)
        self._publish_lock = asyncio.Lock()  # what was taken to be told is told before the node ends
        self._dispatch_loop = DispatchLoop(self.failed)
        self._applying: ChangeApplier | None = None
        self._record_leader: RecordLeader | None = None  # of a broker of a cluster
        self._followed = asyncio.Event()  # the members may have changed
        self.cluster_links: ClusterLinks | None = None
        self.membership: NodeMembership | None = None  #: once it is about to join
        self._seat: ConnectorLeader | None = None  # the same
        self._listeners: Listeners | None = None  # the same
        self._heartbeat: NodeHeartbeat | None = None  # the same
        self._mover: FamilyMover | None = None  # the same
        self._drain: NodeDrain | None = None  #: once it listens

    # -- life

    async def start(self) -> None:
        """Become the broker's node and listen. Raises Fenced or Unlinked when it had to stop before that was done: then
        it has failed with it.
        """
        try:
            await self._start()
        except (Fenced, NodeIsolated) as error:
            if not self.failed.done():
                logger.error("%s", error)
                self._fail(error)
            raise

    async def _start(self) -> None:
        tune_process()
        await self._store.open()
        config = self.config = await restored_config(self._store, self.config)
        await self._store.server.check_confirmation(config.replicas)
        await wait_for_replicas(self._store.server, config.replicas)
        await check_other_nodes(self._store.nodes, config)
        await wait_for_former_node(self._store.nodes, config)
        definitions = await self._definition_sync.load_or_define(config.definitions, config.replaces_definitions)
        self.broker = await self._make_broker(definitions)
        self.membership = NodeMembership(
            store=self._store.nodes, name=config.node, host=config.link_host, timeout_ms=config.node_timeout_ms,
            placement=self._placement, is_exclusive=config.owns_store,
            tls=config.link_tls.latest if config.link_tls is not None else None,
            about={CLUSTERED: config.cluster is not None, RUNNING_VERSION: VERSION},
        )  # fmt: skip
        self._dispatch_loop.attach(self.broker.dispatcher, self._placement, self.membership)
        await self.membership.join()
        alone = self._placement.is_alone
        if alone:
            await self._store.stats.clear()
        handlers = build_handlers(self.broker, pump=self._dispatch_loop.request, refresh=self._apply_definitions)
        if config.cluster is not None:
            await self._join_cluster(config.cluster, handlers.recorded_changes)
        deletions = ClientDeletions(
            admission=self.broker.admission, authorizer=self.broker.authorizer,
            perform_temporary=self.broker.temporaries.perform, replies=self.broker.replies,
            request_dispatch=self._dispatch_loop.request, requests=self._control.requests,
        )  # fmt: skip
        self.broker.commands[DestinationCommand] = deletions.perform
        services = client_services(self.broker, self._dispatch_loop)
        internal = ConnectorState(services, None, "network")
        accepted = AcceptedBridges(internal, self.broker.advisories)
        self._listeners = Listeners(services, self._authenticate, internal, accepted)
        registry = NetworkConnectorStore(self._store.connectors)
        await registry.initialize(
            config.network, impose=config.replaces_definitions, first=alone, starts=not config.is_copy
        )
        trust = ClientContexts(config.tls)
        self.network = ConnectorManager(
            internal, (), trust,
            durables=self.broker.durables, advisories=self.broker.advisories, at_once=config.network_at_once,
        )  # fmt: skip
        self._seat = ConnectorLeader(self._placement.peers, self.network, registry)
        network = NetworkStatus(
            connections=self.network, bridges=self.broker.bridges, accepted=accepted, routing=self.broker.routing
        )  # fmt: skip
        diagnosis = BridgeDiagnosis(self.network, queues=self.broker.queues, commits=self.broker.commits)
        network_requests = NetworkRequests(leader=self._seat, registry=registry, status=network, diagnosis=diagnosis)
        self._mover = FamilyMover(self._store, self.broker.commits, self.broker.shard_placement, self.session)
        self._serving = RequestRouter(
            self._placement, config.node, self._control.requests, self._store.requests,
            RequestHandler({**handlers.by_verb, **network_requests.verbs, **self._mover.verbs}),
        )  # fmt: skip
        self._statistics = statistics_writer(self.broker, self._store, await self._store.stats.version())
        self.trace = trace_writer(self.broker, self._store)
        self._heartbeat = node_heartbeat(
            self.broker, store=self._store, limits=self._limits, listeners=self._listeners, network=network,
            rollbacks=await self._store.server.rollbacks(), write=self.membership.send_heartbeat,
            drain=lambda: self._drain.status() if self._drain is not None else {}, shards=self._shards.status,
        )  # fmt: skip
        # From here on operators ask us instead of changing the store themselves.
        await self._heartbeat.send()
        if alone:
            self.broker.store_recovery.recover(await recover_logs(self._store.logs, config, self.session))
        await self._shards.adopt()
        if config.cluster is not None:
            await self._follow_record(self._record_leader, alone)
            self.cluster_links = ClusterLinks(config.broker, self.broker.cluster.member, self.broker.cluster, trust)
        self.trace.record_depths(START if alone else CHANGED)
        self._tasks.begin("committer", self._committer.run, vital=True)  # better no node than one that stores nothing
        for name, work in self._background_work().items():
            self._tasks.begin(name, work)
        self._tasks.begin("deletions by clients", deletions.run)
        if not alone:
            await self._take_part()
        if config.cluster is None:
            for destination in config.destinations:
                self.broker.creation.declare(destination)
        await self._listen()
        await self.network.announce(self._listeners.announced_addresses)
        await self._seat.refresh()
        self._drain = self._make_drain(self._listeners)
        self.membership.on_followed = self._on_followed
        self._drain.on_members_followed()  # they may have changed since it joined
        self._tasks.begin("drain", self._drain.run)
        self._tasks.begin("network", self._seat.run)
        self._tell_clients_of_nodes(self._listeners.connectors)
        if self.cluster_links is not None:
            self.broker.cluster.describe_serving = self._heartbeat.serving
            self.cluster_links.start()
        self.broker.url = next(iter(self.addresses), "")
        await self._heartbeat.send()

    def _make_drain(self, listeners: Listeners) -> NodeDrain:
        peers, handoff = self._placement.peers, self._placement.handoff

        async def other_addresses(connector: ConnectorState) -> Sequence[str]:
            found = addresses_by_node(connector, await self._store.nodes.statuses())
            return [address for name, address in sorted(found.items()) if name != self.config.node]

        return NodeDrain(
            is_requested=lambda: peers.members.is_drained(self.session),
            is_handed_over=lambda: handoff.others_took_over,
            entrance=listeners,
            release=ClientRelease(
                connectors=lambda: listeners.connectors, commit=self._committer.barrier, other_addresses=other_addresses
            ),
            set_dispatching=self._set_dispatching,
            report=self._report,
        )  # fmt: skip

    def _set_dispatching(self, is_dispatching: bool) -> None:
        """Dispatch to clients of this node, or not; logs of temporary queues may be left here."""
        self.broker.dispatcher.is_stopped = not is_dispatching
        for log in self.broker.queues:
            self.broker.dispatcher.touch(log)

    async def _report(self) -> None:
        with contextlib.suppress(StoreUnavailable):  # the next heartbeat does so
            await self._heartbeat.send()

    def _on_followed(self) -> None:
        """Take over what one node does for all, where it is this one's turn now."""
        self._seat.request_refresh()
        self._drain.on_members_followed()
        self._followed.set()

    async def _lead_record(self, leader: RecordLeader) -> None:
        """Take over the record of the cluster whenever this node may be next."""
        while True:
            await self._followed.wait()
            self._followed.clear()
            await leader.refresh()

    def _tell_clients_of_nodes(self, connectors: list[ConnectorState]) -> None:
        async def statuses() -> Mapping[str, Mapping[str, Any]]:
            others = self.broker.cluster.serving() if self.config.cluster is not None else {}
            return {**others, **await self._store.nodes.statuses()}

        updates = ClusterUpdates(node=self.config.node, connectors=connectors, statuses=statuses)
        if updates.is_needed:
            self._tasks.begin("cluster clients", updates.run)

    def _background_work(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the tasks that run as long as the node, beside the group commit, by name."""
        work_by_name = {
            "discards": self._committer.run_discards,
            "tick": self._tick,
            "full trace batches": self._write_full_batches,
            "timers": self._run_timers,
            "signals": self._follow_signals,
            "beats": self.membership.run_heartbeat,
            "members": self.membership.run_watch,
            "moves": self.membership.run_handoffs,
            "shards": partial(self._shards.run, self._store.nodes.statuses),
            "families": partial(self._shards.run_moves, self._mover),
            "requests": self._serving.run,
            "requests that waited": self._serving.run_deferred,
            "libraries": self._tidy_libraries,
            "certificates": partial(keep_renewed, self.config.renewed()),
        }
        if self._applying is not None:
            work_by_name["applying"] = self._applying.run
        if self._record_leader is not None:
            work_by_name["record"] = partial(self._lead_record, self._record_leader)
        if self.config.store_folder is not None:
            disk = StoreDisk(self.config.store_folder)
            work_by_name["disk"] = DiskWatch(
                disk, self._limits, self._store.server, self.broker.flow_control.disk_changed
            ).run
        return work_by_name

    async def _join_cluster(self, terms: ClusterSettings, operations: RecordedChanges) -> None:
        """Make the broker part of its cluster."""
        self._applying = ChangeApplier(
            creation=self.broker.creation, durables=self.broker.durables, commits=self._committer,
            operations=operations, placement=self._placement,
        )  # fmt: skip
        cluster = join_cluster(
            self.broker, terms.member_name(self.config.broker, self.config.node_name), terms, await self._read_record(),
            configured=self.config.destinations, changes=self._applying, request_dispatch=self._dispatch_loop.request,
        )  # fmt: skip
        peers = self._placement.peers
        self._record_leader = RecordLeader(
            cluster.recording, lambda: peers.members.eldest == peers.session, self._read_record
        )

    async def _follow_record(self, leader: RecordLeader | None, alone: bool) -> None:
        self.broker.cluster.recording.begin()
        if alone and leader is not None:
            await leader.refresh()
        self._followed.set()  # the node that was first may be gone since this one joined

    async def _read_record(self) -> ClusterRecord:
        return read_record(*await self._store.cluster_record.read())

    async def _make_broker(self, definitions: Definitions) -> Broker:
        """Create the broker with its limits and the store's current usage."""
        memory = await self._store.server.memory()
        if found := durability_loss({**memory, "kept": self.config.settings.keeps_messages}):
            logger.warning("not durable: %s; %s", found, REMEDY)
        total = store_limit(self.config.store_limit, memory)
        self._limits = StoreLimits(
            total=total,
            temp=min(self.config.temp_limit, total) if total else self.config.temp_limit,
            of_log=lambda log: self.broker.limits.of_log(log),
        )
        self._shards = NodeShards(self._store, self._limits, self._is_eldest)
        recorder = TraceRecorder(self.config.broker) if self.config.trace else NullTraceRecorder(self.config.broker)
        nodes = NodeAssembly(
            request_dispatch=self._dispatch_loop.request, can_dispatch=self._dispatch_loop.can_dispatch
        )
        self._placement = nodes.placement
        broker = AssembledBroker(
            self.config.broker, self.session, self._store, self._shards.stores(), self._store.shard_record,
            self._dispatch_loop.run, recorder, definitions, nodes,
            self.config.settings, AuthorizationMap(self.config.grants) if self.config.grants is not None else None,
        )  # fmt: skip
        self._committer = broker.commits
        await self._shards.attach(broker.commits_builder, broker.shard_placement)
        return broker

    def _is_eldest(self) -> bool:
        return bool(self._placement.peers.members.eldest == self.session)

    async def _take_part(self) -> None:
        """Join the other nodes: they learn of this one, it learns of the logs, then it takes over some."""
        await self._unless_failed(self.membership.wait_for_others(known=False))
        await self._unless_failed(self._placement.retained_sync.fetch())
        states = await self._store.logs.recover()
        self.broker.store_recovery.recover(states)
        await self._shards.adopt()
        self._placement.coordinator.on_logs_loaded()
        await self._unless_failed(self.membership.wait_for_others(known=True))

    async def _unless_failed(self, work: Coroutine[None, None, None]) -> None:
        """Wait for this; raises what the node failed with before it was done."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self.failed}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.failed.result()
        finally:
            task.cancel()

    async def impose(self, definitions: Definitions, source: str) -> int:
        """Put these in force if the source says something else than it did last time; the version in force.

        They must be such as a file's reader lets through. Raises DefinitionConflict, StoreUnavailable.
        """
        version, is_new = await self._definition_sync.impose(definitions, source)
        if is_new:
            await self._refresh()
        return version

    async def _listen(self) -> None:
        for listen in self.config.listen:
            if self.failed.done():  # clients of a node that failed were let go of
                self.failed.result()
            await self._listeners.open(listen)
        self.addresses = self._listeners.addresses

    async def stop(self) -> None:
        """Stop cleanly: no new work, everything asked is stored, then good-bye. One that failed stores nothing more."""
        if self.failed.done():
            await self.abandon()
            return
        if self._mover is not None:
            await self._mover.wait(DRAIN_SECONDS)  # other nodes hold the family as long
        await self._drain_before_stop()
        if self.failed.done():
            await self.abandon()
            return
        await self._seat.leave()
        if self.cluster_links is not None:
            await self.cluster_links.stop()
        self._listeners.stop()
        self.broker.dispatcher.is_stopped = True
        self.broker.held.close()
        self.broker.flow_control.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._committer.drain(), DRAIN_SECONDS)
        self.broker.consumers.close()  # whatever is not done yet
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._committer.barrier(), CLOSE_SECONDS)
        for client in list(self.broker.clients.values()):
            client.sink.flush()
            client.sink.close()
        async with self._publish_lock:  # nothing more is taken to be told
            with contextlib.suppress(StoreUnavailable):
                self.trace.record_depths(CHANGED)
                await self.trace.flush(everything=True)
                await self._statistics.write_all()
            await self._end_tasks()
        with contextlib.suppress(StoreUnavailable):
            await self.membership.leave()
        await self._store.close()
        await self._control.close()

    async def _drain_before_stop(self) -> None:
        """Hand over what this node owns and let its clients go, so that they miss it for as short as can be."""
        if self._placement.is_alone or self._drain is None:
            return

        async def drain() -> None:
            await self._store.nodes.change(lambda records: member_changes.drain(records, self.config.node))
            await self._unless_failed(self._drain.wait())

        try:
            await asyncio.wait_for(drain(), HANDOVER_SECONDS)
        except RequestRefused as error:
            logger.info("not drained before the stop: %s", error)
        except (TimeoutError, StoreUnavailable):
            logger.warning("the node could not be drained within %g s; it stops without", HANDOVER_SECONDS)
        except (Fenced, NodeIsolated):
            pass  # it is abandoned

    async def _end_tasks(self) -> None:
        self._dispatch_loop.stop()
        if self._mover is not None:
            self._mover.cancel()
        await self._tasks.end()

    def health(self) -> NodeHealth:
        """Return the state and the figures of the node for its health port."""
        if self._heartbeat is None or self.membership is None or self._listeners is None:
            return STARTING
        disk = self._limits.disk
        state = NodeState(
            failure=f"stopped: {self.failed.exception()}" if self.failed.done() else "",
            listens=self._listeners.is_open,
            is_draining=self._drain is not None and bool(self._drain.state),
            store_answers=self.membership.is_store_writable,
            disk_shortage="" if disk.may_commit else disk.shortage,
            is_settled=self._placement.handoff_in.is_settled,
        )
        status = self._heartbeat.status()
        return NodeHealth(state, replace(status, name=self.config.node))

    async def was_expelled(self) -> bool:
        """Return whether it was expelled and its name is still free; asks until the store answers."""
        was_fenced = self.failed.done() and isinstance(self.failed.exception(), Fenced)
        return was_fenced and await self._is_free(self.config.node)

    async def _is_free(self, name: str) -> bool:
        while True:
            with contextlib.suppress(StoreUnavailable):
                return name not in (await self._store.nodes.members())[1]
            await asyncio.sleep(STORE_RETRY_SECONDS)

    async def abandon(self) -> None:
        """Give up all that a node has that failed, or is not to start any more: what it knew is of no use."""
        self._close_connections()  # what was opened as it failed
        if self._seat is not None:
            await self._seat.leave()
        if self.cluster_links is not None:
            await self.cluster_links.stop()
        await self._end_tasks()
        if self.membership is not None:
            with contextlib.suppress(StoreUnavailable):
                await self.membership.leave()
        await self._store.close()
        await self._control.close()

    # -- periodic and following work; each step survives a store that is away

    def _fail(self, error: Exception) -> None:
        self._close_connections()
        if not self.failed.done():
            self.failed.set_exception(error)
            self.failed.exception()  # it is told above, whether anybody asks or not
        self._tasks.cancel()  # they are of no use any more, and would only tell of what follows from this

    def _close_connections(self) -> None:
        """Take no more clients, and let go of those that are there; tell and hear other nodes no more."""
        if self._listeners is not None:
            self._listeners.close_all()
        if self.membership is not None:
            self.membership.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(min(TICK_SECONDS, self.membership.period))
            self._placement.depth_recount.recount_idle()
            await self._heartbeat.send()
            async with self._publish_lock:
                if self._limits.disk.may_commit:  # else acknowledgements have no disk space
                    await self._statistics.write()
                    self.trace.record_due_depths()
                    await self.trace.flush()

    async def _write_full_batches(self) -> None:
        while True:
            await asyncio.sleep(FULL_BATCH_SECONDS)
            if self.trace.has_full_batch:
                async with self._publish_lock:
                    if self._limits.disk.may_commit:
                        await self.trace.flush()

    async def _tidy_libraries(self) -> None:
        while True:
            await self._store.libraries.remove_unused()
            await asyncio.sleep(LIBRARY_SECONDS)

    async def _run_timers(self) -> None:
        """Do what the broker wants done later, when its time comes."""
        timers, moved = self.broker.timers, asyncio.Event()
        timers.moved = moved.set
        while True:
            moved.clear()
            timers.run(now_ms())
            self._dispatch_loop.request()
            due = timers.next_ms
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), None if due is None else max(0, due - now_ms()) / 1000)

    async def _follow_signals(self) -> None:
        async for signal in self._control.signals():
            if signal in ("definitions", "subscribed"):
                await self._refresh()
            if signal in ("nodes", "subscribed"):
                self.membership.refresh()
            if signal in ("connectors", "subscribed"):
                self._seat.request_refresh()
            if signal in ("shards", "subscribed"):
                await self._shards.refresh()

    async def _refresh(self) -> None:
        """Route by the definitions that are in force."""
        definitions = await self._definition_sync.newer_than(self.broker.routing.table.definitions.version)
        if definitions is not None:
            self.broker.apply_definitions(definitions)
            logger.info("routing by definitions version %d", definitions.version)

    async def _apply_definitions(self) -> None:
        """Route by the active definitions, and say so in the node's status."""
        await self._refresh()
        await self._heartbeat.send()
