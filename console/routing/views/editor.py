"""Serve the editor of definitions: choice of a kind, its form and effect; saving to a draft or applying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.errors import DefinitionConflict, DefinitionRefused
from brokerapp.model.definitions import Definitions
from console.access import redaction
from console.access.permissions import Permission, pattern_filter, permission_required, visible
from console.access.roles import Sees
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.routing.definitions.changes import (
    Definition,
    DefinitionChange,
    apply_changes,
    definitions_by_id,
    id_of,
    kind_of,
)
from console.routing.definitions.definition_values import label_of, title_of
from console.routing.definitions.destination_matches import composite_targets, match_destinations
from console.routing.definitions.publishing import apply, require_draft_permission, store_changes
from console.routing.definitions.rollout import report_rollout
from console.routing.definitions.visibility import is_visible, visible_definitions
from console.routing.definitions.xml_fragment import diff_fragments, xml_fragment_of
from console.routing.drafts import draft_service
from console.routing.drafts.actions import NOT_APPLIED
from console.routing.drafts.models import Draft
from console.routing.editor.advice import advice
from console.routing.editor.forms import KINDS, TargetRow, form_for
from console.ui.formatting.url_query import parse_integer, query_string

#: Styles of the form: guided steps, or all options by ActiveMQ's names.
FORM_STYLES = ("guided", "expert")
#: Maximum drafts offered to save to.
MAX_DRAFTS = 20


@require_GET
@permission_required(Permission.DRAFT)
def choose(request: HttpRequest) -> HttpResponse:
    """Show the definition types to choose from."""
    query = query_string(draft=request.GET.get("draft")).removesuffix("?")
    return render(request, "routing/editor/kind_choice.html", {"kinds": KINDS, "query": query})


@dataclass(frozen=True, slots=True)
class EditorState:
    """State of the editor: the definitions as of the time the form was opened, and the definition that is replaced."""

    draft: Draft | None
    current: Definitions  #: the active ones
    seen: Definitions  #: as of the time the form was opened, or with the draft's changes
    existing: Definition | None

    @staticmethod
    def of(request: HttpRequest) -> EditorState:
        """Read the state from the address and the form. Raises Http404."""
        current = gateway().definitions()
        sees = pattern_filter(request.user)
        draft = _draft(request, sees)
        opened = _opened_version(request, current)
        seen = current if opened == current.version else gateway().definitions(opened)
        if draft is not None:
            seen = apply_changes(current, draft.read_changes())
        replacing = request.GET.get("id")
        existing = definitions_by_id(seen).get(replacing) if replacing else None
        if replacing and not is_visible(existing, sees):
            raise Http404(f"Definition {replacing} not found. It may have been deleted or renamed.")
        return EditorState(draft, current, seen, existing)

    def query(self, **more: str) -> str:
        """Write the address's query for this definition and draft."""
        values = {"id": id_of(self.existing) if self.existing else "", "draft": self.draft.pk if self.draft else ""}
        return query_string(**(values | more)).removesuffix("?")

    def check_name(self, new: Definition | None) -> None:
        """Raise DefinitionRefused if another definition has the name of the new one."""
        if new is None or id_of(new) == (self.existing and id_of(self.existing)):
            return
        if id_of(new) in definitions_by_id(self.seen):
            raise DefinitionRefused(f"{label_of(new)} {title_of(new)} already exists")

    def check(self, new: Definition | None) -> None:
        """Raise DefinitionRefused if the definitions are invalid with the new one."""
        self.check_name(new)
        gateway().check(apply_changes(self.seen, [DefinitionChange(self.existing, new)]))


def _opened_version(request: HttpRequest, current: Definitions) -> int:
    """Return the version of the definitions at the time the form was opened."""
    return parse_integer(request.POST.get("version"), current.version, digits=9)


def _draft(request: HttpRequest, sees: Sees) -> Draft | None:
    wanted = request.POST.get("draft") or request.GET.get("draft") or ""
    draft = draft_service.get_open_draft(wanted, sees)
    if draft is None and wanted.isdecimal():
        raise Http404(f"No open draft {wanted}. It may have been applied or discarded.")
    return draft


@require_http_methods(["GET", "POST"])
@permission_required(Permission.DRAFT)
def edit(request: HttpRequest, kind: str = "") -> HttpResponse:
    """Create a definition of a kind, or edit the one whose id is `id`; saved to a draft or applied at once."""
    if kind and kind not in KINDS:
        raise Http404(f"Unknown definition type {kind}.")
    state = EditorState.of(request)
    if not kind and state.existing is None:
        raise Http404("The address does not name a definition.")
    kind = kind_of(state.existing) if state.existing else kind
    form = form_for(kind, request.POST if request.method == "POST" else None, state.existing)
    refusal = ""
    if request.method == "POST" and form.is_valid():
        try:
            return _save(request, state, form.definition())
        except DefinitionRefused as error:
            refusal = redaction.redact_sentence(str(error), visible(request.user))
    context = _editor_context(request, kind, form, state) | {"refusal": refusal}
    return render(request, "routing/editor/editor.html", context, status=400 if request.method == "POST" else 200)


