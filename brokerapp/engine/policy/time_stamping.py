"""Time stamping: when a message was sent and until when it holds, by the broker's clock instead of the client's.

ActiveMQ's timeStampingBrokerPlugin: a client whose clock is wrong, or that never lets anything expire, does no harm.
"""

from __future__ import annotations

from brokerapp.model.settings import TimestampSettings


def apply_timestamps(rules: TimestampSettings, timestamp: int | None, expires: int, now: int) -> tuple[int, int]:
    """The timestamp and the expiry (0: never) of a message that a client sent with these; milliseconds."""
    lives = expires - (now if timestamp is None else timestamp) if expires else rules.zero_expiration_override
    if rules.ttl_ceiling:
        lives = min(lives, rules.ttl_ceiling)
    anew = now + lives
    if rules.future_only and anew <= expires:
        return (now if timestamp is None else timestamp), expires
    return now, anew if lives > 0 else expires
