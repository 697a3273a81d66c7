"""Define how a queue dispatches its messages, from ActiveMQ's policy options."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.engine.dispatch.message_groups import CACHED, GroupMapSettings, parse_group_map
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.policy_strategies import NetworkBridgeFilter

#: Milliseconds a queue waits for the consumers it wants before it starts, when its policy names no time (ActiveMQ's).
DEFAULT_START_DELAY_MS = 1_000


@dataclass(frozen=True, slots=True)
class DispatchPolicy:
    """Hold the dispatch options of one queue."""

    prioritized: bool = False  #: messages of a higher JMSPriority overtake those of a lower one
    strict_order: bool = False  #: one consumer is filled before the next gets any: no turns
    consumer_priority: bool = True  #: consumers of a higher priority come first
    consumers_first: int = 0  #: consumers that must be there before the first message goes out
    wait_ms: int = 0  #: how long the first consumer waits for others
    groups: GroupMapSettings = CACHED
    bridge_filter: NetworkBridgeFilter | None = None  #: what they may take

    @property
    def start_delay_ms(self) -> int:
        """Return how long the first consumer waits for others before dispatch starts; 0: not at all."""
        return self.wait_ms or (DEFAULT_START_DELAY_MS if self.consumers_first > 1 else 0)

    def has_enough_consumers(self, consumers: int) -> bool:
        """Return whether enough consumers are there to start before the delay is over."""
        return 0 < self.consumers_first <= consumers


DEFAULT_DISPATCH_POLICY = DispatchPolicy()


def dispatch_policy_of(policy: PolicyEntry | None) -> DispatchPolicy:
    """Read the dispatch options of a policy."""
    if policy is None:
        return DEFAULT_DISPATCH_POLICY
    return DispatchPolicy(
        prioritized=bool(policy.prioritized_messages),
        strict_order=bool(policy.strict_order_dispatch),
        consumer_priority=policy.use_consumer_priority is not False,
        consumers_first=policy.consumers_before_dispatch_starts or 0,
        wait_ms=policy.time_before_dispatch_starts or 0,
        groups=parse_group_map(policy.message_group_map_factory_type),
        bridge_filter=policy.network_bridge_filter,
    )
