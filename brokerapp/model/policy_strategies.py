"""Define the strategies of policies for slow consumers and bridges.

Immutable values with ActiveMQ's defaults. Times are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingMessageLimit:
    """Limit of the messages of a topic that may wait for a subscriber beyond its prefetch.

    It is a `constant` number, or a multiple of the prefetch (`prefetchRate`).
    """

    kind: str = "constant"
    limit: int = -1  #: less than nothing: as many as the broker allows at all
    multiplier: float = 0.5


@dataclass(frozen=True, slots=True)
class MessageEviction:
    """Which of the messages that wait for a subscriber go when they are too many: the `oldest`, the oldest of the
    `lowestPriority`, or those followed by another one with the same value of a property (`uniqueProperty`).
    """

    kind: str = "oldest"
    property_name: str = ""
    evict_expired_messages_high_watermark: int = 1000  #: when so many wait, expired ones go before others


@dataclass(frozen=True, slots=True)
class SlowConsumerStrategy:
    """Which slow consumers are cut off.

    `abortSlowConsumer`: who cannot be given what waits for it; `abortSlowAckConsumer`: who has not acknowledged for so
    long. A consumer goes when it was slow for `max_slow_duration` on end, or `max_slow_count` times.
    """

    kind: str = "abortSlowConsumer"
    check_period: int = 30_000
    max_slow_count: int = -1  #: not above 0: does not count
    max_slow_duration: int = 30_000  #: not above 0: does not count
    abort_connection: bool = False  #: the whole connection ends, not the subscription only
    ignore_network_consumers: bool = True
    max_time_since_last_ack: int = 30_000
    ignore_idle_consumers: bool = True  #: those that hold nothing to acknowledge


@dataclass(frozen=True, slots=True)
class NetworkBridgeFilter:
    """Limits of what bridges take from a queue, in addition to the rules of the network (`conditional`).

    A limit holds for each consumer of a bridge: one for all consumers at its other end where they are taken together.
    """

    kind: str = "conditional"
    replay_when_no_consumers: bool = False  #: what came from a broker may go back there if nobody consumes it here
    selector_aware: bool = False  #: consumers here whose selector does not take it do not count
    replay_delay: int = 0  #: when it was here for so long
    rate_limit: int = 0  #: messages that cross in one span of time; 0: any number
    rate_duration: int = 1000  #: the span of time
