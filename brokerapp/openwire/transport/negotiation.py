"""What this side offers of OpenWire. Pure."""

from __future__ import annotations

from brokerapp.model.transport_connector import ConnectionLimits
from brokerapp.openwire.wire_format_options import WireFormatOptions

#: Milliseconds after which a peer that says nothing is given up, and before the first look at that (ActiveMQ's).
MAX_INACTIVITY_MS, INITIAL_DELAY_MS = 30_000, 10_000
#: The largest frame that can be announced: a Java long. ActiveMQ announces no other.
ANY_FRAME_SIZE = 2**63 - 1


def own_options(limits: ConnectionLimits) -> WireFormatOptions:
    """Return what this side offers: neither the tight encoding nor the cache, which no client needs."""
    return WireFormatOptions(
        tcp_no_delay_enabled=True,
        max_inactivity_duration=MAX_INACTIVITY_MS,
        max_inactivity_duration_initial_delay=INITIAL_DELAY_MS,
        max_frame_size=limits.max_frame or ANY_FRAME_SIZE,
        provider_name="ActiveMQ",
        provider_version="5.17.2",
    )
