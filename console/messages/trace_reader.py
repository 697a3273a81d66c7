"""The console's look at the recorded trace of single messages. What it cannot read it says; it never fails a page."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.conf import settings

from analytics.readers.message_trace import TraceReader, TraceSearchResult

logger = logging.getLogger(__name__)

#: Seconds for the messages of one page.
PATIENCE = 1.0


def events_of(ids: Sequence[str], patience: float = PATIENCE) -> TraceSearchResult:
    """All that was recorded of these messages."""
    return _trace().of(ids, patience)


def search(text: str, names: Sequence[str], patience: float = PATIENCE) -> TraceSearchResult:
    """What was sent with this id, or this value of one of these properties."""
    return _trace().find(text, names, patience)


def processed(ids: Sequence[str]) -> dict[str, set[str]] | None:
    """Where each of these messages was acknowledged; None when the trace knows nothing of any of them."""
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
