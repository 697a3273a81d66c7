"""Count changes of users, groups, roles and masking, so that long-lived connections notice them.

Whatever stays open longer than a request, as sockets do, looks whether it has grown and then asks anew. The version
stands in the database, so that all web processes see it.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db.models import F
from django.db.models.signals import m2m_changed, post_delete, post_save

from console.access.models import Assignment, MaskingRule, RightsVersion

#: Seconds for which a process takes the version it has read for the current one.
FRESH = 1.0

_lock = threading.Lock()
_read: tuple[float, int] = (-FRESH, 0)
_grown_here = 0


def permission_version() -> int:
    """Return the version of all permissions, at most FRESH seconds old."""
    global _read
    with _lock:
        at, version = _read
        if time.monotonic() - at >= FRESH:
            version = RightsVersion.objects.values_list("version", flat=True).first() or 0
            _read = (time.monotonic(), version)
        return version


def permission_state() -> tuple[int, int]:
    """Return a cache key that changes with every change of permissions, immediately for local changes."""
    return permission_version(), _grown_here


def local_changes() -> int:
    """Return how often this process has changed permissions."""
    return _grown_here


def increment(sender: Any = None, **kwargs: Any) -> None:
    """Increment the version, because permissions may have changed."""
    if kwargs.get("update_fields") == frozenset({"last_login"}):
        return
    global _grown_here, _read
    _grown_here, _read = _grown_here + 1, (-FRESH, 0)
    if not RightsVersion.objects.update(version=F("version") + 1):
        RightsVersion.objects.create(version=1)


def connect_signals() -> None:
    """Increment the version on every change of users, groups, assignments and masking rules."""
    for model in (Assignment, Group, MaskingRule, User):
        post_save.connect(increment, model, dispatch_uid="rights")
        post_delete.connect(increment, model, dispatch_uid="rights")
    post_delete.connect(increment, Session, dispatch_uid="rights")
    m2m_changed.connect(increment, User.groups.through, dispatch_uid="rights")
