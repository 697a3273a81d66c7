"""Build the broker of a node on its store, with its limits, its shards and its membership."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from brokerapp.core.assembly import AssembledBroker
from brokerapp.core.broker import Broker
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.model.definitions import Definitions
from brokerapp.nodes.assembly import NodeAssembly
from brokerapp.nodes.links.members import RUNNING_VERSION
from brokerapp.nodes.membership.compatibility import CLUSTERED
from brokerapp.nodes.membership.membership import NodeMembership
from brokerapp.nodes.placement import NodePlacement
from brokerapp.runtime.dispatch_loop import DispatchLoop
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.runtime.shards.node_shards import NodeShards
from brokerapp.store import StoreLimits
from brokerapp.store.memory_limits import store_limit
from brokerapp.store.server.durability import REMEDY, durability_loss
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.tracing.recorder import NullTraceRecorder, TraceRecorder
from brokerapp.version import VERSION

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeCore:
    """The broker of a node, the limits and shards of its store, and what makes it one of the broker's nodes."""

    broker: Broker
    limits: StoreLimits
    shards: NodeShards
    placement: NodePlacement
    membership: NodeMembership

    @property
    def is_eldest(self) -> bool:
        """Return whether this node joined first of all that are there."""
        return _is_eldest(self.placement)


async def build_core(
    config: NodeConfig, session: str, store: BrokerStore, definitions: Definitions, dispatch_loop: DispatchLoop
) -> NodeCore:
    """Build the broker of a node that has not joined yet, with what the store holds now. Raises StoreUnavailable."""
    nodes = NodeAssembly(request_dispatch=dispatch_loop.request, can_dispatch=dispatch_loop.can_dispatch)
    placement = nodes.placement
    limits = await _limits(config, store, lambda log: broker.limits.of_log(log))
    shards = NodeShards(store, limits, lambda: _is_eldest(placement))
    recorder = TraceRecorder(config.broker) if config.trace else NullTraceRecorder(config.broker)
    broker = AssembledBroker(
        config.broker, session, store, shards.stores(), store.shard_record, dispatch_loop.run, recorder, definitions,
        nodes, config.settings, AuthorizationMap(config.grants) if config.grants is not None else None,
    )  # fmt: skip
    await shards.attach(broker.commits_builder, broker.shard_placement)
    membership = NodeMembership(
        store=store.nodes, name=config.node, host=config.link_host, timeout_ms=config.node_timeout_ms,
        placement=placement, is_exclusive=config.owns_store,
        tls=config.link_tls.latest if config.link_tls is not None else None,
        about={CLUSTERED: config.cluster is not None, RUNNING_VERSION: VERSION},
    )  # fmt: skip
    dispatch_loop.attach(broker.dispatcher, placement, membership)
    return NodeCore(broker, limits, shards, placement, membership)


async def _limits(config: NodeConfig, store: BrokerStore, of_log: Callable[[str], int]) -> StoreLimits:
    """Return the limits of the store, and warn where its server may lose what it confirmed."""
    memory = await store.server.memory()
    if found := durability_loss({**memory, "kept": config.settings.keeps_messages}):
        logger.warning("not durable: %s; %s", found, REMEDY)
    total = store_limit(config.store_limit, memory)
    temp = min(config.temp_limit, total) if total else config.temp_limit
    return StoreLimits(total=total, temp=temp, of_log=of_log)


def _is_eldest(placement: NodePlacement) -> bool:
    peers = placement.peers
    return bool(peers.members.eldest == peers.session)
