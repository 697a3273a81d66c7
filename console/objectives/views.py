"""Serve the pages of objectives."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analytics.model.service_level import FAST_THRESHOLD, SLOW_THRESHOLD
from console.access.permissions import Permission, permission_required
from console.objectives import objective_changes
from console.objectives.attainment import measure
from console.objectives.forms import ObjectiveForm
from console.objectives.models import Objective


@require_GET
@permission_required(Permission.SEE)
def objectives(request: HttpRequest) -> HttpResponse:
    """Show all objectives with their attainment."""
    found = objective_changes.visible_objectives(request)
    rows = [
        (each, measure(each.target), objective_changes.may_change(request, each), _new_rules(each)) for each in found
    ]
    return render(request, "objectives/objectives.html", {"rows": rows})


def _new_rules(objective: Objective) -> list[tuple[str, str]]:
    """Return labels and URLs of the forms of alert rules that watch an objective."""
    rules = (
        ("Fast burn (1 h and 5 min)", "burn-fast", FAST_THRESHOLD),
        ("Slow burn (6 h and 30 min)", "burn-slow", SLOW_THRESHOLD),
    )
    about = {"pattern": str(objective.destination)}
    return [
        (label, f"{reverse('new-alert')}?{urlencode({'metric': metric, 'threshold': threshold, **about})}")
        for label, metric, threshold in rules
    ]


@require_http_methods(["GET", "POST"])
@permission_required(Permission.ALERT)
def edit(request: HttpRequest, objective_id: int | None = None) -> HttpResponse:
    """Create an objective, or change one."""
    row = objective_changes.get_editable(request, objective_id) if objective_id else None
    initial = {"pattern": request.GET["pattern"]} if "pattern" in request.GET else {}
    form = ObjectiveForm(request.POST or None, instance=row, initial=initial)
    name = row.name if row else ""
    if request.method == "POST" and form.is_valid():
        saved = objective_changes.save(request, form)
        messages.success(request, f"Objective “{saved.name}” saved.")
        return redirect("objectives")
    context = {
        "form": form,
        "row": row,
        "name": name,
        "found": measure(row.target) if row and not form.errors else None,
    }
    return render(request, "objectives/objective.html", context, status=400 if request.method == "POST" else 200)


@require_POST
@permission_required(Permission.ALERT)
def delete(request: HttpRequest, objective_id: int) -> HttpResponse:
    """Delete an objective."""
    row = objective_changes.get_editable(request, objective_id)
    name = row.name
    objective_changes.delete(request, row)
    messages.success(request, f"Objective “{name}” deleted.")
    return redirect("objectives")
