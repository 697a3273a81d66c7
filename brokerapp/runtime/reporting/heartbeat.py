"""Write the status of a node for the other nodes and for operators, once a second."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from brokerapp.admin.handlers.connection_reports import connection_counts, connection_of, is_listed
from brokerapp.core.ports import BrokerContext, RoutingPort
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.quotas import Quotas
from brokerapp.model.stats_records import ListenerStats, NodeStatus
from brokerapp.store import StoreLimits
from brokerapp.store.memory_limits import server_limit
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.system.clock import now_ms

#: Connections listed in a node's status.
MAX_LISTED_CONNECTIONS = 1_000


class OpenListeners(Protocol):
    """Where a node listens for clients."""

    @property
    def addresses(self) -> list[str]: ...

    def stats(self) -> list[ListenerStats]: ...


class StoreStatus:
    """Describes the store as a node sees it. `rollbacks`: those of the store so far; another one ends the node."""

    def __init__(
        self, *, context: BrokerContext, store: BrokerStore, limits: StoreLimits, rollbacks: Mapping[str, int]
    ) -> None:
        self._commits, self._settings = context.commits, context.settings
        self._store, self.limits, self._rollbacks = store, limits, rollbacks

    async def read(self) -> dict[str, Any]:
        """Return the use and the limits of the store, after reading how much memory its server has left."""
        limits, memory = self.limits, await self._store.server.memory()
        limits.server, of_all = server_limit(memory), self._commits.limits
        return {
            **memory, "message_limit": of_all.total, "temp_limit": of_all.temp or of_all.total,
            "temp_used": self._commits.temp, "kept": self._settings.keeps_messages,
            "disk": limits.disk.to_json(), "replicas_wanted": self._store.client.replicas, **self._rollbacks,
        }  # fmt: skip


class NodeHeartbeat:
    """Writes the status of a node. `sections` are the fields of NodeStatus that other parts of the node describe."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        listeners: OpenListeners,
        clients: Mapping[str, Client],
        quotas: Quotas,
        routing: RoutingPort,
        store: StoreStatus,
        sections: Mapping[str, Callable[[], Any]],
        write: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._context, self._listeners, self._clients = context, listeners, clients
        self._quotas, self._routing, self._store = quotas, routing, store
        self._sections, self._write = sections, write
        self._started_ms = now_ms()
        self._store_status: dict[str, Any] = {}  # as it was read last

    def serving(self) -> dict[str, Any]:
        """Return where this node serves clients, as its status says it."""
        return {"host": socket.gethostname(), "listeners": [each.to_json() for each in self._listeners.stats()]}

    async def send(self) -> None:
        """Write the node's status, unless there is no disk space for it."""
        if not self._store.limits.disk.may_report:
            return
        self._store_status = await self._store.read()
        await self._write({**self.status().to_json(), "host": self.serving()["host"], "pid": os.getpid()})

    def status(self) -> NodeStatus:
        """Return the node's status, with that of the store as it was read last."""
        trace = self._context.tracer
        clients = list(filter(is_listed, self._clients.values()))
        listed = itertools.islice(clients, MAX_LISTED_CONNECTIONS)
        return NodeStatus(
            node=self._context.session,
            broker=self._context.name,
            started_ms=self._started_ms,
            seen_ms=now_ms(),
            address=self._listeners.addresses,
            listeners=self.serving()["listeners"],
            connections=[connection_of(client).to_json() for client in listed],
            connected=connection_counts(clients),
            trace={"recorded": trace.recorded, "dropped": trace.dropped, "pending": trace.pending},
            store=self._store_status,
            memory={"used": self._quotas.held_bytes, "limit": self._quotas.memory},
            definitions=self._routing.table.definitions.version,
            **{field: describe() for field, describe in self._sections.items()},
        )
