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
from console.routing.definitions.changes import Change, Clash, applied, clashes, joined, resolved
from console.routing.definitions.visibility import known_changes
from console.routing.drafts.models import Draft

#: Characters of a draft's name and of a remark that are kept.
MAX_NAME, MAX_REMARK = 120, 4000
#: Times a draft is put on top of what others applied in the same moment.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """How a draft stands to the definitions in force: what it would make of them, and why it cannot."""

    current: Definitions
    proposed: Definitions  #: without the changes in conflict
    wanted: Definitions  #: with the draft's version of each definition in conflict
    clashes: list[Clash]
    problem: str  #: why the proposed definitions cannot work; "": they can

    @property
    def can_apply(self) -> bool:
        """Whether nothing is in its way."""
        return not self.clashes and not self.problem


def standing(changes: Iterable[Change], current: Definitions) -> Standing:
    """How these changes stand to the definitions in force."""
    changes = list(changes)
    proposed, problem, found = applied(current, changes), "", clashes(current, changes)
    decided = reduce(partial(resolved, keep=True), found, changes)
    try:
        gateway().check(proposed)
    except DefinitionRefused as refused:
        problem = str(refused)
    return Standing(current, proposed, applied(current, decided), found, problem)


def begin(author: str, name: str, changes: Iterable[Change], version: int, remark: str = "") -> Draft:
    """A new draft with these changes, made from the definitions at `version`."""
    kept = [each.to_json() for each in changes]
    draft = Draft.objects.create(name=name[:MAX_NAME], author=author, changes=kept, base_version=version)
    note(draft, author, "began", remark)
    return draft


def is_known(draft: Draft, sees: Sees) -> bool:
    """Whether somebody may know of a draft: of one of its changes."""
    if sees is everything:
        return True
    try:
        return bool(known_changes(draft.read(), sees))
    except DefinitionRefused:
        return False


def some(states: Iterable[str], sees: Sees, most: int) -> list[Draft]:
    """The latest drafts in these states that somebody may know of."""
    return list(islice((each for each in Draft.objects.filter(state__in=states) if is_known(each, sees)), most))


def living(number: str, sees: Sees) -> Draft | None:
    """The open draft of this number, as an address has it; None where there is none such, to one's knowledge."""
    if not number.isdecimal() or len(number) > 9:
        return None
    draft = Draft.objects.filter(pk=int(number), state__in=Draft.LIVING).first()
    return draft if draft is not None and is_known(draft, sees) else None


def note(draft: Draft, author: str, what: str, text: str = "") -> None:
    """Keep what somebody said or did."""
    draft.remarks.create(author=author, what=what, text=text.strip()[:MAX_REMARK])


def rewrite(draft: Draft, author: str, changes: Iterable[Change], what: str, text: str = "") -> None:
    """Give the draft other changes. What was asked for before they came has to be asked for again."""
    kept = [each.to_json() for each in changes]
    with transaction.atomic():
        _step(draft, changes=kept, state=Draft.State.OPEN)
        note(draft, author, what, text)


def add(draft: Draft, author: str, change: Change) -> None:
    """One more change."""
    rewrite(draft, author, joined(draft.read(), change), "changed", change.id)


def move(draft: Draft, author: str, state: Draft.State, what: str, text: str = "", **values: object) -> None:
    """Bring the draft into another state."""
    with transaction.atomic():
        _step(draft, state=state, **values)
        note(draft, author, what, text)


def _step(draft: Draft, **values: object) -> None:
    """Change the draft's row, if nobody did since it was read."""
    same = Draft.objects.filter(pk=draft.pk, revision=draft.revision, state__in=Draft.LIVING)
    if not same.update(**values, revision=F("revision") + 1):
        raise DefinitionRefused(f"the draft {draft.name!r} was changed or closed by somebody else: read it again")
    draft.refresh_from_db()
    draft.save(update_fields=["changed"])


def apply(draft: Draft, author: str) -> Definitions:
    """Put the draft in force; what was. The draft is kept as it is when that cannot be done."""
    changes = draft.read()
    if not changes:
        raise DefinitionRefused("the draft changes nothing")
    try:
        with transaction.atomic():  # the draft is closed first, so that nobody else applies or drops it meanwhile
            _step(draft, state=Draft.State.APPLIED, decided_by=author)
            saved = _define(changes, draft, author)
            draft.applied_version = saved.version
            draft.save(update_fields=["applied_version"])
            note(draft, author, "applied it", f"as version {saved.version}")
    except BrokerError:
        draft.refresh_from_db()
        raise
    return saved


def _define(changes: list[Change], draft: Draft, author: str) -> Definitions:
    for attempt in range(1, ATTEMPTS + 1):
        current = gateway().definitions()
        if clashes(current, changes):
            raise DefinitionConflict(draft.base_version, current.version)
        try:
            return gateway().define(applied(current, changes), author, draft.name)
        except DefinitionConflict:  # others applied something else in this very moment
            if attempt == ATTEMPTS:
                raise
    raise AssertionError
