"""Know whether this installation is a copy of another one, restored from a backup: it does nothing in its name.

It is asked once in a process: what an operator decides later takes effect with a restart.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings

from brokerapp.backup.data_folder import read_mark
from brokerapp.store.restored_mark import RestoredMark


def restored_mark() -> RestoredMark | None:
    """Return the backup that a copy was restored from; None for another installation."""
    return _mark_of(settings.SLUICE.data)


def is_copy() -> bool:
    """Return whether schedules, reports and notifications are off, as the original has them, too."""
    mark = restored_mark()
    return mark is not None and mark.is_copy


@cache
def _mark_of(data: Path) -> RestoredMark | None:
    return read_mark(data)
