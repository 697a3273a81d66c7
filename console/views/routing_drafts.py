"""Drafts of the routing: the list beside the history, one draft with what it changes, and each step it can take."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.definitions import Definitions
from brokerapp.errors import BrokerError, DefinitionConflict, DefinitionRefused
from console import audit
from console.access import Verb, needs, require, touched
from console.gateway import gateway
from console.routing import drafts
from console.routing.changes import Change, places_of, resolved
from console.routing.facts import rows_of, rows_of_clash
from console.routing.fragment import file_difference
from console.routing.models import Draft
from console.routing.sight import known, known_changes
from console.routing.versions import latest, undo_of


def rights_for(request: HttpRequest, changes: Iterable[Change]) -> None:
    """Raise PermissionDenied unless the user may put these changes in force, wherever they reach."""
    require(request, Verb.ROUTE)
    for place in {place for each in changes for item in (each.before, each.after) for place in places_of(item)}:
        require(request, Verb.ROUTE, place)


def apply_draft(request: HttpRequest, draft: Draft) -> Definitions:
    """Put a draft in force: rights, audit, and the change itself. Raises DefinitionRefused, DefinitionConflict."""
    changes = draft.read()
    rights_for(request, changes)
    before = [each["before"] for each in draft.changes]
    with audit.recording(request, "apply routing", ", ".join(each.id for each in changes), before=before) as record:
        saved = drafts.apply(draft, request.user.get_username())
        record.after = [each["after"] for each in draft.changes]
    return saved


@require_GET
@needs(Verb.SEE)
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """One draft: what it changes, what stands in its way, what was said about it."""
    found, sees = _existing(request, draft_id), touched(request.user)
    context = {"draft": found, "remarks": found.remarks.all()}
    try:
        changes = known_changes(found.read(), sees)
    except DefinitionRefused as error:
        return render(request, "console/routing/draft.html", context | {"unreadable": str(error)})
    context["changes"] = [(each, rows_of(each)) for each in changes]
    if found.is_living:
        standing = drafts.standing(changes, gateway().definitions())
        context |= {
            "standing": standing,
            "clashes": [(each, rows_of_clash(each)) for each in standing.clashes],
            "clashing": {each.change.id for each in standing.clashes},
        }
        try:
            context["lines"] = file_difference(
                known(standing.current, sees), known(standing.proposed, sees), settings.SLUICE.broker_name
            )
        except DefinitionRefused as error:
            context["unwritable"] = str(error)
    elif (undo := undo_of(latest(sees))) and undo.version.number == found.applied_version:
        context["undo"] = undo
    return render(request, "console/routing/draft.html", context)


def _existing(request: HttpRequest, draft_id: int) -> Draft:
    found = get_object_or_404(Draft, pk=draft_id)
    if not drafts.is_known(found, touched(request.user)):
        raise Http404("There is no such draft.")
    return found


@require_POST
@needs(Verb.DRAFT)
def step(request: HttpRequest, draft_id: int, what: str) -> HttpResponse:
    """One step of a draft; see STEPS."""
    found = _existing(request, draft_id)
    if what not in STEPS:
        raise Http404(f"A draft knows no step {what}.")
    try:
        STEPS[what](request, found)
    except DefinitionConflict:
        messages.warning(request, "Not applied: somebody changed the same definitions. Decide below what shall stand.")
    except (DefinitionRefused, BrokerError) as error:
        messages.error(request, f"{str(error)[:1].upper()}{str(error)[1:]}.")
    return redirect("draft", draft_id=found.pk)


def _apply(request: HttpRequest, found: Draft) -> None:
    saved = apply_draft(request, found)
    messages.success(request, f"In force on all nodes as version {saved.version}.")


def _recorded(request: HttpRequest, found: Draft, action: str, step: Callable[[str, str], None]) -> None:
    with audit.recording(request, f"{action} draft", found.name):
        step(request.user.get_username(), request.POST.get("text", ""))


def _ask(request: HttpRequest, found: Draft) -> None:
    state = Draft.State.ASKED
    _recorded(request, found, "ask for", lambda who, text: drafts.move(found, who, state, "asked for approval", text))
    messages.success(request, "Everybody who may apply routing sees it as waiting for approval now.")


def _return(request: HttpRequest, found: Draft) -> None:
    require(request, Verb.ROUTE)
    state = Draft.State.OPEN
    _recorded(request, found, "return", lambda who, text: drafts.move(found, who, state, "returned it", text))


def _drop(request: HttpRequest, found: Draft) -> None:
    if found.author != request.user.get_username():
        require(request, Verb.ROUTE)
    _recorded(
        request, found, "drop",
        lambda who, text: drafts.move(found, who, Draft.State.DROPPED, "dropped it", text, decided_by=who),
    )  # fmt: skip


def _remark(request: HttpRequest, found: Draft) -> None:
    if not request.POST.get("text", "").strip():
        raise DefinitionRefused("a remark needs some words")
    _recorded(request, found, "remark on", lambda who, text: drafts.note(found, who, "said", text))


def _rename(request: HttpRequest, found: Draft) -> None:
    name = request.POST.get("name", "").strip()[: drafts.MAX_NAME]
    if not name:
        raise DefinitionRefused("a draft needs a name")
    _recorded(
        request, found, "rename", lambda who, _: drafts.move(found, who, found.state, "renamed it", name, name=name)
    )


def _leave_out(request: HttpRequest, found: Draft) -> None:
    id = request.POST.get("id", "")
    kept = [each for each in found.read() if each.id != id]
    _recorded(request, found, "change", lambda who, _: drafts.rewrite(found, who, kept, "left out", id))


def _resolve(request: HttpRequest, found: Draft) -> None:
    id, keep = request.POST.get("id", ""), request.POST.get("keep") == "mine"
    standing = drafts.standing(found.read(), gateway().definitions())
    clash = next((each for each in standing.clashes if each.change.id == id), None)
    if clash is None:
        raise DefinitionRefused(f"nothing clashes about {id} any more")
    changes = resolved(found.read(), clash, keep=keep)
    what = "kept the draft's side of" if keep else "took what is in force of"
    _recorded(request, found, "change", lambda who, _: drafts.rewrite(found, who, changes, what, id))


#: Steps a draft can take, by their name in the address. All need DRAFT; those that need more ask for it.
STEPS: dict[str, Callable[[HttpRequest, Draft], None]] = {
    "apply": _apply,
    "ask": _ask,
    "return": _return,
    "drop": _drop,
    "remark": _remark,
    "rename": _rename,
    "leave-out": _leave_out,
    "resolve": _resolve,
}
