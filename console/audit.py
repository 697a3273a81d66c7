"""The audit trail: every change and every denial leaves one entry."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from brokerapp.errors import BrokerError, StoreUnavailable
from console.models import AuditEntry

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Change:
    """What the block under `recording` fills in."""

    before: Any = None
    after: Any = None


@contextmanager
def recording(request: HttpRequest, action: str, object: object, before: Any = None) -> Iterator[Change]:
    """Record the change made by the block: as done, or as refused or failed when it raises BrokerError."""
    change = Change(before)
    try:
        yield change
    except BrokerError as error:
        outcome = "failed" if isinstance(error, StoreUnavailable) else "refused"
        _write(request, action, object, change, outcome, str(error))
        raise
    _write(request, action, object, change, "done", "")


def denied(request: HttpRequest, action: str, object: object, reason: str) -> None:
    """Record that somebody asked for what they have no right to."""
    _write(request, action, object, Change(), "denied", reason)


def _write(request: HttpRequest, action: str, object: object, change: Change, outcome: str, detail: str) -> None:
    who, address = request.user.get_username(), request.META.get("REMOTE_ADDR", "") or ""
    AuditEntry.objects.create(
        who=who,
        address=address,
        action=action,
        object=str(object)[:500],
        before=change.before,
        after=change.after,
        outcome=outcome,
        detail=detail,
    )
    logger.info("%s from %s: %s %s: %s %s", who, address, action, object, outcome, detail)
