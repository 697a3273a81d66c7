"""Steps of a draft as people take them, on a page or through the API: with their rights, and in the audit trail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from django.http import HttpRequest

from brokerapp.errors import DefinitionRefused
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from console.access.permissions import Verb, require, require_everywhere, touched
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.definitions.affected_destinations import places_of, reached_by
from console.routing.definitions.changes import Change, Item, resolved
from console.routing.definitions.visibility import is_known
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft

#: What somebody gave with a step: `text`, `name`, `id`, `keep`.
Said = Mapping[str, str]
#: Where a right must be had for a definition.
Places = Callable[[Item | None], tuple[Destination, ...]]


def rights_for(request: HttpRequest, changes: Iterable[Change]) -> None:
    """Raise PermissionDenied unless the user may put these changes in force, wherever they reach."""
    changes = list(changes)
    if not changes:
        require(request, Verb.ROUTE)
    _require_at(request, Verb.ROUTE, [each for each in changes if each.routes], reached_by)
    _require_at(request, Verb.RECORD, [each for each in changes if each.records], places_of)


def _require_at(request: HttpRequest, verb: Verb, changes: list[Change], places: Places) -> None:
    if not changes:
        return
    require(request, verb)
    knows = touched(request.user)
    for item in (item for each in changes for item in (each.before, each.after)):
        is_told = is_known(item, knows)
        for place in places(item):
            if is_told or knows(place):
                require(request, verb, place)
            else:  # its name is not for them
                require_everywhere(request, verb)


def may_draft(request: HttpRequest, changes: Iterable[Change]) -> None:
    """Raise PermissionDenied where a change is about what the user may not know of."""
    knows = touched(request.user, Verb.DRAFT)
    items = (item for each in changes for item in (each.before, each.after) if item is not None)
    if not all(is_known(item, knows) for item in items):
        require_everywhere(request, Verb.DRAFT)


def apply_draft(request: HttpRequest, draft: Draft) -> Definitions:
    """Put a draft in force: rights, audit, and the change itself. Raises DefinitionRefused, DefinitionConflict."""
    changes = draft.read()
    rights_for(request, changes)
    before = [each["before"] for each in draft.changes]
    with trail.recording(request, "apply routing", ", ".join(each.id for each in changes), before=before) as record:
        saved = draft_service.apply(draft, request.user.get_username())
        record.after = [each["after"] for each in draft.changes]
    return saved


def _apply(request: HttpRequest, found: Draft, said: Said) -> None:
    apply_draft(request, found)


def _recorded(request: HttpRequest, found: Draft, said: Said, action: str, step: Callable[[str, str], None]) -> None:
    with trail.recording(request, f"{action} draft", found.name):
        step(request.user.get_username(), said.get("text", ""))


def _ask(request: HttpRequest, found: Draft, said: Said) -> None:
    state = Draft.State.ASKED
    _recorded(
        request, found, said, "ask for",
        lambda who, text: draft_service.move(found, who, state, "asked for approval", text),
    )  # fmt: skip


def _return(request: HttpRequest, found: Draft, said: Said) -> None:
    require(request, Verb.ROUTE)
    state = Draft.State.OPEN
    _recorded(
        request, found, said, "return", lambda who, text: draft_service.move(found, who, state, "returned it", text)
    )


def _drop(request: HttpRequest, found: Draft, said: Said) -> None:
    if found.author != request.user.get_username():
        require(request, Verb.ROUTE)
    _recorded(
        request, found, said, "drop",
        lambda who, text: draft_service.move(found, who, Draft.State.DROPPED, "dropped it", text, decided_by=who),
    )  # fmt: skip


def _remark(request: HttpRequest, found: Draft, said: Said) -> None:
    if not said.get("text", "").strip():
        raise DefinitionRefused("a remark needs some words")
    _recorded(request, found, said, "remark on", lambda who, text: draft_service.note(found, who, "said", text))


def _rename(request: HttpRequest, found: Draft, said: Said) -> None:
    name = said.get("name", "").strip()[: draft_service.MAX_NAME]
    if not name:
        raise DefinitionRefused("a draft needs a name")
    _recorded(
        request, found, said, "rename",
        lambda who, _: draft_service.move(found, who, found.state, "renamed it", name, name=name),
    )  # fmt: skip


def _leave_out(request: HttpRequest, found: Draft, said: Said) -> None:
    id = said.get("id", "")
    changes = found.read()
    may_draft(request, [each for each in changes if each.id == id])
    kept = [each for each in changes if each.id != id]
    _recorded(request, found, said, "change", lambda who, _: draft_service.rewrite(found, who, kept, "left out", id))


def _resolve(request: HttpRequest, found: Draft, said: Said) -> None:
    id, keep = said.get("id", ""), said.get("keep") == "mine"
    standing = draft_service.standing(found.read(), gateway().definitions())
    clash = next((each for each in standing.clashes if each.change.id == id), None)
    if clash is None:
        raise DefinitionRefused(f"nothing clashes about {id} any more")
    may_draft(request, [clash.change])
    changes = resolved(found.read(), clash, keep=keep)
    what = "kept the draft's side of" if keep else "took what is in force of"
    _recorded(request, found, said, "change", lambda who, _: draft_service.rewrite(found, who, changes, what, id))


#: Steps a draft can take, by their name in the address. All need DRAFT; those that need more ask for it.
STEPS: dict[str, Callable[[HttpRequest, Draft, Said], None]] = {
    "apply": _apply,
    "ask": _ask,
    "return": _return,
    "drop": _drop,
    "remark": _remark,
    "rename": _rename,
    "leave-out": _leave_out,
    "resolve": _resolve,
}
