"""Reads recorded trace events of single messages. An unreadable trace counts as incomplete; it never raises."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.conf import settings

from analytics.readers.message_trace import TraceReader, TraceSearchResult

logger = logging.getLogger(__name__)

#: Seconds that a page may wait for the trace.
TIMEOUT_SECONDS = 1.0


def events_of(ids: Sequence[str], patience: float = TIMEOUT_SECONDS) -> TraceSearchResult:
    """Return all recorded events of these messages."""
    return _trace().read(ids, patience)


def search(text: str, names: Sequence[str], patience: float = TIMEOUT_SECONDS) -> TraceSearchResult:
    """Find messages that were sent with an id, or a value of one of these properties."""
    return _trace().find(text, names, patience)


def acknowledged_in(ids: Sequence[str]) -> dict[str, set[str]] | None:
    """Return the destinations where each message was acknowledged; None if the trace has none of them."""
    found = events_of(ids)
    if not found.events:
        return None
    done: dict[str, set[str]] = {}
    for event in found.events:
        if event.kind == "ack":
            done.setdefault(event.msg_id, set()).add(event.destination)
    return done


def _trace() -> TraceReader:
    return TraceReader(settings.SLUICE.archive, settings.SLUICE.redis_url, settings.SLUICE.broker_name)
