"""Run a node of a broker: open the store, join, serve listeners, stop cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from brokerapp.connections.cluster_updates import ClusterUpdates
from brokerapp.connections.login import Authenticate
from brokerapp.core.broker import Broker
from brokerapp.errors import Fenced, NodeIsolated, RequestRefused, StoreUnavailable
from brokerapp.model.definitions import Definitions
from brokerapp.monitoring.health_pages import STARTING, NodeHealth, NodeState
from brokerapp.network.connectors.connectors import ConnectorManager
from brokerapp.nodes.membership import member_changes
from brokerapp.nodes.membership.membership import NodeMembership
from brokerapp.runtime.background_work import background_work
from brokerapp.runtime.definition_sync import DefinitionSync
from brokerapp.runtime.dispatch_loop import DispatchLoop
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.runtime.node_core import NodeCore, build_core
from brokerapp.runtime.node_parts import NodeParts, build_parts
from brokerapp.runtime.startup_checks import (
    check_other_nodes,
    recover_logs,
    restored_config,
    wait_for_former_node,
    wait_for_replicas,
)
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.system.process_tuning import tune_process
from brokerapp.system.supervised_tasks import STORE_RETRY_SECONDS, SupervisedTasks
from brokerapp.tracing.schema import CHANGED, START

logger = logging.getLogger(__name__)

#: Seconds in which a node that stops hands over what it owns and lets its clients go, if there are other nodes. What
#: it does then takes up to DRAIN_SECONDS and CLOSE_SECONDS more: together less than the 30 s that Kubernetes waits.
HANDOVER_SECONDS = 14.0
#: Seconds a node that stops waits for the store to take what clients asked.
DRAIN_SECONDS = 10.0
#: Seconds it waits then for the store to take the marks of the queues.
CLOSE_SECONDS = 2.0


class Node:
    """Runs a node of a broker, from `start` until `stop`, or until `failed` is set because it cannot go on."""

    broker: Broker  #: once it is about to join
    membership: NodeMembership  #: the same
    network: ConnectorManager  #: once it has joined

    def __init__(self, config: NodeConfig, authenticate: Authenticate | None = None) -> None:
        self.config, self._authenticate = config, authenticate
        self.session = uuid.uuid4().hex[:8]
        self.addresses: list[str] = []
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._store = BrokerStore(config.redis_url, config.broker, config.replicas)
        self._control = RedisStore(config.redis_url, config.broker)  # its own connections: it blocks on them
        self._definition_sync = DefinitionSync(self._store.definitions)
        self._tasks = SupervisedTasks(self._fail)
        self._dispatch_loop = DispatchLoop(self.failed)
        self._core: NodeCore | None = None  # from when it is about to join
        self._parts: NodeParts | None = None  # from when it has joined

    # -- starting

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
        core = self._core = await self._open_store()
        self.broker, self.membership = core.broker, core.membership
        await core.membership.join()
        is_first = core.placement.is_alone
        if is_first:
            await self._store.stats.clear()
        parts = self._parts = await build_parts(
            core, self.config, self._store, self._control, is_first=is_first,
            definition_sync=self._definition_sync, dispatch_loop=self._dispatch_loop, authenticate=self._authenticate,
        )  # fmt: skip
        self.network = parts.network.connectors
        await self._recover(core, parts, is_first=is_first)
        self._begin_work(core, parts)
        if not is_first:
            await self._take_part(core)
        if self.config.cluster is None:
            for destination in self.config.destinations:
                core.broker.creation.declare(destination)
        await self._listen(parts)
        await self._serve(core, parts)

    async def _open_store(self) -> NodeCore:
        """Open the store, wait until this node may begin, and build its broker."""
        await self._store.open()
        config = self.config = await restored_config(self._store, self.config)
        await self._store.server.check_confirmation(config.replicas)
        await wait_for_replicas(self._store.server, config.replicas)
        await check_other_nodes(self._store.nodes, config)
        await wait_for_former_node(self._store.nodes, config)
        definitions = await self._definition_sync.load_or_define(config.definitions, config.replaces_definitions)
        return await build_core(config, self.session, self._store, definitions, self._dispatch_loop)

    async def _recover(self, core: NodeCore, parts: NodeParts, *, is_first: bool) -> None:
        """Say that this node is there; the first one recovers the logs."""
        await parts.reports.heartbeat.send()  # from here on operators ask it instead of changing the store themselves
        if is_first:
            core.broker.store_recovery.recover(await recover_logs(self._store.logs, self.config, self.session))
        await core.shards.adopt()
        if parts.cluster is not None:
            await parts.cluster.begin(is_first=is_first)
        parts.reports.trace.record_depths(START if is_first else CHANGED)

    def _begin_work(self, core: NodeCore, parts: NodeParts) -> None:
        self._tasks.begin(
            "committer", core.broker.commits.run, vital=True
        )  # better no node than one that stores nothing
        work_by_name = background_work(
            core, parts, self.config, self._store, self._control, self._dispatch_loop.request
        )
        for name, work in work_by_name.items():
            self._tasks.begin(name, work)

    async def _take_part(self, core: NodeCore) -> None:
        """Join the other nodes: they learn of this one, it learns of the logs, then it takes over some."""
        await self._unless_failed(core.membership.wait_for_others(known=False))
        await self._unless_failed(core.placement.retained_sync.fetch())
        core.broker.store_recovery.recover(await self._store.logs.recover())
        await core.shards.adopt()
        core.placement.coordinator.on_logs_loaded()
        await self._unless_failed(core.membership.wait_for_others(known=True))

    async def _unless_failed(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for this; raises what the node failed with before it was done."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self.failed}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.failed.result()
        finally:
            task.cancel()

    async def _listen(self, parts: NodeParts) -> None:
        for listen in self.config.listen:
            if self.failed.done():  # clients of a node that failed were let go of
                self.failed.result()
            await parts.listeners.open(listen)
        self.addresses = parts.listeners.addresses

    async def _serve(self, core: NodeCore, parts: NodeParts) -> None:
        """Do what a node does that listens: announce itself, run bridges, follow the members, update its clients."""
        await parts.network.connectors.announce(parts.listeners.announced_addresses)
        await parts.network.leader.refresh()
        core.membership.on_followed = lambda: _on_members_followed(parts)
        parts.drain.on_members_followed()  # they may have changed since it joined
        self._tasks.begin("drain", parts.drain.run)
        self._tasks.begin("network", parts.network.leader.run)
        self._update_clients(parts)
        if parts.cluster is not None:
            parts.cluster.connect(parts.reports.heartbeat.serving)
        core.broker.url = next(iter(self.addresses), "")
        await parts.reports.heartbeat.send()

    def _update_clients(self, parts: NodeParts) -> None:
        """Tell clients which nodes serve them, where their connectors are to."""

        async def statuses() -> Mapping[str, Mapping[str, Any]]:
            others = parts.cluster.serving() if parts.cluster is not None else {}
            return {**others, **await self._store.nodes.statuses()}

        updates = ClusterUpdates(node=self.config.node, connectors=parts.listeners.connectors, statuses=statuses)
        if updates.is_needed:
            self._tasks.begin("cluster clients", updates.run)

    # -- running

    async def impose(self, definitions: Definitions, source: str) -> int:
        """Put these in force if the source says something else than it did last time; the version in force.

        They must be such as a file's reader lets through. Raises DefinitionConflict, StoreUnavailable.
        """
        assert self._parts is not None, "the node has not started"
        return await self._parts.routing.impose(definitions, source)

    def health(self) -> NodeHealth:
        """Return the state and the figures of the node for its health port."""
        core, parts = self._core, self._parts
        if core is None or parts is None:
            return STARTING
        disk = core.limits.disk
        state = NodeState(
            failure=f"stopped: {self.failed.exception()}" if self.failed.done() else "",
            listens=parts.listeners.is_open,
            is_draining=bool(parts.drain.state),
            store_answers=core.membership.is_store_writable,
            disk_shortage="" if disk.may_commit else disk.shortage,
            is_settled=core.placement.handoff_in.is_settled,
        )
        return NodeHealth(state, replace(parts.reports.heartbeat.status(), name=self.config.node))

    def _fail(self, error: Exception) -> None:
        self._close_connections()
        if not self.failed.done():
            self.failed.set_exception(error)
            self.failed.exception()  # it is told above, whether anybody asks or not
        self._tasks.cancel()  # they would only tell of what follows from this

    def _close_connections(self) -> None:
        """Take no more clients, and let go of those that are there; tell and hear other nodes no more."""
        if self._parts is not None:
            self._parts.listeners.close_all()
        if self._core is not None:
            self._core.membership.close()

    async def was_expelled(self) -> bool:
        """Return whether it was expelled and its name is still free; asks until the store answers."""
        was_fenced = self.failed.done() and isinstance(self.failed.exception(), Fenced)
        return was_fenced and await self._is_free(self.config.node)

    async def _is_free(self, name: str) -> bool:
        while True:
            with contextlib.suppress(StoreUnavailable):
                return name not in (await self._store.nodes.members())[1]
            await asyncio.sleep(STORE_RETRY_SECONDS)

    # -- stopping

    async def stop(self) -> None:
        """Stop cleanly: no new work, everything asked is stored, then good-bye. One that failed stores nothing more."""
        core, parts = self._core, self._parts
        if core is not None and parts is not None and not self.failed.done():
            await parts.mover.wait(DRAIN_SECONDS)  # other nodes hold the family as long
            await self._drain_before_stop(core, parts)
        if core is None or parts is None or self.failed.done():
            await self.abandon()
            return
        await _leave_other_brokers(parts)
        parts.listeners.stop()
        await _finish_commits(core.broker)
        _close_clients(core.broker)
        await parts.reports.finish()
        await self._end_tasks()
        await self._leave()

    async def _drain_before_stop(self, core: NodeCore, parts: NodeParts) -> None:
        """Hand over what this node owns and let its clients go, so that they miss it for as short as can be."""
        if core.placement.is_alone:
            return

        async def drain() -> None:
            await self._store.nodes.change(lambda records: member_changes.drain(records, self.config.node))
            await self._unless_failed(parts.drain.wait())

        try:
            await asyncio.wait_for(drain(), HANDOVER_SECONDS)
        except RequestRefused as error:
            logger.info("not drained before the stop: %s", error)
        except (TimeoutError, StoreUnavailable):
            logger.warning("the node could not be drained within %g s; it stops without", HANDOVER_SECONDS)
        except (Fenced, NodeIsolated):
            pass  # it is abandoned

    async def abandon(self) -> None:
        """Give up all that a node has that failed, or is not to start any more: what it knew is of no use."""
        self._close_connections()  # what was opened as it failed
        if self._parts is not None:
            await _leave_other_brokers(self._parts)
        await self._end_tasks()
        await self._leave()

    async def _end_tasks(self) -> None:
        self._dispatch_loop.stop()
        if self._parts is not None:
            self._parts.mover.cancel()
        await self._tasks.end()

    async def _leave(self) -> None:
        """Leave the other nodes, and close the connections to the store."""
        if self._core is not None:
            with contextlib.suppress(StoreUnavailable):
                await self._core.membership.leave()
        await self._store.close()
        await self._control.close()


def _on_members_followed(parts: NodeParts) -> None:
    """Take over what one node does for all, where it is this one's turn now."""
    parts.network.leader.request_refresh()
    parts.drain.on_members_followed()
    if parts.cluster is not None:
        parts.cluster.on_members_followed()


async def _leave_other_brokers(parts: NodeParts) -> None:
    """Stop the bridges of networks and the links of the cluster."""
    await parts.network.leader.leave()
    if parts.cluster is not None:
        await parts.cluster.close()


async def _finish_commits(broker: Broker) -> None:
    """Dispatch nothing more, and wait until the store has what clients asked and what their consumers leave."""
    broker.dispatcher.is_stopped = True
    broker.held.close()
    broker.flow_control.close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(broker.commits.drain(), DRAIN_SECONDS)
    broker.consumers.close()  # whatever is not done yet
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(broker.commits.barrier(), CLOSE_SECONDS)


def _close_clients(broker: Broker) -> None:
    for client in list(broker.clients.values()):
        client.sink.flush()
        client.sink.close()
