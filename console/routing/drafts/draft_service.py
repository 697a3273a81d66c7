"""Drafts as the pages use them: begun, changed, talked about, applied. Each call is one step with one remark.

Raises BrokerError's branches: DefinitionRefused for what cannot work or was changed meanwhile, DefinitionConflict for
what clashes with the definitions in force.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice

from django.db import transaction
from django.db.models import F

from brokerapp.errors import BrokerError, DefinitionConflict, DefinitionRefused
from brokerapp.model.definitions import Definitions
from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.routing.definitions.changes import (
    ChangeConflict,
    DefinitionChange,
    apply_changes,
    find_conflicts,
    merge_change,
    resolve_conflict,
)
from console.routing.definitions.visibility import visible_changes
from console.routing.drafts.models import Draft

#: Characters of a draft's name and of a remark that are kept.
MAX_NAME, MAX_REMARK = 120, 4000
#: Times a draft is put on top of what others applied in the same moment.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class DraftStatus:
    """How a draft stands to the definitions in force: what it would make of them, and why it cannot."""

    current: Definitions
    proposed: Definitions  #: without the changes in conflict
    resolved: Definitions  #: with the draft's version of each definition in conflict
    conflicts: list[ChangeConflict]
    problem: str  #: why the proposed definitions cannot work; "": they can

    @property
    def can_apply(self) -> bool:
        """Whether nothing is in its way."""
        return not self.conflicts and not self.problem


def status_of(changes: Iterable[DefinitionChange], current: Definitions) -> DraftStatus:
    """How these changes stand to the definitions in force."""
    changes = list(changes)
    proposed, problem, found = apply_changes(current, changes), "", find_conflicts(current, changes)
    decided = reduce(partial(resolve_conflict, keep=True), found, changes)
    try:
        gateway().check(proposed)
    except DefinitionRefused as refused:
        problem = str(refused)
    return DraftStatus(current, proposed, apply_changes(current, decided), found, problem)


def create_draft(author: str, name: str, changes: Iterable[DefinitionChange], version: int, remark: str = "") -> Draft:
    """A new draft with these changes, made from the definitions at `version`."""
    kept = [each.to_json() for each in changes]
    draft = Draft.objects.create(name=name[:MAX_NAME], author=author, changes=kept, base_version=version)
    add_remark(draft, author, "began", remark)
    return draft


def is_visible(draft: Draft, sees: Sees) -> bool:
    """Whether somebody may know of a draft: of one of its changes."""
    if sees is everything:
        return True
    try:
        return bool(visible_changes(draft.read_changes(), sees))
    except DefinitionRefused:
        return False


def list_visible(states: Iterable[str], sees: Sees, most: int) -> list[Draft]:
    """The latest drafts in these states that somebody may know of."""
    return list(islice((each for each in Draft.objects.filter(state__in=states) if is_visible(each, sees)), most))


def get_open_draft(number: str, sees: Sees) -> Draft | None:
    """The open draft of this number, as an address has it; None where there is none such, to one's knowledge."""
    if not number.isdecimal() or len(number) > 9:
        return None
    draft = Draft.objects.filter(pk=int(number), state__in=Draft.OPEN_STATES).first()
    return draft if draft is not None and is_visible(draft, sees) else None


def add_remark(draft: Draft, author: str, what: str, text: str = "") -> None:
    """Keep what somebody said or did."""
    draft.remarks.create(author=author, what=what, text=text.strip()[:MAX_REMARK])


def replace_changes(draft: Draft, author: str, changes: Iterable[DefinitionChange], what: str, text: str = "") -> None:
    """Give the draft other changes. What was asked for before they came has to be asked for again."""
    kept = [each.to_json() for each in changes]
    with transaction.atomic():
        _update(draft, changes=kept, state=Draft.State.OPEN)
        add_remark(draft, author, what, text)


def add_change(draft: Draft, author: str, change: DefinitionChange) -> None:
    """One more change."""
    replace_changes(draft, author, merge_change(draft.read_changes(), change), "changed", change.id)


def change_state(draft: Draft, author: str, state: Draft.State, what: str, text: str = "", **values: object) -> None:
    """Bring the draft into another state."""
    with transaction.atomic():
        _update(draft, state=state, **values)
        add_remark(draft, author, what, text)


def _update(draft: Draft, **values: object) -> None:
    """Change the draft's row, if nobody did since it was read."""
    same = Draft.objects.filter(pk=draft.pk, revision=draft.revision, state__in=Draft.OPEN_STATES)
    if not same.update(**values, revision=F("revision") + 1):
        raise DefinitionRefused(f"the draft {draft.name!r} was changed or closed by somebody else: read it again")
    draft.refresh_from_db()
    draft.save(update_fields=["changed"])


def apply(draft: Draft, author: str) -> Definitions:
    """Put the draft in force; what was. The draft is kept as it is when that cannot be done."""
    changes = draft.read_changes()
    if not changes:
        raise DefinitionRefused("the draft changes nothing")
    try:
        with transaction.atomic():  # the draft is closed first, so that nobody else applies or drops it meanwhile
            _update(draft, state=Draft.State.APPLIED, decided_by=author)
            saved = _store_definitions(changes, draft, author)
            draft.applied_version = saved.version
            draft.save(update_fields=["applied_version"])
            add_remark(draft, author, "applied it", f"as version {saved.version}")
    except BrokerError:
        draft.refresh_from_db()
        raise
    return saved


def _store_definitions(changes: list[DefinitionChange], draft: Draft, author: str) -> Definitions:
    for attempt in range(1, ATTEMPTS + 1):
        current = gateway().definitions()
        if find_conflicts(current, changes):
            raise DefinitionConflict(draft.base_version, current.version)
        try:
            return gateway().define(apply_changes(current, changes), author, draft.name)
        except DefinitionConflict:  # others applied something else in this very moment
            if attempt == ATTEMPTS:
                raise
    raise AssertionError
