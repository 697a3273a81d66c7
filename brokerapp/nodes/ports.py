"""Ports of what joins the nodes of one broker: this node's parts, and the ownership of logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from brokerapp.core.ports import (
    Commits,
    Counters,
    DestinationRemovalPort,
    DispatcherPort,
    GaugesPort,
    Placement,
    QueueLifecycle,
    Replies,
    RoutingPort,
    TemporaryRecovery,
)
from brokerapp.core.ports.clients import Authorizer
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.model.settings import Settings
from brokerapp.system.timers import Timers
from brokerapp.tracing.recorder import TraceRecorder


class LocalBroker(Protocol):
    """The parts of this node's broker that its dealings with other nodes use."""

    name: str
    session: str
    settings: Settings
    timers: Timers
    tracer: TraceRecorder
    clients: Mapping[str, Client]
    commits: Commits
    counters: Counters
    authorizer: Authorizer
    dispatcher: DispatcherPort
    gauges: GaugesPort
    placement: NodeOwnership
    queues: QueueLifecycle
    removal: DestinationRemovalPort
    replies: Replies
    routing: RoutingPort
    temporaries: TemporaryRecovery
    # parts of which only nodes use more than the ports say
    advisories: Any
    bridges: Any
    connections: Any
    consumers: Any
    dead_letters: Any
    duplicates: Any
    durables: Any
    flow_control: Any
    reconnect_window: Any
    retained: Any
    scheduled_jobs: Any
    store_recovery: Any
    subscriptions: Any


class NodeOwnership(Placement, Protocol):
    """Which node owns each log, and what is said to the others."""

    session: str
    members: Any
    is_joining: bool
    # parts that only other parts of the nodes use
    outbound_consumers: Any
    inbound_consumers: Any
    append_notices: Any
    remote_appends: Any
    remote_deliveries: Any
    propagation: Any
    handoff_in: Any
    handoff_out: Any
    depth_recount: Any
    subscription_takeover: Any
    subscription_removal: Any

    def owner_of(self, log: str) -> str: ...

    def is_linked(self, session: str) -> bool: ...

    def unsent_bytes(self, session: str) -> int: ...

    def reconnect(self, session: str) -> None: ...

    def send_to_owner(self, log: str, message_type: int, *fields: Any) -> None: ...

    def attach_transport(self, transport: Any) -> None: ...

    def join(self, members: Any) -> None: ...

    def on_members_changed(self, members: Any) -> None: ...

    def on_log_added(self, log: MessageLog) -> None: ...
