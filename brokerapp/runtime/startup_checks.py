"""Check other and former nodes on the store of a node that starts, and recovers their logs."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from brokerapp.errors import ConfigurationRefused, StoreUnavailable
from brokerapp.nodes.membership.compatibility import check_compatibility
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.store import LogState
from brokerapp.store.nodes import NODE_TIMEOUT_MS
from brokerapp.store.restored_mark import RestoredMarkStore
from brokerapp.store.server.server_status import ServerStatus
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.members import ShardedMembers
from brokerapp.store.shards.parts import ShardedLogs

logger = logging.getLogger(__name__)

#: Seconds between checks whether replicas confirm changes.
REPLICA_SECONDS = 0.5


async def restored_config(store: BrokerStore, config: NodeConfig) -> NodeConfig:
    """Return the configuration of a node on this store: on a copy of another broker it is in no cluster.

    Raises ConfigurationRefused for a store that was restored from a backup, until an operator says what it is.
    """
    mark = await RestoredMarkStore(store.client).read()
    if mark is None:
        return config
    if mark.refusal:
        raise ConfigurationRefused(mark.refusal)
    logger.warning(
        "this broker is a copy, %s: its network connectors are stopped, and it is in no cluster", mark.origin
    )
    return replace(config, cluster=None, is_copy=True)


async def check_other_nodes(nodes: ShardedMembers, config: NodeConfig) -> None:
    """Raise ConfigurationRefused when this node is not compatible with the live ones, or no member of its cluster."""
    (_, members), living, own = await nodes.members(), await nodes.live_names(), config.node
    others = {name: about for name, about in members.items() if name in living and name != own}
    check_compatibility(own, config.cluster is not None, others)
    if config.cluster is not None:
        config.cluster.member_name(config.broker, config.node_name)


async def wait_for_former_node(nodes: ShardedMembers, config: NodeConfig) -> None:
    """Wait until a former node of this name is certainly gone."""
    while not config.owns_store and (former := (await nodes.statuses()).get(config.node)) is not None:
        if _is_dead_here(former):
            return
        logger.info("the previous node %s (%s) is still running: waiting until it stops", config.node, former["node"])
        await asyncio.sleep(NODE_TIMEOUT_MS / 5000)


async def wait_for_replicas(server: ServerStatus, wanted: int) -> None:
    """Wait until so many replicas confirm changes: they may follow the store, and still load what it has."""
    told = ""
    while wanted:
        try:
            await server.save_replica_count(wanted)
            return
        except StoreUnavailable as error:
            if str(error) != told:
                logger.warning("%s; waiting for them", error)
            told = str(error)
        await asyncio.sleep(REPLICA_SECONDS)


async def recover_logs(logs: ShardedLogs, config: NodeConfig, session: str) -> list[LogState]:
    """Return the logs as the last node left them; none when the broker is to start empty."""
    found = await logs.recover()
    if not config.settings.delete_all_messages_on_startup:
        return found
    for state in found:
        await logs.drop(state.name, session)
    logger.warning("all messages and destinations of the store are deleted (deleteAllMessagesOnStartup, persistent)")
    return []


def _is_dead_here(former: Mapping[str, Any]) -> bool:
    """Whether a node's process ran on this machine and is gone."""
    if former.get("host") != socket.gethostname():
        return False
    try:
        os.kill(former["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(former["pid"] == os.getpid())
