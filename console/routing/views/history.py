"""Changes of the routing: living drafts and the versions that were in force, what each changed; revert and undo."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError, DefinitionConflict, DefinitionRefused
from console.access.permissions import Verb, needs, touched
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.definitions.changes import between
from console.routing.definitions.definition_values import rows_of
from console.routing.definitions.rollout import announce
from console.routing.definitions.versions import Version, latest, said_to, undo_of
from console.routing.definitions.visibility import known
from console.routing.definitions.xml_fragment import file_difference
from console.routing.drafts import draft_service
from console.routing.drafts.actions import rights_for
from console.routing.drafts.models import Draft

#: Versions on a page, and drafts that are shown.
PAGE_SIZE, MAX_DRAFTS = 25, 50


@require_GET
@needs(Verb.SEE)
def changes(request: HttpRequest) -> HttpResponse:
    """Drafts that wait, and the versions that were in force, newest first."""
    page = max(1, int(text)) if (text := request.GET.get("page", "")).isdecimal() and len(text) < 6 else 1
    found = [Version.of(each) for each in gateway().history(limit=page * PAGE_SIZE + 1)]
    sees = touched(request.user)
    versions = found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    closed = request.GET.get("drafts") == "closed"
    states = (Draft.State.APPLIED, Draft.State.DROPPED) if closed else Draft.LIVING
    context = {
        "drafts": draft_service.some(states, sees, MAX_DRAFTS), "closed": closed,
        "versions": said_to(versions, sees),
        "page": page, "more": len(found) > page * PAGE_SIZE, "undo": undo_of(said_to(found[:1], sees)),
    }  # fmt: skip
    return render(request, "routing/history.html", context)


@require_GET
@needs(Verb.SEE)
def version(request: HttpRequest, number: int) -> HttpResponse:
    """What one version changed, and what going back to it would."""
    sees = touched(request.user)
    about = said_to([_about(number)], sees)[0]
    new, old, current = (known(gateway().definitions(each), sees) for each in (number, number - 1, None))
    context = {"version": about, "current": current, "changes": [(each, rows_of(each)) for each in between(old, new)]}
    context["back"] = [(each, rows_of(each)) for each in between(current, new)]
    try:
        context["lines"] = file_difference(old, new, settings.SLUICE.broker_name)
    except DefinitionRefused as error:
        context["unwritable"] = str(error)
    return render(request, "routing/version.html", context)


def _about(number: int) -> Version:
    newest = latest()
    if not newest or not 1 <= number <= newest[0].number:
        raise Http404(f"There is no version {number} of the routing.")
    found = gateway().history(limit=newest[0].number - number + 1)
    return Version.of(found[-1])


@require_POST
@needs(Verb.ROUTE)
def revert(request: HttpRequest, number: int) -> HttpResponse:
    """Put a former version in force again."""
    _about(number)
    _go_back(request, number, int(request.POST.get("current") or 0), f"Revert to version {number}")
    return redirect("routing")


@require_POST
@needs(Verb.ROUTE)
def undo(request: HttpRequest) -> HttpResponse:
    """Undo the last change, if it is still the last, and no older than UNDO_TIME."""
    found, asked = undo_of(latest()), request.POST.get("version", "")
    if found is None or str(found.version.number) != asked:
        messages.warning(request, "Not undone: this is no longer the last change, or it is older than ten minutes.")
        return redirect("routing-changes")
    _go_back(request, found.version.number - 1, found.version.number, f"Undo version {found.version.number}")
    return redirect("routing")


def _go_back(request: HttpRequest, number: int, opened: int, comment: str) -> None:
    """Put a version in force again, unless something else is in force than when it was asked for."""
    try:
        current, wanted = gateway().definitions(), gateway().definitions(number)
        made = between(current, wanted)
        rights_for(request, made)
        before = [each.to_json()["before"] for each in made]
        with trail.recording(request, "revert routing", f"version {number}", before=before) as record:
            if opened != current.version:
                raise DefinitionConflict(opened, current.version)
            saved = gateway().define(replace(wanted, version=current.version), request.user.get_username(), comment)
            record.after = [each.to_json()["after"] for each in made]
        announce(request, saved.version, f"Reverted to version {number}.")
    except BrokerError as error:
        messages.error(request, f"Not reverted: {error}.")
