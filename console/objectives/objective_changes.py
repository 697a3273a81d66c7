"""Changes of objectives, made on a page or through the API: each in the audit log."""

from __future__ import annotations

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from console.access.permissions import Permission, has_permission, require, visible
from console.audit import trail
from console.objectives.forms import ObjectiveForm
from console.objectives.models import Objective


def visible_objectives(request: HttpRequest) -> list[Objective]:
    """Return the objectives whose queues or topics the user may all see, by name: their numbers are of all of these."""
    sees = visible(request.user)
    return [each for each in Objective.objects.all() if sees(each.destination)]


def get_visible(request: HttpRequest, objective_id: int) -> Objective:
    """Return an objective. Raises Http404 also if the user may not see all its queues or topics."""
    found = get_object_or_404(Objective, pk=objective_id)
    if not visible(request.user)(found.destination):
        raise Http404("Objective not found.")
    return found


def get_editable(request: HttpRequest, objective_id: int) -> Objective:
    """Return an objective that the user may change. Raises Http404, PermissionDenied."""
    found = get_visible(request, objective_id)
    require(request, Permission.ALERT, found.destination)
    return found


def may_change(request: HttpRequest, objective: Objective) -> bool:
    """Return whether the user may change an objective."""
    return has_permission(request.user, Permission.ALERT, objective.destination)


def save(request: HttpRequest, form: ObjectiveForm) -> Objective:
    """Store the objective of a valid form. Raises PermissionDenied."""
    objective, is_new = form.instance, form.instance.pk is None
    require(request, Permission.ALERT, objective.destination)
    before = None if is_new else {"objective": str(Objective.objects.get(pk=objective.pk).target)}
    action = "create objective" if is_new else "change objective"
    with trail.recording(request, action, objective.name, before) as change:
        objective.author = request.user.get_username()
        saved = form.save()
        change.after = {"objective": str(saved.target)}
    return saved


def delete(request: HttpRequest, objective: Objective) -> None:
    """Delete an objective."""
    with trail.recording(request, "delete objective", objective.name, before={"objective": str(objective.target)}):
        objective.delete()
