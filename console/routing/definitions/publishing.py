"""Propose and apply changes of the definitions: the one path for drafts, the editor, reverts and the REST API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from django.http import HttpRequest

from brokerapp.errors import DefinitionConflict, DefinitionRefused
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from console.access.permissions import Permission, pattern_filter, require, require_everywhere
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.definitions.affected_destinations import affected_destinations, named_destinations
from console.routing.definitions.changes import (
    ChangeConflict,
    Definition,
    DefinitionChange,
    apply_changes,
    find_conflicts,
    resolve_conflict,
)
from console.routing.definitions.visibility import is_visible

#: Times that changes are merged again because another user applied something at the same moment.
ATTEMPTS = 3
#: Destinations at which a permission is required for a definition.
DestinationsOf = Callable[[Definition | None], tuple[Destination, ...]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes merged into the active definitions, and what prevents applying them."""

    current: Definitions
    proposed: Definitions  #: without the changes in conflict
    resolved: Definitions  #: with the proposed version of each definition in conflict
    conflicts: list[ChangeConflict]
    problem: str  #: why the proposed definitions are invalid; "": they are valid

    @property
    def can_apply(self) -> bool:
        """Return whether there is no conflict and no problem."""
        return not self.conflicts and not self.problem


def propose(changes: Iterable[DefinitionChange], current: Definitions) -> Proposal:
    """Merge changes into the active definitions and check the result."""
    changes = list(changes)
    proposed, problem, conflicts = apply_changes(current, changes), "", find_conflicts(current, changes)
    resolved = reduce(partial(resolve_conflict, keep=True), conflicts, changes)
    try:
        gateway().check(proposed)
    except DefinitionRefused as refused:
        problem = str(refused)
    return Proposal(current, proposed, apply_changes(current, resolved), conflicts, problem)


def apply(
    request: HttpRequest,
    changes: Iterable[DefinitionChange],
    store: Callable[[], Definitions],
    *,
    action: str,
    object: str,
    describe: Callable[[Definitions | None], Any] | None = None,
) -> Definitions:
    """Apply changes on all nodes: check the permissions, store the definitions, write one audit entry.

    `store` stores them; the broker checks them there. `describe` gives the audit entry what was before (None) and
    after; without it, these are the changed definitions. Raises PermissionDenied, DefinitionRefused,
    DefinitionConflict.
    """
    changes = list(changes)
    require_apply_permission(request, changes)
    values = [each.to_json() for each in changes]
    before = describe(None) if describe else [each["before"] for each in values]
    with trail.recording(request, action, object, before=before) as record:
        saved = store()
        record.after = describe(saved) if describe else [each["after"] for each in values]
    return saved


def store_changes(
    changes: list[DefinitionChange], base_version: int, author: str, comment: str, current: Definitions | None = None
) -> Definitions:
    """Merge changes into the active definitions and store the result. Raises DefinitionRefused, DefinitionConflict.

    `current`: the active definitions, if they were read just now.
    """
    for attempt in range(1, ATTEMPTS + 1):
        current = current or gateway().definitions()
        if find_conflicts(current, changes):
            raise DefinitionConflict(base_version, current.version)
        try:
            return gateway().define(apply_changes(current, changes), author, comment)
        except DefinitionConflict:  # another user applied something at the same moment
            if attempt == ATTEMPTS:
                raise
            current = None
    raise AssertionError


def require_apply_permission(request: HttpRequest, changes: list[DefinitionChange]) -> None:
    """Raise PermissionDenied unless the user may apply these changes at all destinations that they affect."""
    if not changes:
        require(request, Permission.ROUTE)
    _require(request, Permission.ROUTE, [each for each in changes if each.changes_routing], affected_destinations)
    _require(request, Permission.RECORD, [each for each in changes if each.changes_recording], named_destinations)


def _require(
    request: HttpRequest, permission: Permission, changes: list[DefinitionChange], destinations: DestinationsOf
) -> None:
    if not changes:
        return
    require(request, permission)
    may_know = pattern_filter(request.user)
    for definition in (definition for each in changes for definition in (each.before, each.after)):
        is_shown = is_visible(definition, may_know)
        for destination in destinations(definition):
            if is_shown or may_know(destination):
                require(request, permission, destination)
            else:  # the answer must not name it
                require_everywhere(request, permission)


def require_draft_permission(request: HttpRequest, changes: Iterable[DefinitionChange]) -> None:
    """Raise PermissionDenied where a change is about a definition that the user must not know."""
    may_know = pattern_filter(request.user, Permission.DRAFT)
    definitions = (definition for each in changes for definition in (each.before, each.after) if definition is not None)
    if not all(is_visible(definition, may_know) for definition in definitions):
        require_everywhere(request, Permission.DRAFT)
