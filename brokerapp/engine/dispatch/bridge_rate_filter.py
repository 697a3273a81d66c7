"""Limit what bridges take from a queue by its policy (ActiveMQ's conditionalNetworkBridgeFilter).

A message that came from the broker a bridge leads to may go back there when nobody consumes it here any more, and no
more messages cross in a span of time than the policy allows. What may not cross now stays in its place and is offered
again when it may. Decides; the clock and the timer are given to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.routing.bridge_eligibility import BridgeDecision, BridgeEligibility, BridgeRate, SelectorTest

if TYPE_CHECKING:
    from brokerapp.engine.dispatch.subscription import Subscription
    from brokerapp.engine.entries.log_entry import LogEntry
    from brokerapp.model.policy_strategies import NetworkBridgeFilter

#: Milliseconds between two looks at what had to wait, at least: each goes through the window of the queue.
MIN_RETRY_MS = 50


class BridgeRateFilter:
    """Apply the bridge filter of one log. `retry_at` offers everything again at a time (ms since the epoch)."""

    def __init__(
        self, log: str, consumers: Sequence[Subscription], now_ms: Callable[[], int], retry_at: Callable[[int], None]
    ) -> None:
        self._log, self._consumers, self._now_ms, self._retry_at = log, consumers, now_ms, retry_at
        self._retry_ms = 0  # when everything is offered again

    def admit(
        self, bridge: BridgeEligibility, entry: LogEntry, evaluate: SelectorTest, rules: NetworkBridgeFilter | None
    ) -> bool:
        """Let it cross, or not now. What crosses counts."""
        found = self.decide(bridge, entry, evaluate, rules)
        if rules is not None:
            if found is BridgeDecision.CROSSES:
                bridge.rates[self._log].crossed += 1
            elif found is BridgeDecision.TOO_EARLY:
                self._wait_until(_due_ms(entry, rules))
            elif found is BridgeDecision.TOO_FAST:
                self._wait_until(bridge.rates[self._log].until_ms)
        return found is BridgeDecision.CROSSES

    def decide(
        self, bridge: BridgeEligibility, entry: LogEntry, evaluate: SelectorTest, rules: NetworkBridgeFilter | None
    ) -> BridgeDecision:  # fmt: skip
        """Return whether a message may cross now, or why not."""
        path = entry.message.path
        if rules is None:
            return bridge.verdict(path, evaluate)
        found = bridge.verdict(path, evaluate, lambda: self._decide_return(entry, evaluate, rules))
        if found is BridgeDecision.CROSSES and self._is_too_fast(bridge, rules):
            return BridgeDecision.TOO_FAST
        return found

    def _decide_return(self, entry: LogEntry, evaluate: SelectorTest, rules: NetworkBridgeFilter) -> BridgeDecision:
        if not rules.replay_when_no_consumers:
            return BridgeDecision.CAME_FROM_THERE
        if any(_takes(each, evaluate, rules) for each in self._consumers):
            return BridgeDecision.CONSUMED_HERE
        return BridgeDecision.TOO_EARLY if _due_ms(entry, rules) > self._now_ms() else BridgeDecision.CROSSES

    def _is_too_fast(self, bridge: BridgeEligibility, rules: NetworkBridgeFilter) -> bool:
        rate, now = bridge.rates.setdefault(self._log, BridgeRate()), self._now_ms()
        if rate.until_ms <= now:
            rate.until_ms, rate.crossed = now + rules.rate_duration, 0
        return 0 < rules.rate_limit <= rate.crossed

    def _wait_until(self, ms: int) -> None:
        now = self._now_ms()
        ms = max(ms, now + MIN_RETRY_MS)
        if not now < self._retry_ms <= ms:
            self._retry_ms = ms
            self._retry_at(ms)


def _takes(consumer: Subscription, evaluate: SelectorTest, rules: NetworkBridgeFilter) -> bool:
    """Return whether this broker's own consumer takes the message, as far as the policy cares."""
    selector = consumer.selector
    if isinstance(selector, BridgeEligibility):
        return False
    return not rules.selector_aware or selector is None or evaluate(selector)


def _due_ms(entry: LogEntry, rules: NetworkBridgeFilter) -> int:
    return entry.message.born_us // 1000 + rules.replay_delay
