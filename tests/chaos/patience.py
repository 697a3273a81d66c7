"""Compute how long to wait for processes on a busy machine."""

from __future__ import annotations

import os


def crowding() -> float:
    """Processes that want to run, for each processor; 1 where each has one."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def scaled(seconds: float) -> float:
    """As long as this takes on a machine that has nothing else to do."""
    return seconds * crowding()


def crowd() -> str:
    """How busy the machine is, in words."""
    return f"{crowding():.1f} processes want each processor"
