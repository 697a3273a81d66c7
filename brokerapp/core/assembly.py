"""Builds the broker of a node from its parts.

The parts use each other in circles: who acknowledges wakes the dispatcher, which drops what expired, which counts as
acknowledged. So all of them are allocated first, and then initialised, each with the parts that its constructor names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import get_type_hints

from brokerapp.core.broker import Broker, BrokerParts
from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.engine.clients.quotas import Quotas
from brokerapp.engine.dispatch.selector_cache import SelectorCache, SelectorCachePolicy
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.model.commands import (
    AbortCommand,
    AckBatchCommand,
    BeginCommand,
    CommitCommand,
    SendBatchCommand,
    SettleCommand,
    SubscribeCommand,
    UnsubscribeCommand,
)
from brokerapp.model.definitions import Definitions
from brokerapp.model.settings import DEFAULT_SETTINGS, Settings
from brokerapp.nodes.ownership.coordinator import OwnershipCoordinator
from brokerapp.nodes.ownership.orphaned_temporaries import OrphanedTemporaries
from brokerapp.store import StoreLimits
from brokerapp.system import clock
from brokerapp.tracing.recorder import TraceRecorder

#: Milliseconds between two looks for remembered selectors that nobody used for too long.
SELECTOR_EXPIRY_MS = 10_000


def assemble(
    name: str,
    session: str,
    store: CommitStore,
    limits: StoreLimits,
    after_batch: Callable[[], None],
    tracer: TraceRecorder,
    definitions: Definitions,
    settings: Settings = DEFAULT_SETTINGS,
    access: AuthorizationMap | None = None,
) -> Broker:
    """Build the broker of a node. `session` tells this run of the node from all others; message-ids begin with it."""
    broker = Broker(name, session, settings, tracer)
    broker.quotas, broker.placement = Quotas(settings.memory_limit), OwnershipCoordinator.__new__(OwnershipCoordinator)
    parts = get_type_hints(BrokerParts)
    vars(broker).update({name: part.__new__(part) for name, part in parts.items()})
    ports = {
        **vars(broker),
        "context": broker.context(),
        "access": access,
        "store": store,
        "store_limits": limits,
        "after_batch": after_batch,
        "is_followed": broker.writer.is_followed,
        "announce": lambda declarations: broker.placement.propagation.declare_logs(declarations),
        "on_batch": broker.flow_control.on_batch,
        "definitions": definitions,
        "is_wanted": broker.queues.is_wanted,
        "on_added": broker.advisories.destination_added,
        "on_removed": broker.advisories.destination_removed,
        "on_too_many": broker.idle_destinations.bound_topics,
        "orphans": OrphanedTemporaries(broker),
        "selectors": _cache(settings),
        "send_message": broker.scheduler.send if settings.scheduler_support else broker.publisher.send,
        "url": lambda: broker.url,
    }
    broker.placement.__init__(broker)
    for part in parts:
        _initialise(ports[part], ports)
    broker.commands = _handlers(broker)
    _start(broker)
    return broker


def _initialise(part: object, ports: dict[str, object]) -> None:
    """Call the constructor of an allocated part with the ports that it names."""
    initialise = type(part).__init__
    wanted = [each for each in inspect.signature(initialise).parameters if each != "self"]
    initialise(part, **{each: ports[each] for each in wanted})


def _handlers(broker: Broker) -> dict:
    """Return which part does what a client asks."""
    return {
        SendBatchCommand: broker.batches.send,
        SubscribeCommand: broker.subscriptions.subscribe,
        UnsubscribeCommand: broker.subscriptions.unsubscribe,
        SettleCommand: broker.acknowledgements.settle,
        AckBatchCommand: broker.acknowledgements.settle_run,
        BeginCommand: broker.transactions.begin,
        CommitCommand: broker.transactions.commit,
        AbortCommand: broker.transactions.abort,
    }


def _start(broker: Broker) -> None:
    """Start what the parts do periodically."""
    selectors = broker.settings.selector_cache
    if selectors is not None and selectors.expire_after:
        expire = broker.queues.remembering.expire
        broker.timers.call_every(SELECTOR_EXPIRY_MS, lambda: expire(broker.queues), clock.now_ms())
    broker.expiration.apply_policies()
    broker.slow_consumers.watch()
    broker.scheduled_jobs.start()
    broker.idle_destinations.watch()


def _cache(settings: Settings) -> SelectorCache | None:
    wanted = settings.selector_cache
    if wanted is None:
        return None
    return SelectorCache(
        SelectorCachePolicy(
            single=wanted.single_selector_per_destination,
            ignore_wildcards=wanted.ignore_wildcard_selectors,
            persist_interval_ms=wanted.persist_interval,
            expire_after_ms=wanted.expire_after,
        )
    )
