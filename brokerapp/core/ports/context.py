"""Define what every part of the broker is given."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.core.ports.commits import Commits
from brokerapp.core.ports.counters import Counters
from brokerapp.model.settings import Settings
from brokerapp.system.timers import Timers
from brokerapp.tracing.recorder import TraceRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerContext:
    """Identity, settings and services of one node, shared by all parts of its broker."""

    name: str
    session: str  #: tells this run of the node from all others; message-ids begin with it
    settings: Settings
    timers: Timers
    commits: Commits
    tracer: TraceRecorder
    counters: Counters
