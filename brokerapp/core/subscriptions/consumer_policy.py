"""Read from the policy of a destination what its consumers may hold, unless they say otherwise. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.core.flow_control.limits import MESSAGE_BYTES
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.eviction import pending_limit
from brokerapp.engine.entries.pending_messages import MAX_PENDING_BYTES
from brokerapp.engine.policy.send_timeout import memory_limit_of
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination, DestinationKind

#: What ActiveMQ lets a consumer hold unacknowledged when nobody says otherwise.
DEFAULT_PREFETCH = {
    DestinationKind.QUEUE: 1000,
    DestinationKind.TEMP_QUEUE: 1000,
    DestinationKind.TOPIC: 32767,
    DestinationKind.TEMP_TOPIC: 32767,
    DestinationKind.SUBSCRIPTION: 100,
}
#: Fields of a policy that replace it.
_PREFETCH_FIELDS = {
    DestinationKind.QUEUE: "queue_prefetch",
    DestinationKind.TEMP_QUEUE: "queue_prefetch",
    DestinationKind.TOPIC: "topic_prefetch",
    DestinationKind.TEMP_TOPIC: "topic_prefetch",
    DestinationKind.SUBSCRIPTION: "durable_topic_prefetch",
}


def default_prefetch(policy: PolicyEntry | None, destination: Destination, *, is_named: bool) -> int:
    """Return how many messages a consumer may hold when it does not say."""
    kind = DestinationKind.SUBSCRIPTION if is_named else destination.kind
    by_policy: int | None = getattr(policy, _PREFETCH_FIELDS[kind]) if policy else None
    return DEFAULT_PREFETCH[kind] if by_policy is None else by_policy


def is_exclusive(policy: PolicyEntry | None, options: Mapping[str, str]) -> bool:
    """Return whether a consumer is to be the only one of its queue that is given messages."""
    by_default = str(bool(policy and policy.all_consumers_exclusive_by_default))
    return options.get("exclusive", by_default).lower() == "true"


def limit_pending(subscription: Subscription, policy: PolicyEntry | None, wanted: int) -> None:
    """Limit how many messages of topics may wait for a subscription, which itself asked for at most `wanted`."""
    limit = policy.pending_message_limit if policy else None
    subscription.pending.max_count = pending_limit(limit, subscription.prefetch, wanted)
    bound = memory_limit_of(policy).bytes
    subscription.pending.max_bytes = MAX_PENDING_BYTES + bound  # its producers wait before anything goes
    if limit is None:
        subscription.pending.max_count += bound // MESSAGE_BYTES
    subscription.pending.eviction = policy.message_eviction if policy else None
