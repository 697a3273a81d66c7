"""Create, change, discuss and apply drafts. Each call is one step with one remark.

Raises DefinitionRefused for an invalid draft or one that was changed meanwhile, DefinitionConflict if another user
changed the same definitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from django.db import transaction
from django.db.models import F

from brokerapp.errors import BrokerError, DefinitionRefused
from brokerapp.model.definitions import Definitions
from console.access.roles import Sees, everything
from console.routing.definitions.changes import DefinitionChange, merge_change
from console.routing.definitions.publishing import store_changes
from console.routing.definitions.visibility import visible_changes
from console.routing.drafts.models import Draft

#: Maximum characters of a draft's name and of a remark.
MAX_NAME, MAX_REMARK = 120, 4000


def create_draft(author: str, name: str, changes: Iterable[DefinitionChange], version: int, remark: str = "") -> Draft:
    """Create a draft with these changes, derived from the definitions at `version`."""
    kept = [each.to_json() for each in changes]
    draft = Draft.objects.create(name=name[:MAX_NAME], author=author, changes=kept, base_version=version)
    add_remark(draft, author, "began", remark)
    return draft


def is_visible(draft: Draft, sees: Sees) -> bool:
    """Return whether a user may see a draft: at least one of its changes."""
    if sees is everything:
        return True
    try:
        return bool(visible_changes(draft.read_changes(), sees))
    except DefinitionRefused:
        return False


def list_visible(states: Iterable[str], sees: Sees, most: int) -> list[Draft]:
    """Return the latest drafts in these states that a user may see."""
    return list(islice((each for each in Draft.objects.filter(state__in=states) if is_visible(each, sees)), most))


def get_open_draft(number: str, sees: Sees) -> Draft | None:
    """Return the open draft of this number (text of an address), or None if there is none that the user may see."""
    if not number.isdecimal() or len(number) > 9:
        return None
    draft = Draft.objects.filter(pk=int(number), state__in=Draft.OPEN_STATES).first()
    return draft if draft is not None and is_visible(draft, sees) else None


def add_remark(draft: Draft, author: str, what: str, text: str = "") -> None:
    """Record an action or a comment in the activity of a draft."""
    draft.remarks.create(author=author, what=what, text=text.strip()[:MAX_REMARK])


def replace_changes(draft: Draft, author: str, changes: Iterable[DefinitionChange], what: str, text: str = "") -> None:
    """Replace the changes of a draft. A requested approval has to be requested again."""
    kept = [each.to_json() for each in changes]
    with transaction.atomic():
        _update(draft, changes=kept, state=Draft.State.OPEN)
        add_remark(draft, author, what, text)


def add_change(draft: Draft, author: str, change: DefinitionChange) -> None:
    """Add a change to a draft."""
    replace_changes(draft, author, merge_change(draft.read_changes(), change), "changed", change.id)


def change_state(draft: Draft, author: str, state: Draft.State, what: str, text: str = "", **values: object) -> None:
    """Change the state of a draft."""
    with transaction.atomic():
        _update(draft, state=state, **values)
        add_remark(draft, author, what, text)


def _update(draft: Draft, **values: object) -> None:
    """Change the draft's row unless it has changed since it was read."""
    same = Draft.objects.filter(pk=draft.pk, revision=draft.revision, state__in=Draft.OPEN_STATES)
    if not same.update(**values, revision=F("revision") + 1):
        raise DefinitionRefused(f"draft {draft.name} was changed or closed by another user. Reload it and try again")
    draft.refresh_from_db()
    draft.save(update_fields=["changed"])


def apply(draft: Draft, author: str) -> Definitions:
    """Apply the draft on all nodes and return the new definitions. The draft is unchanged if that fails."""
    changes = draft.read_changes()
    if not changes:
        raise DefinitionRefused("the draft contains no changes")
    try:
        with transaction.atomic():  # the draft is closed first, so that no other user applies or discards it meanwhile
            _update(draft, state=Draft.State.APPLIED, decided_by=author)
            saved = store_changes(changes, draft.base_version, author, draft.name)
            draft.applied_version = saved.version
            draft.save(update_fields=["applied_version"])
            add_remark(draft, author, "applied it", f"as version {saved.version}")
    except BrokerError:
        draft.refresh_from_db()
        raise
    return saved
