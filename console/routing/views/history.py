"""Show drafts and the history of versions; revert to a version, undo the last one."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError, DefinitionConflict, DefinitionRefused
from brokerapp.model.definitions import Definitions
from console.access.permissions import Permission, pattern_filter, permission_required
from console.broker.gateway import gateway
from console.routing.definitions.changes import diff_definitions
from console.routing.definitions.definition_values import change_rows
from console.routing.definitions.publishing import apply
from console.routing.definitions.rollout import report_rollout
from console.routing.definitions.versions import DefinitionVersion, latest_version, redact_comments, undoable_change
from console.routing.definitions.visibility import visible_definitions
from console.routing.definitions.xml_fragment import diff_files
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft
from console.ui.formatting.url_query import parse_integer

#: Versions on a page, and maximum drafts shown.
PAGE_SIZE, MAX_DRAFTS = 25, 50


@require_GET
@permission_required(Permission.SEE)
def changes(request: HttpRequest) -> HttpResponse:
    """List drafts and applied versions, newest first."""
    page = max(1, parse_integer(request.GET.get("page"), 1))
    found = [DefinitionVersion.of(each) for each in gateway().history(limit=page * PAGE_SIZE + 1)]
    sees = pattern_filter(request.user)
    versions = found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    closed = request.GET.get("drafts") == "closed"
    states = (Draft.State.APPLIED, Draft.State.DROPPED) if closed else Draft.OPEN_STATES
    context = {
        "drafts": draft_service.list_visible(states, sees, MAX_DRAFTS), "closed": closed,
        "versions": redact_comments(versions, sees),
        "page": page, "more": len(found) > page * PAGE_SIZE, "undo": undoable_change(redact_comments(found[:1], sees)),
    }  # fmt: skip
    return render(request, "routing/history.html", context)


@require_GET
@permission_required(Permission.SEE)
def version(request: HttpRequest, number: int) -> HttpResponse:
    """Show the changes of one version, and those that reverting to it would make."""
    sees = pattern_filter(request.user)
    about = redact_comments([_get_version_or_404(number)], sees)[0]
    new, old, current = (visible_definitions(gateway().definitions(each), sees) for each in (number, number - 1, None))
    context = {
        "version": about,
        "current": current,
        "changes": [(each, change_rows(each)) for each in diff_definitions(old, new)],
    }
    context["is_active"] = number == current.version
    context["revert_changes"] = [(each, change_rows(each)) for each in diff_definitions(current, new)]
    try:
        context["lines"] = diff_files(old, new, settings.SLUICE.broker_name)
    except DefinitionRefused as error:
        context["unwritable"] = str(error)
    return render(request, "routing/version.html", context)


def _get_version_or_404(number: int) -> DefinitionVersion:
    newest = latest_version()
    if not newest or not 1 <= number <= newest[0].number:
        raise Http404(f"Version {number} of the routing not found.")
    found = gateway().history(limit=newest[0].number - number + 1)
    return DefinitionVersion.of(found[-1])


@require_POST
@permission_required(Permission.ROUTE)
def revert(request: HttpRequest, number: int) -> HttpResponse:
    """Apply an earlier version again."""
    _get_version_or_404(number)
    _apply_version(request, number, int(request.POST.get("current") or 0), f"Revert to version {number}")
    return redirect("routing")


@require_POST
@permission_required(Permission.ROUTE)
def undo(request: HttpRequest) -> HttpResponse:
    """Undo the last change, if it is still the last, and not older than UNDO_TIME."""
    found, asked = undoable_change(latest_version()), request.POST.get("version", "")
    if found is None or str(found.version.number) != asked:
        messages.warning(
            request, "Not undone: another change was applied since, or the change is older than 10 minutes."
        )
        return redirect("routing-changes")
    _apply_version(request, found.version.number - 1, found.version.number, f"Undo version {found.version.number}")
    return redirect("routing")


def _apply_version(request: HttpRequest, number: int, opened: int, comment: str) -> None:
    """Apply an earlier version, unless the active version has changed since the user's page was loaded."""
    author = request.user.get_username()
    try:
        current, wanted = gateway().definitions(), gateway().definitions(number)

        def store() -> Definitions:
            if opened != current.version:
                raise DefinitionConflict(opened, current.version)
            return gateway().define(replace(wanted, version=current.version), author, comment)

        changes = diff_definitions(current, wanted)
        saved = apply(request, changes, store, action="revert routing", object=f"version {number}")
        report_rollout(request, saved.version, f"Reverted to version {number}.")
    except BrokerError as error:
        messages.error(request, f"Not reverted: {error}.")
