"""Time stamps: the broker's time in place of the producer's, and bounds for times to live. Pure.

ActiveMQ's timeStampingBrokerPlugin: a message lives, from now on, as long as its producer wanted it to live from its
own time on.
"""

from __future__ import annotations

from brokerapp.settings import TimeStamping


def stamped(plugin: TimeStamping, now_ms: int, timestamp: int | None, expires: int) -> tuple[int | None, int]:
    """Timestamp and expiry of a message that comes with these (None: it says no time), milliseconds since the epoch."""
    if timestamp is not None and timestamp <= 0:  # its producer wants none
        return timestamp, expires
    sent_ms = now_ms if timestamp is None else timestamp
    to_live = expires - sent_ms if expires > 0 else plugin.zero_expiration_override
    if to_live > plugin.ttl_ceiling > 0:
        to_live = plugin.ttl_ceiling
    if plugin.future_only and now_ms + to_live <= expires:
        return timestamp, expires
    return now_ms, now_ms + to_live if to_live > 0 else expires
