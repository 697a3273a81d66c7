"""What encoder and decoder of one connection know besides the bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WireState:
    """What was agreed upon with the peer."""

    #: Whether exceptions come with stack traces and causes.
    stack_traces: bool = False
