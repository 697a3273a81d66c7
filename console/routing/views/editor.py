"""The editor of definitions: the cards, a form for each kind, what is said beside it, saved to a draft or applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.errors import DefinitionConflict, DefinitionRefused
from brokerapp.model.definitions import Definitions
from console.access import redaction
from console.access.permissions import Verb, pattern_filter, permission_required, visible
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
from console.routing.definitions.rollout import report_rollout
from console.routing.definitions.visibility import is_visible, visible_definitions
from console.routing.definitions.xml_fragment import diff_fragments, xml_fragment_of
from console.routing.drafts import draft_service
from console.routing.drafts.actions import apply_draft, require_apply_permission, require_draft_permission
from console.routing.drafts.models import Draft
from console.routing.editor.advice import advice
from console.routing.editor.forms import KINDS, TargetRow, form_for

#: What the editor can look like: steps with questions, or every option by ActiveMQ's names.
FORM_STYLES = ("guided", "expert")
#: Drafts offered to add to.
MAX_DRAFTS = 20


@require_GET
@permission_required(Verb.DRAFT)
def choose(request: HttpRequest) -> HttpResponse:
    """The cards: what can be defined."""
    query = f"?{urlencode({'draft': request.GET['draft']})}" if request.GET.get("draft") else ""
    return render(request, "routing/editor/kind_choice.html", {"kinds": KINDS, "query": query})


@dataclass(frozen=True, slots=True)
class EditorState:
    """What is edited: the definitions as the form was opened on them, and the item that is replaced, if one is."""

    draft: Draft | None
    current: Definitions  #: in force
    seen: Definitions  #: as the one who edits sees them: those, when the form was opened, with the draft's changes
    existing: Definition | None

    @staticmethod
    def of(request: HttpRequest) -> EditorState:
        """The bench that the address, and the form as it was opened, describe. Raises Http404."""
        current = gateway().definitions()
        sees = pattern_filter(request.user)
        draft = _draft(request, sees)
        opened = request.POST.get("version", "")
        seen = gateway().definitions(int(opened)) if opened.isdecimal() and len(opened) < 10 else current
        if draft is not None:
            seen = apply_changes(current, draft.read_changes())
        replacing = request.GET.get("id")
        existing = definitions_by_id(seen).get(replacing) if replacing else None
        if replacing and not is_visible(existing, sees):
            raise Http404(f"There is no definition {replacing}. Somebody may have deleted or renamed it.")
        return EditorState(draft, current, seen, existing)

    def query(self, **more: str) -> str:
        """The address's query for this item and draft."""
        values = {"id": id_of(self.existing) if self.existing else "", "draft": self.draft.pk if self.draft else ""}
        kept = {name: value for name, value in {**values, **more}.items() if value}
        return f"?{urlencode(kept)}" if kept else ""

    def proposed(self, new: Definition | None) -> Definitions:
        """The definitions with the new item in place. Raises DefinitionRefused where they cannot work."""
        change = DefinitionChange(self.existing, new)
        others = definitions_by_id(self.seen)
        if new is not None and id_of(new) in others and id_of(new) != (self.existing and id_of(self.existing)):
            raise DefinitionRefused(f"{label_of(new)} {title_of(new)} is defined already")
        proposed = apply_changes(self.seen, [change])
        gateway().check(proposed)
        return proposed


def _draft(request: HttpRequest, sees: Sees) -> Draft | None:
    wanted = request.POST.get("draft") or request.GET.get("draft") or ""
    draft = draft_service.get_open_draft(wanted, sees)
    if draft is None and wanted.isdecimal():
        raise Http404(f"There is no open draft {wanted}: it may have been applied or dropped.")
    return draft


@require_http_methods(["GET", "POST"])
@permission_required(Verb.DRAFT)
def edit(request: HttpRequest, kind: str = "") -> HttpResponse:
    """Create a definition of a kind, or edit the one whose id is `id`; saved to a draft, or put in force at once."""
    if kind and kind not in KINDS:
        raise Http404(f"{kind} is no kind of definition.")
    bench = EditorState.of(request)
    if not kind and bench.existing is None:
        raise Http404("Which definition? The address names none.")
    kind = kind_of(bench.existing) if bench.existing else kind
    form = form_for(kind, request.POST if request.method == "POST" else None, bench.existing)
    refusal = ""
    if request.method == "POST" and form.is_valid():
        try:
            return _save(request, bench, form.definition())
        except DefinitionRefused as error:
            refusal = redaction.redact_sentence(str(error), visible(request.user))
    context = _editor(request, kind, form, bench) | {"refusal": refusal}
    return render(request, "routing/editor/editor.html", context, status=400 if request.method == "POST" else 200)


