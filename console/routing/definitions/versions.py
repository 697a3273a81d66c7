"""Versions of the definitions that were in force, and whether the last one can still be undone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.routing.definitions.changes import between
from console.routing.definitions.visibility import known_changes

#: How long the last change can be undone with one click.
UNDO_TIME = timedelta(minutes=10)
#: What is said of a version to those who see nothing of what it changed.
ELSEWHERE = "About other destinations"


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


def latest(sees: Sees = everything) -> list[Version]:
    """The version in force, if there is one."""
    return said_to([Version.of(each) for each in gateway().history(limit=1)], sees)


def said_to(versions: list[Version], sees: Sees) -> list[Version]:
    """The versions, without the words on those that changed nothing somebody may know of."""
    return [each if _is_known(each.number, sees) else replace(each, comment=ELSEWHERE) for each in versions]


def _is_known(number: int, sees: Sees) -> bool:
    if sees is everything:
        return True
    old, new = (gateway().definitions(each) for each in (number - 1, number))
    return bool(known_changes(between(old, new), sees))
