"""Waiting for conditions, as tests of every kind do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds after which a test stops waiting: a broker may take ten to be linked on a busy machine.
PATIENCE = 30.0


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Return the first true value of the condition; fail if there is none in time.

    Evaluating the condition takes at most half of a processor.
    """
    began = time.monotonic()
    deadline = began + seconds
    while not (value := condition()):
        evaluated = time.monotonic()
        assert evaluated < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(max(0.005, evaluated - began))
        began = time.monotonic()
    return value
