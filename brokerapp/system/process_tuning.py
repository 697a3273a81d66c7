"""Tune Python and its allocator for a process that runs a node."""

from __future__ import annotations

import gc
import sys

from brokerapp.system.allocator import keep_freed_memory

#: New objects after which Python looks for cycles. A node keeps many and makes hardly any cycles: at the interpreter's
#: own 700 the search took a fifth of its time.
COLLECT_AFTER = (200_000, 20, 100)

#: Seconds after which a thread beside the event loop, such as one that checks a password, gives way to it.
SWITCH_SECONDS = 0.0005


def tune_process() -> None:
    """Set them for the whole process."""
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    keep_freed_memory()
