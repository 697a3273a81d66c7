"""Read the history of applied versions, and whether the last change can be undone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.routing.definitions.changes import diff_definitions
from console.routing.definitions.visibility import visible_changes

#: Time in which the last change can be undone.
UNDO_TIME = timedelta(minutes=10)
#: Comment of a version whose changes the user must not see.
HIDDEN_COMMENT = "Hidden (no permission)"


@dataclass(frozen=True, slots=True)
class DefinitionVersion:
    """An entry in the history of definitions."""

    number: int
    author: str
    comment: str
    time: datetime | None

    @staticmethod
    def of(data: dict[str, Any]) -> DefinitionVersion:
        """Read an entry from the broker's record."""
        time_ms = data.get("time_ms")
        time = datetime.fromtimestamp(time_ms / 1000, UTC) if time_ms else None
        return DefinitionVersion(data["version"], data.get("author", ""), data.get("comment", ""), time)


@dataclass(frozen=True, slots=True)
class UndoableChange:
    """The last change while it can be undone."""

    version: DefinitionVersion
    until: datetime


def undoable_change(versions: list[DefinitionVersion]) -> UndoableChange | None:
    """Return the change that can be undone; `versions` are sorted newest first."""
    newest = versions[0] if versions else None
    if newest is None or newest.number < 2 or newest.time is None or timezone.now() - newest.time > UNDO_TIME:
        return None
    return UndoableChange(newest, newest.time + UNDO_TIME)


def latest_version(sees: Sees = everything) -> list[DefinitionVersion]:
    """Return a list with the active version, empty if nothing was applied yet."""
    return redact_comments([DefinitionVersion.of(each) for each in gateway().history(limit=1)], sees)


def redact_comments(versions: list[DefinitionVersion], sees: Sees) -> list[DefinitionVersion]:
    """Hide the comments of versions whose changes the user must not see."""
    return [each if _is_visible(each.number, sees) else replace(each, comment=HIDDEN_COMMENT) for each in versions]


def _is_visible(number: int, sees: Sees) -> bool:
    if sees is everything:
        return True
    old, new = (gateway().definitions(each) for each in (number - 1, number))
    return bool(visible_changes(diff_definitions(old, new), sees))
