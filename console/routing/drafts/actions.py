"""Carry out the steps of a draft for a page or the REST API: check permissions, write the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from brokerapp.errors import DefinitionRefused
from brokerapp.model.definitions import Definitions
from console.access.permissions import Permission, pattern_filter, require
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.definitions.changes import DefinitionChange, resolve_conflict
from console.routing.definitions.publishing import apply, propose, require_draft_permission
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft

#: Messages after a request for approval, and after an attempt to apply changes that are in conflict.
APPROVAL_REQUESTED = "Approval requested. Users who may apply routing changes are notified."
NOT_APPLIED = "Not applied: the same definitions were changed by another user. Resolve the conflicts below."
#: What was submitted with a step: `text`, `name`, `id`, `keep`.
StepInput = Mapping[str, str]


def get_draft_or_404(request: HttpRequest, draft_id: int) -> Draft:
    """Return a draft that the user may see. Raises Http404."""
    draft = get_object_or_404(Draft, pk=draft_id)
    if not draft_service.is_visible(draft, pattern_filter(request.user)):
        raise Http404("Draft not found.")
    return draft


def apply_draft(request: HttpRequest, draft: Draft) -> Definitions:
    """Apply a draft on all nodes. Raises PermissionDenied, DefinitionRefused, DefinitionConflict."""
    changes = draft.read_changes()
    author = request.user.get_username()
    names = ", ".join(each.id for each in changes)
    return apply(request, changes, lambda: draft_service.apply(draft, author), action="apply routing", object=names)


def _apply(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    apply_draft(request, draft)


def _change_state(
    request: HttpRequest, draft: Draft, given: StepInput, action: str, state: Draft.State, what: str, **values: object
) -> None:
    author = request.user.get_username()
    with trail.recording(request, f"{action} draft", draft.name):
        draft_service.change_state(draft, author, state, what, given.get("text", ""), **values)


def _replace_changes(
    request: HttpRequest, draft: Draft, changes: list[DefinitionChange], what: str, definition: str
) -> None:
    with trail.recording(request, "change draft", draft.name):
        draft_service.replace_changes(draft, request.user.get_username(), changes, what, definition)


def _request_approval(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    _change_state(request, draft, given, "ask for", Draft.State.ASKED, "asked for approval")


def _request_changes(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    require(request, Permission.ROUTE)
    _change_state(request, draft, given, "return", Draft.State.OPEN, "returned it")


def _discard(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    author = request.user.get_username()
    if draft.author != author:
        require(request, Permission.ROUTE)
    _change_state(request, draft, given, "drop", Draft.State.DROPPED, "dropped it", decided_by=author)


def _comment(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    text = given.get("text", "")
    if not text.strip():
        raise DefinitionRefused("Enter a comment")
    with trail.recording(request, "remark on draft", draft.name):
        draft_service.add_remark(draft, request.user.get_username(), "said", text)


def _rename(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    name = given.get("name", "").strip()[: draft_service.MAX_NAME]
    if not name:
        raise DefinitionRefused("Enter a name for the draft")
    state = Draft.State(draft.state)
    _change_state(request, draft, {"text": name}, "rename", state, "renamed it", name=name)


def _remove_change(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    id, changes = given.get("id", ""), draft.read_changes()
    require_draft_permission(request, [each for each in changes if each.id == id])
    _replace_changes(request, draft, [each for each in changes if each.id != id], "left out", id)


def _resolve(request: HttpRequest, draft: Draft, given: StepInput) -> None:
    id, keeps_draft = given.get("id", ""), given.get("keep") == "mine"
    changes = draft.read_changes()
    conflicts = propose(changes, gateway().definitions()).conflicts
    conflict = next((each for each in conflicts if each.change.id == id), None)
    if conflict is None:
        raise DefinitionRefused(f"No conflict about {id}")
    require_draft_permission(request, [conflict.change])
    what = "kept the draft's side of" if keeps_draft else "took what is in force of"
    _replace_changes(request, draft, resolve_conflict(changes, conflict, keep=keeps_draft), what, id)


#: Steps of a draft, by their name in the address. All need DRAFT; some check further permissions.
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
