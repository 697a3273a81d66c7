"""Decide whether and when a failed message is redelivered, by ActiveMQ's redelivery policy. Pure."""

from __future__ import annotations

from brokerapp.model.definitions import RedeliveryPolicy

#: `maximum_redeliveries` without end, and `maximum_redelivery_delay` without a limit.
UNLIMITED = -1
#: What a back-off without a maximum stops at, milliseconds: a year.
LONGEST_DELAY_MS = 365 * 86_400_000


def may_be_redelivered(policy: RedeliveryPolicy, failures: int) -> bool:
    """Whether a message that failed so many times gets another chance."""
    return policy.maximum_redeliveries == UNLIMITED or failures <= policy.maximum_redeliveries


def delay_ms(policy: RedeliveryPolicy, failures: int, chance: float = 0.0) -> int:
    """Milliseconds until a message that failed so many times (at least once) is given out again.

    `chance`, from -1 to 1, is how far collision avoidance moves it, which leaves the first redelivery as it is.
    """
    if failures <= 1:
        return policy.initial_redelivery_delay
    delay = float(policy.redelivery_delay)
    if policy.use_exponential_back_off and policy.back_off_multiplier > 1 and policy.initial_redelivery_delay > 0:
        delay = _backed_off(policy, failures)
    if policy.use_collision_avoidance:
        delay += delay * chance * policy.collision_avoidance_percent / 100
    return max(0, int(delay))


def _backed_off(policy: RedeliveryPolicy, failures: int) -> float:
    """The first delay, multiplied for each failure but the first; never more than the maximum."""
    limit = policy.maximum_redelivery_delay
    ceiling = max(limit, policy.redelivery_delay) if limit != UNLIMITED else LONGEST_DELAY_MS
    delay = float(policy.initial_redelivery_delay)
    for _ in range(failures - 1):
        delay *= policy.back_off_multiplier
        if delay > ceiling:
            return float(ceiling)
    return delay
