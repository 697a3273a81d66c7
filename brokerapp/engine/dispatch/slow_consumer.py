"""Decide which consumers are slow, and when a policy acts on one. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.policy_strategies import SlowConsumerStrategy


def is_slow(subscription: Subscription) -> bool:
    """Return whether messages wait that the consumer cannot get: it has no credit, or its socket is full."""
    if not subscription.started or (subscription.credit > 0 and not subscription.client.is_socket_full):
        return False
    return bool(subscription.pending) or any(log.ready or log.unloaded_count for log in subscription.logs)


@dataclass(slots=True)
class SlowConsumerState:
    """Hold what was observed of one consumer; times are milliseconds since the epoch."""

    checked_ms: int
    acked_ms: int  #: when it was last seen to have acknowledged something
    acked: int = 0  #: what it had acknowledged then
    slow_since_ms: int | None = None
    slow_count: int = 0  #: it became slow

    def update(self, subscription: Subscription, strategy: SlowConsumerStrategy | None, now_ms: int) -> bool:
        """Observe the consumer; return whether it became slow."""
        if subscription.acked_count != self.acked or (not subscription.unacked and _ignores_idle(strategy)):
            self.acked, self.acked_ms = subscription.acked_count, now_ms
        if strategy is not None and strategy.kind == "abortSlowAckConsumer":
            slow = now_ms - self.acked_ms > strategy.max_time_since_last_ack
        else:
            slow = is_slow(subscription)
        became = slow and self.slow_since_ms is None
        if became:
            self.slow_since_ms = now_ms
            self.slow_count += 1
        elif not slow:
            self.slow_since_ms = None
        return became

    def should_abort(self, strategy: SlowConsumerStrategy, now_ms: int) -> bool:
        """Return whether it was slow too long, or too often, when this is checked."""
        if now_ms - self.checked_ms < strategy.check_period:
            return False
        self.checked_ms = now_ms
        if self.slow_since_ms is None:
            return False
        too_long = 0 < strategy.max_slow_duration <= now_ms - self.slow_since_ms
        return too_long or 0 < strategy.max_slow_count <= self.slow_count


def _ignores_idle(strategy: SlowConsumerStrategy | None) -> bool:
    return strategy is None or strategy.ignore_idle_consumers
