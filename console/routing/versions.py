"""Versions of the definitions that were in force, and whether the last one can still be undone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from console.gateway import gateway

#: How long the last change can be undone with one click.
UNDO_TIME = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the definitions, as the history tells of it."""

    number: int
    author: str
    comment: str
    time: datetime | None

    @staticmethod
    def of(data: dict[str, Any]) -> Version:
        """From what the broker keeps about it."""
        time_ms = data.get("time_ms")
        time = datetime.fromtimestamp(time_ms / 1000, UTC) if time_ms else None
        return Version(data["version"], data.get("author", ""), data.get("comment", ""), time)


@dataclass(frozen=True, slots=True)
class Undo:
    """The last change, as long as it can be undone."""

    version: Version
    until: datetime


def undo_of(versions: list[Version]) -> Undo | None:
    """The change that can be undone now, of the versions with the newest first."""
    newest = versions[0] if versions else None
    if newest is None or newest.number < 2 or newest.time is None or timezone.now() - newest.time > UNDO_TIME:
        return None
    return Undo(newest, newest.time + UNDO_TIME)


def latest() -> list[Version]:
    """The version in force, if there is one."""
    return [Version.of(each) for each in gateway().history(limit=1)]
