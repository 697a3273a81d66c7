"""Steps of a draft as people take them, on a page or through the API: with their rights, and in the audit trail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from django.http import HttpRequest

from brokerapp.errors import DefinitionRefused
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from console.access.permissions import Verb, pattern_filter, require, require_everywhere
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.definitions.affected_destinations import affected_destinations, named_destinations
from console.routing.definitions.changes import Definition, DefinitionChange, resolve_conflict
from console.routing.definitions.visibility import is_visible
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft

#: What somebody gave with a step: `text`, `name`, `id`, `keep`.
StepInput = Mapping[str, str]
#: Where a right must be had for a definition.
DestinationsOf = Callable[[Definition | None], tuple[Destination, ...]]


def require_apply_permission(request: HttpRequest, changes: Iterable[DefinitionChange]) -> None:
    """Raise PermissionDenied unless the user may put these changes in force, wherever they reach."""
    changes = list(changes)
    if not changes:
        require(request, Verb.ROUTE)
    _require_for_changes(request, Verb.ROUTE, [each for each in changes if each.changes_routing], affected_destinations)
    _require_for_changes(request, Verb.RECORD, [each for each in changes if each.changes_recording], named_destinations)


def _require_for_changes(
    request: HttpRequest, verb: Verb, changes: list[DefinitionChange], places: DestinationsOf
) -> None:
    if not changes:
        return
    require(request, verb)
    knows = pattern_filter(request.user)
    for item in (item for each in changes for item in (each.before, each.after)):
        is_told = is_visible(item, knows)
        for place in places(item):
            if is_told or knows(place):
                require(request, verb, place)
            else:  # its name is not for them
                require_everywhere(request, verb)


def require_draft_permission(request: HttpRequest, changes: Iterable[DefinitionChange]) -> None:
    """Raise PermissionDenied where a change is about what the user may not know of."""
    knows = pattern_filter(request.user, Verb.DRAFT)
    items = (item for each in changes for item in (each.before, each.after) if item is not None)
    if not all(is_visible(item, knows) for item in items):
        require_everywhere(request, Verb.DRAFT)


def apply_draft(request: HttpRequest, draft: Draft) -> Definitions:
    """Put a draft in force: rights, audit, and the change itself. Raises DefinitionRefused, DefinitionConflict."""
    changes = draft.read_changes()
    require_apply_permission(request, changes)
    before = [each["before"] for each in draft.changes]
    with trail.recording(request, "apply routing", ", ".join(each.id for each in changes), before=before) as record:
        saved = draft_service.apply(draft, request.user.get_username())
        record.after = [each["after"] for each in draft.changes]
    return saved


def _apply(request: HttpRequest, found: Draft, said: StepInput) -> None:
    apply_draft(request, found)


def _run_audited(
    request: HttpRequest, found: Draft, said: StepInput, action: str, step: Callable[[str, str], None]
) -> None:
    with trail.recording(request, f"{action} draft", found.name):
        step(request.user.get_username(), said.get("text", ""))


def _request_approval(request: HttpRequest, found: Draft, said: StepInput) -> None:
    state = Draft.State.ASKED
    _run_audited(
        request, found, said, "ask for",
        lambda who, text: draft_service.change_state(found, who, state, "asked for approval", text),
    )  # fmt: skip


def _request_changes(request: HttpRequest, found: Draft, said: StepInput) -> None:
    require(request, Verb.ROUTE)
    state = Draft.State.OPEN
    _run_audited(
        request,
        found,
        said,
        "return",
        lambda who, text: draft_service.change_state(found, who, state, "returned it", text),
    )


def _discard(request: HttpRequest, found: Draft, said: StepInput) -> None:
    if found.author != request.user.get_username():
        require(request, Verb.ROUTE)
    _run_audited(
        request, found, said, "drop",
        lambda who, text: draft_service.change_state(
            found, who, Draft.State.DROPPED, "dropped it", text, decided_by=who
        ),
    )  # fmt: skip


def _comment(request: HttpRequest, found: Draft, said: StepInput) -> None:
    if not said.get("text", "").strip():
        raise DefinitionRefused("a remark needs some words")
    _run_audited(
        request, found, said, "remark on", lambda who, text: draft_service.add_remark(found, who, "said", text)
    )


def _rename(request: HttpRequest, found: Draft, said: StepInput) -> None:
    name = said.get("name", "").strip()[: draft_service.MAX_NAME]
    if not name:
        raise DefinitionRefused("a draft needs a name")
    _run_audited(
        request, found, said, "rename",
        lambda who, _: draft_service.change_state(found, who, found.state, "renamed it", name, name=name),
    )  # fmt: skip


def _remove_change(request: HttpRequest, found: Draft, said: StepInput) -> None:
    id = said.get("id", "")
    changes = found.read_changes()
    require_draft_permission(request, [each for each in changes if each.id == id])
    kept = [each for each in changes if each.id != id]
    _run_audited(
        request, found, said, "change", lambda who, _: draft_service.replace_changes(found, who, kept, "left out", id)
    )


def _resolve(request: HttpRequest, found: Draft, said: StepInput) -> None:
    id, keep = said.get("id", ""), said.get("keep") == "mine"
    standing = draft_service.status_of(found.read_changes(), gateway().definitions())
    clash = next((each for each in standing.conflicts if each.change.id == id), None)
    if clash is None:
        raise DefinitionRefused(f"nothing clashes about {id} any more")
    require_draft_permission(request, [clash.change])
    changes = resolve_conflict(found.read_changes(), clash, keep=keep)
    what = "kept the draft's side of" if keep else "took what is in force of"
    _run_audited(
        request, found, said, "change", lambda who, _: draft_service.replace_changes(found, who, changes, what, id)
    )


#: Steps a draft can take, by their name in the address. All need DRAFT; those that need more ask for it.
STEPS: dict[str, Callable[[HttpRequest, Draft, StepInput], None]] = {
    "apply": _apply,
    "ask": _request_approval,
    "return": _request_changes,
    "drop": _discard,
    "remark": _comment,
    "rename": _rename,
    "leave-out": _remove_change,
    "resolve": _resolve,
}
