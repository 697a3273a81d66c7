"""Compute how long to wait for processes on a busy machine."""

from __future__ import annotations

import os


def load_per_processor() -> float:
    """Return the load average per processor, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def scaled_timeout(seconds: float) -> float:
    """Return a timeout for this machine from one for an idle machine."""
    return seconds * load_per_processor()


def describe_load() -> str:
    """Describe the load of the machine."""
    return f"{load_per_processor():.1f} processes want each processor"
