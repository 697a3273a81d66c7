"""Queue rows that a worker has to process at a time of their own, and again after a failure or a lost worker."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from brokerapp.errors import StoreUnavailable
from console.broker.task_queue import enqueue

logger = logging.getLogger(__name__)


def enqueue_due(rows: QuerySet, when: str, task: str, now: datetime, lost: float, most: int | None = None) -> None:
    """Queue tasks for the rows whose field `when` has passed, the earliest first, at most `most`.

    Each is due again after `lost` seconds, in case its worker is lost. Of two concurrent callers one gets a row.
    """
    for row in rows.filter(**{f"{when}__lte": now}).order_by(when)[:most]:
        taken = rows.filter(pk=row.pk, **{when: getattr(row, when)})
        if taken.update(**{when: now + timedelta(seconds=lost)}):
            try:
                enqueue(task, row.pk)
            except StoreUnavailable as error:
                logger.warning("%s waits for a worker: %s", row._meta.verbose_name, error)
                return


def next_attempt_at(attempts: int, retries: Sequence[float], now: datetime) -> datetime | None:
    """Return when the next attempt is due after a number of failed ones; None if none is left."""
    return None if attempts > len(retries) else now + timedelta(seconds=retries[attempts - 1])
