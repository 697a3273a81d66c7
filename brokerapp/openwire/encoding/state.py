"""What encoder and decoder of one connection know besides the bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from brokerapp.openwire.encoding.value_cache import ReceivedValues, SentValues


@dataclass(slots=True)
class WireState:
    """What was agreed upon with the peer, and what both remember where they agreed upon caches."""

    #: Whether exceptions come with stack traces and causes.
    stack_traces: bool = False
    sent: SentValues = field(default_factory=SentValues)
    received: ReceivedValues = field(default_factory=ReceivedValues)
