"""What this side offers of OpenWire, and what follows from what both sides agree upon. Pure."""

from __future__ import annotations

from brokerapp.model.transport_connector import HEART_BEAT_FLOOR_MS, ConnectionLimits
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.wire_format_options import WireFormatOptions

#: The largest frame that can be announced: a Java long. ActiveMQ announces it where no limit is configured.
ANY_FRAME_SIZE = 2**63 - 1
#: Values that a cache holds, as ActiveMQ announces it.
CACHE_SIZE = 1024
#: The longest frame, bytes, of a client that has not logged in: what it says of itself is short.
MAX_LOGIN_FRAME_SIZE = 64 * 1024
#: The same of a broker that announced its bridge: it may list its durable subscriptions first, some thousands.
MAX_BRIDGE_LOGIN_FRAME_SIZE = 1024 * 1024
#: Pauses in which this side says something, as a part of the time after which it would be given up: ActiveMQ's client
#: looks once in that time whether something came since it last looked, so pauses must be well below.
KEEP_ALIVE_SHARE = 1 / 3


def own_options(limits: ConnectionLimits) -> WireFormatOptions:
    """Return what this side offers."""
    settings = limits.openwire
    return WireFormatOptions(
        version=settings.version,
        tight_encoding_enabled=settings.tight_encoding,
        cache_enabled=settings.cache,
        cache_size=CACHE_SIZE,
        stack_trace_enabled=True,
        tcp_no_delay_enabled=True,
        max_inactivity_duration=settings.max_inactivity_ms,
        max_inactivity_duration_initial_delay=settings.initial_delay_ms,
        max_frame_size=limits.max_frame or ANY_FRAME_SIZE,
        provider_name="ActiveMQ",
        provider_version="5.17.2",
    )


def codec_for(agreed: WireFormatOptions) -> Codec:
    """Return the codec of a connection. It sends frames of any size: a message that a client took is delivered."""
    return Codec(
        agreed.version,
        max_frame_size=ANY_FRAME_SIZE,
        stack_trace_enabled=agreed.stack_trace_enabled,
        tight=agreed.tight_encoding_enabled,
        cached=agreed.cache_enabled,
    )


def keep_alive_times(agreed: WireFormatOptions) -> tuple[int, int]:
    """Return after how many milliseconds something must have been sent, and received; 0 for never."""
    interval = agreed.max_inactivity_duration
    if interval <= 0:
        return 0, 0
    return max(HEART_BEAT_FLOOR_MS, int(interval * 2 * KEEP_ALIVE_SHARE)), max(HEART_BEAT_FLOOR_MS, interval)
