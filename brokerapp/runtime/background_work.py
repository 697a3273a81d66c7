"""Say what a node does as long as it runs: tasks by name. Each is begun again when the store was unavailable."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from brokerapp.connections.tls_renewal import keep_renewed
from brokerapp.runtime.disk_watch import DiskWatch
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.runtime.node_core import NodeCore
from brokerapp.runtime.node_parts import NodeParts
from brokerapp.store.client.libraries import FunctionLibraries
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.disk import StoreDisk
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.system.clock import now_ms
from brokerapp.system.timers import Timers

#: Seconds between two times that a node notes which function library it uses.
LIBRARY_SECONDS = 3600.0


def background_work(
    core: NodeCore,
    parts: NodeParts,
    config: NodeConfig,
    store: BrokerStore,
    control: RedisStore,
    request_dispatch: Callable[[], None],
) -> dict[str, Callable[[], Awaitable[None]]]:
    """Return the tasks that run as long as the node, beside the group commit, by name."""
    broker, membership = core.broker, core.membership
    work_by_name: dict[str, Callable[[], Awaitable[None]]] = {
        "discards": broker.commits.run_discards,
        "reports": parts.reports.run,
        "full trace batches": parts.reports.run_full_batches,
        "timers": partial(run_timers, broker.timers, request_dispatch),
        "signals": lambda: follow_signals(control.signals(), core, parts),
        "beats": membership.run_heartbeat,
        "members": membership.run_watch,
        "moves": membership.run_handoffs,
        "shards": partial(core.shards.run, store.nodes.statuses),
        "families": partial(core.shards.run_moves, parts.mover),
        "requests": parts.requests.run,
        "requests that waited": parts.requests.run_deferred,
        "deletions by clients": parts.deletions.run,
        "libraries": partial(tidy_libraries, store.libraries),
        "certificates": partial(keep_renewed, config.renewed()),
    }
    if parts.cluster is not None:
        work_by_name |= parts.cluster.background_work()
    if config.store_folder is not None:
        watch = DiskWatch(StoreDisk(config.store_folder), core.limits, store.server, broker.flow_control.disk_changed)
        work_by_name["disk"] = watch.run
    return work_by_name


async def run_timers(timers: Timers, request_dispatch: Callable[[], None]) -> None:
    """Call each timer of the broker when its time comes, until cancelled."""
    moved = asyncio.Event()
    timers.moved = moved.set
    while True:
        moved.clear()
        timers.run(now_ms())
        request_dispatch()
        due = timers.next_ms
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), None if due is None else max(0, due - now_ms()) / 1000)


async def follow_signals(signals: AsyncIterator[str], core: NodeCore, parts: NodeParts) -> None:
    """Look at what changed in the store whenever it says so. Raises StoreUnavailable."""
    async for signal in signals:
        if signal in ("definitions", "subscribed"):
            await parts.routing.refresh()
        if signal in ("nodes", "subscribed"):
            core.membership.refresh()
        if signal in ("connectors", "subscribed"):
            parts.network.leader.request_refresh()
        if signal in ("shards", "subscribed"):
            await core.shards.refresh()


async def tidy_libraries(libraries: FunctionLibraries) -> None:
    """Remove function libraries that no node uses, once an hour until cancelled. Raises StoreUnavailable."""
    while True:
        await libraries.remove_unused()
        await asyncio.sleep(LIBRARY_SECONDS)
