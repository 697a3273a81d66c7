"""Drafts of the routing: the list beside the history, one draft with what it changes, and each step it can take."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError, DefinitionConflict, DefinitionRefused
from console.access.permissions import Verb, has_permission, pattern_filter, permission_required, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.routing.definitions.definition_values import change_rows, conflict_rows
from console.routing.definitions.rollout import report_rollout
from console.routing.definitions.versions import latest_version, undoable_change
from console.routing.definitions.visibility import visible_changes, visible_definitions
from console.routing.definitions.xml_fragment import diff_files
from console.routing.drafts import draft_service
from console.routing.drafts.actions import STEPS
from console.routing.drafts.models import Draft
from console.routing.editor.advice import advice

#: What is said of a request for approval that was taken.
ASKED = "Approval requested. Users who may apply routing are notified."
#: What is said of a draft that was not applied because of a conflict.
NOT_APPLIED = "Not applied: the same definitions were changed by another user. Resolve the conflicts below."


@require_GET
@permission_required(Verb.SEE)
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """One draft: what it changes, what stands in its way, what was said about it."""
    found, sees = _get_draft_or_404(request, draft_id), pattern_filter(request.user)
    context = {"draft": found, "remarks": found.remarks.all()}
    try:
        changes = visible_changes(found.read_changes(), sees)
    except DefinitionRefused as error:
        return render(request, "routing/drafts/draft.html", context | {"unreadable": str(error)})
    told: dict[str, list[str]] = {}
    if found.is_open:
        standing = draft_service.status_of(changes, gateway().definitions())
        stats, proposed = (
            visible_snapshot(mirror().current(), visible(request.user)).stats,
            visible_definitions(standing.proposed, sees),
        )
        applying = Verb.RECORD if changes and not any(each.changes_routing for each in changes) else Verb.ROUTE
        told = {each.id: advice(each.after, proposed, stats) for each in changes if each.after is not None}
        context |= {
            "standing": standing,
            "clashes": [(each, conflict_rows(each)) for each in standing.conflicts],
            "clashing": {each.change.id for each in standing.conflicts},
            "applying": applying.name,
            "can_apply": has_permission(request.user, applying),
        }
        try:
            context["lines"] = diff_files(
                visible_definitions(standing.current, sees),
                visible_definitions(standing.resolved, sees),
                settings.SLUICE.broker_name,
            )
        except DefinitionRefused as error:
            context["unwritable"] = str(error)
    elif (undo := undoable_change(latest_version(sees))) and undo.version.number == found.applied_version:
        context["undo"] = undo
    context["changes"] = [(each, change_rows(each), told.get(each.id, ())) for each in changes]
    return render(request, "routing/drafts/draft.html", context)


def _get_draft_or_404(request: HttpRequest, draft_id: int) -> Draft:
    found = get_object_or_404(Draft, pk=draft_id)
    if not draft_service.is_visible(found, pattern_filter(request.user)):
        raise Http404("There is no such draft.")
    return found


@require_POST
@permission_required(Verb.DRAFT)
def step(request: HttpRequest, draft_id: int, what: str) -> HttpResponse:
    """One step of a draft; see STEPS."""
    found = _get_draft_or_404(request, draft_id)
    if what not in STEPS:
        raise Http404(f"A draft knows no step {what}.")
    try:
        STEPS[what](request, found, request.POST)
        if what == "apply":
            report_rollout(request, found.applied_version)
        elif what == "ask":
            messages.success(request, ASKED)
    except DefinitionConflict:
        messages.warning(request, NOT_APPLIED)
    except (DefinitionRefused, BrokerError) as error:
        messages.error(request, f"{str(error)[:1].upper()}{str(error)[1:]}.")
    return redirect("draft", draft_id=found.pk)
