"""Show one draft with its changes, conflicts and activity, and carry out its steps."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError, DefinitionConflict, DefinitionRefused
from console.access.permissions import Permission, has_permission, pattern_filter, permission_required, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.routing.definitions.changes import DefinitionChange
from console.routing.definitions.definition_values import change_rows, conflict_rows
from console.routing.definitions.publishing import Proposal, propose
from console.routing.definitions.rollout import report_rollout
from console.routing.definitions.versions import latest_version, undoable_change
from console.routing.definitions.visibility import visible_changes, visible_definitions
from console.routing.definitions.xml_fragment import diff_files
from console.routing.drafts.actions import APPROVAL_REQUESTED, NOT_APPLIED, STEPS, get_draft_or_404
from console.routing.editor.advice import advice


@require_GET
@permission_required(Permission.SEE)
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Show a draft: its changes, what prevents applying it, and its activity."""
    found, sees = get_draft_or_404(request, draft_id), pattern_filter(request.user)
    context = {"draft": found, "remarks": found.remarks.all()}
    try:
        changes = visible_changes(found.read_changes(), sees)
    except DefinitionRefused as error:
        return render(request, "routing/drafts/draft.html", context | {"unreadable": str(error)})
    advices: dict[str, list[str]] = {}
    if found.is_open:
        proposal = propose(changes, gateway().definitions())
        stats = visible_snapshot(mirror().current(), visible(request.user)).stats
        proposed = visible_definitions(proposal.proposed, sees)
        applying = (
            Permission.RECORD if changes and not any(each.changes_routing for each in changes) else Permission.ROUTE
        )
        advices = {each.id: advice(each.after, proposed, stats) for each in changes if each.after is not None}
        context |= {
            "proposal": proposal,
            "newer_version": proposal.current.version if proposal.current.version != found.base_version else None,
            "disabled_because": _why_disabled(changes, proposal),
            "conflicts": [(each, conflict_rows(each)) for each in proposal.conflicts],
            "conflicting": {each.change.id for each in proposal.conflicts},
            "applying": applying.name,
            "can_apply": has_permission(request.user, applying),
        }
        try:
            context["lines"] = diff_files(
                visible_definitions(proposal.current, sees),
                visible_definitions(proposal.resolved, sees),
                settings.SLUICE.broker_name,
            )
        except DefinitionRefused as error:
            context["unwritable"] = str(error)
    elif (undo := undoable_change(latest_version(sees))) and undo.version.number == found.applied_version:
        context["undo"] = undo
    context["changes"] = [(each, change_rows(each), advices.get(each.id, ())) for each in changes]
    return render(request, "routing/drafts/draft.html", context)


def _why_disabled(changes: list[DefinitionChange], proposal: Proposal) -> str:
    """Say why a draft cannot be applied, or "" if it can."""
    if not changes:
        return "The draft contains no changes"
    return "" if proposal.can_apply else "Resolve the problems shown below"


@require_POST
@permission_required(Permission.DRAFT)
def step(request: HttpRequest, draft_id: int, what: str) -> HttpResponse:
    """Carry out one step of a draft, see STEPS."""
    found = get_draft_or_404(request, draft_id)
    if what not in STEPS:
        raise Http404(f"Unknown draft action {what}.")
    try:
        STEPS[what](request, found, request.POST)
        if what == "apply":
            report_rollout(request, found.applied_version)
        elif what == "ask":
            messages.success(request, APPROVAL_REQUESTED)
    except DefinitionConflict:
        messages.warning(request, NOT_APPLIED)
    except (DefinitionRefused, BrokerError) as error:
        messages.error(request, f"{str(error)[:1].upper()}{str(error)[1:]}.")
    return redirect("draft", draft_id=found.pk)