def _save(request: HttpRequest, bench: EditorState, new: Definition | None) -> HttpResponse:
    """Keep the change in a draft, or apply it by way of one, which stays when it cannot be applied."""
    change = DefinitionChange(bench.existing, new)
    if change.before == change.after:
        raise DefinitionRefused("No changes to save")
    require_draft_permission(request, [change])
    bench.proposed(new)
    author = request.user.get_username()
    at_once = request.POST.get("do") == "apply" and bench.draft is None
    if at_once:
        require_apply_permission(request, [change])
    if bench.draft is not None:
        draft = bench.draft
        with trail.recording(request, "draft", draft.name, before=change.to_json()["before"]) as record:
            draft_service.add_change(draft, author, change)
            record.after = change.to_json()["after"]
        return redirect("draft", draft_id=draft.pk)
    name = request.POST.get("comment", "").strip() or f"{_DONE[change.what]} {title_of(change.after or change.before)}"
    version = int(request.POST["version"]) if request.POST.get("version", "").isdecimal() else bench.current.version
    with trail.recording(request, "draft", name, before=change.to_json()["before"]) as record:
        draft = draft_service.create_draft(author, name, [change], version)
        record.after = change.to_json()["after"]
    if not at_once:
        messages.success(request, "Kept in a draft. Nothing is in force yet.")
        return redirect("draft", draft_id=draft.pk)
    try:
        saved = apply_draft(request, draft)
    except (DefinitionRefused, DefinitionConflict) as error:
        messages.warning(
            request,
            f"Not applied, but kept in a draft: {redaction.redact_sentence(str(error), visible(request.user))}.",
        )
        return redirect("draft", draft_id=draft.pk)
    report_rollout(request, saved.version)
    return redirect(reverse("routing") + f"?{urlencode(_landing(change, saved.version))}")


_DONE = {"new": "Define", "changed": "Change", "removed": "Delete"}


def _landing(change: DefinitionChange, version: int) -> dict[str, Any]:
    """Where the map goes after a change: to what is new."""
    return {"fresh": id_of(change.after), "version": version} if change.after is not None else {}


@require_POST
@permission_required(Verb.DRAFT)
def check(request: HttpRequest, kind: str) -> HttpResponse:
    """What the page says beside the form while it is filled in: problems, advice, what matches, XML, difference."""
    if kind not in KINDS:
        raise Http404(f"{kind} is no kind of definition.")
    form = form_for(kind, request.POST)
    form.is_valid()
    return render(request, "routing/editor/check.html", _editor(request, kind, form, EditorState.of(request)))


def _editor(request: HttpRequest, kind: str, form: Any, bench: EditorState) -> dict[str, Any]:
    """What the editor shows about the form as it stands."""
    look = request.GET.get("form", "")
    context = {
        "kind": kind, "about": KINDS[kind], "form": form, "version": bench.current.version, "bench": bench,
        "look": look if look in FORM_STYLES else FORM_STYLES[0],
        "looks": [(each, bench.query(form=each)) for each in FORM_STYLES],
        "blank_leg": TargetRow(), "check_url": reverse("check-definition", kwargs={"kind": kind}) + bench.query(),
        "delete_url": reverse("delete-definition") + bench.query(),
        "drafts": [] if bench.draft
        else draft_service.list_visible(Draft.OPEN_STATES, pattern_filter(request.user), MAX_DRAFTS),
        "live_fields": [name for name in ("name", "prefix") if name in form.fields],
    }  # fmt: skip
    item = form.definition() if form.is_bound and form.is_valid() else bench.existing
    if form.is_bound and not form.is_valid():
        item = None
    stats = visible_snapshot(mirror().current(), visible(request.user)).stats
    context["matched"] = match_destinations(item, stats) if item else form.match_destinations(stats)
    if item is None:
        return context
    context |= {
        "item": item, "xml": xml_fragment_of(item), "targets": composite_targets(item, stats),
        "is_unchanged": form.is_bound and item == bench.existing,
        "lines": diff_fragments(bench.existing, item) if bench.existing not in (None, item) else [],
    }  # fmt: skip
    try:
        bench.proposed(item)
    except DefinitionRefused as error:
        return context | {"problem": redaction.redact_sentence(str(error), visible(request.user))}
    rest = apply_changes(bench.seen, [DefinitionChange(bench.existing, None)]) if bench.existing else bench.seen
    return context | {"advice": advice(item, visible_definitions(rest, pattern_filter(request.user)), stats)}


@require_http_methods(["GET", "POST"])
@permission_required(Verb.DRAFT)
def delete(request: HttpRequest) -> HttpResponse:
    """Take one definition away, at once or in a draft."""
    bench = EditorState.of(request)
    if bench.existing is None:
        raise Http404("Which definition? The address names none.")
    if request.method == "POST":
        return _save(request, bench, None)
    context = {"item": bench.existing, "bench": bench, "xml": xml_fragment_of(bench.existing)}
    return render(request, "routing/editor/delete.html", context)
