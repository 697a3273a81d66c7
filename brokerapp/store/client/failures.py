"""Say in a sentence why a store could not be asked."""

from __future__ import annotations

import os

from redis.exceptions import ConnectionError as ConnectionFailed

from brokerapp.errors import StoreUnavailable, StoreUnreachable
from brokerapp.system.store_address import without_password


def store_failure(error: Exception, url: str) -> StoreUnavailable:
    """Return an error of the driver as one of ours, which names the store and the reason."""
    shown = f"the store at {without_password(url)}"
    if reason := _connection_failure(error):
        return StoreUnreachable(f"{shown} does not answer: {reason}")
    return StoreUnavailable(f"{shown}: {str(error).rstrip('.') or type(error).__name__}")


def _connection_failure(error: Exception) -> str:
    """Return why no connection came about; "" for another error."""
    cause = error.__context__ if isinstance(error, ConnectionFailed) else error
    if not isinstance(cause, OSError) or not cause.errno:
        return ""
    found = os.strerror(cause.errno) if cause.errno > 0 else cause.strerror or str(cause)  # negative: no such host
    return found.lower()