def _save(request: HttpRequest, state: EditorState, new: Definition | None) -> HttpResponse:
    """Apply the change at once, or save it to a draft. Raises DefinitionRefused for an invalid definition."""
    change = DefinitionChange(state.existing, new)
    if change.before == change.after:
        raise DefinitionRefused("No changes to save")
    require_draft_permission(request, [change])
    if request.POST.get("do") == "apply" and state.draft is None:
        return _apply(request, state, change)
    state.check(new)
    draft = _save_to_draft(request, state, change)
    if state.draft is None:
        messages.success(request, "Draft saved. Not applied yet.")
    return redirect("draft", draft_id=draft.pk)


def _apply(request: HttpRequest, state: EditorState, change: DefinitionChange) -> HttpResponse:
    """Apply the change on all nodes; in a conflict save it as a draft, where the conflict is resolved."""
    state.check_name(change.after)
    author, comment, opened = (
        request.user.get_username(),
        _comment(request, change),
        _opened_version(request, state.current),
    )
    try:
        saved = apply(
            request, [change], lambda: store_changes([change], opened, author, comment, state.current),
            action="apply routing", object=change.id,
        )  # fmt: skip
    except DefinitionConflict:
        draft = _save_to_draft(request, state, change)
        messages.warning(request, NOT_APPLIED)
        return redirect("draft", draft_id=draft.pk)
    report_rollout(request, saved.version)
    return redirect(reverse("routing") + query_string(**_landing(change, saved.version)))


def _save_to_draft(request: HttpRequest, state: EditorState, change: DefinitionChange) -> Draft:
    author, values = request.user.get_username(), change.to_json()
    name = state.draft.name if state.draft is not None else _comment(request, change)
    with trail.recording(request, "draft", name, before=values["before"]) as record:
        if state.draft is not None:
            draft = state.draft
            draft_service.add_change(draft, author, change)
        else:
            draft = draft_service.create_draft(author, name, [change], _opened_version(request, state.current))
        record.after = values["after"]
    return draft


_ACTIONS = {"new": "Create", "changed": "Change", "removed": "Delete"}


def _comment(request: HttpRequest, change: DefinitionChange) -> str:
    default = f"{_ACTIONS[change.what]} {title_of(change.after or change.before)}"
    return request.POST.get("comment", "").strip()[: draft_service.MAX_NAME] or default


def _landing(change: DefinitionChange, version: int) -> dict[str, Any]:
    """Return the query with which the graph shows what is new after a change."""
    return {"fresh": id_of(change.after), "version": version} if change.after is not None else {}


@require_POST
@permission_required(Permission.DRAFT)
def check(request: HttpRequest, kind: str) -> HttpResponse:
    """Show the effect of the form while it is filled in: problems, advice, matching destinations, XML, diff."""
    if kind not in KINDS:
        raise Http404(f"Unknown definition type {kind}.")
    form = form_for(kind, request.POST)
    form.is_valid()
    context = _editor_context(request, kind, form, EditorState.of(request))
    return render(request, "routing/editor/check.html", context)


def _editor_context(request: HttpRequest, kind: str, form: Any, state: EditorState) -> dict[str, Any]:
    """Collect what the editor shows about the form in its present state."""
    style = request.GET.get("form", "")
    sees = pattern_filter(request.user)
    context = {
        "kind": kind, "about": KINDS[kind], "form": form, "version": state.current.version, "editor": state,
        "form_style": style if style in FORM_STYLES else FORM_STYLES[0],
        "form_styles": [(each, state.query(form=each)) for each in FORM_STYLES],
        "blank_target": TargetRow(), "check_url": reverse("check-definition", kwargs={"kind": kind}) + state.query(),
        "delete_url": reverse("delete-definition") + state.query(),
        "default_comment": f"{'Change' if state.existing else 'Create'} {KINDS[kind].label.lower()}",
        "drafts": [] if state.draft else draft_service.list_visible(Draft.OPEN_STATES, sees, MAX_DRAFTS),
        "live_fields": [name for name in ("name", "prefix") if name in form.fields],
    }  # fmt: skip
    definition = form.definition() if form.is_bound and form.is_valid() else state.existing
    if form.is_bound and not form.is_valid():
        definition = None
    stats = visible_snapshot(mirror().current(), visible(request.user)).stats
    context["matches"] = match_destinations(definition, stats) if definition else form.match_destinations(stats)
    if definition is None:
        return context
    context |= {
        "definition": definition, "xml": xml_fragment_of(definition), "targets": composite_targets(definition, stats),
        "is_unchanged": form.is_bound and definition == state.existing,
        "lines": diff_fragments(state.existing, definition) if state.existing not in (None, definition) else [],
    }  # fmt: skip
    try:
        state.check(definition)
    except DefinitionRefused as error:
        return context | {"problem": redaction.redact_sentence(str(error), visible(request.user))}
    others = apply_changes(state.seen, [DefinitionChange(state.existing, None)]) if state.existing else state.seen
    return context | {"advice": advice(definition, visible_definitions(others, sees), stats)}


@require_http_methods(["GET", "POST"])
@permission_required(Permission.DRAFT)
def delete(request: HttpRequest) -> HttpResponse:
    """Delete one definition, at once or in a draft."""
    state = EditorState.of(request)
    if state.existing is None:
        raise Http404("The address does not name a definition.")
    if request.method == "POST":
        return _save(request, state, None)
    context = {"definition": state.existing, "editor": state, "xml": xml_fragment_of(state.existing)}
    return render(request, "routing/editor/delete.html", context)
