"""Page of the checks of the installation."""

from __future__ import annotations

from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.checks.results import Level
from console.access.permissions import Permission, permission_required, require_everywhere
from console.checks import service

#: Label and look of the badge of each level.
BADGES = {
    Level.FAILURE: ("Failed", "badge-act"),
    Level.WARNING: ("Warning", "badge-look"),
    Level.OK: ("OK", "badge-good"),
    Level.SKIPPED: ("Skipped", ""),
}


@require_GET
@permission_required(Permission.CHECK)
def checks(request: HttpRequest) -> HttpResponse:
    """Show what the checks found last."""
    require_everywhere(request, Permission.CHECK)
    found = service.latest()
    results = found.results if found is not None else ()
    context = {
        "found": found,
        "sections": [
            (name, [(each, [(BADGES[one.level], one) for one in each.findings]) for each in rows])
            for name, rows in groupby(results, lambda each: each.section)
        ],
        "counts": [(*BADGES[level], sum(each.level is level for each in results)) for level in BADGES],
    }
    return render(request, "checks/checks.html", context)


@require_POST
@permission_required(Permission.CHECK)
def run_checks(request: HttpRequest) -> HttpResponse:
    """Run the checks, and show what they found."""
    require_everywhere(request, Permission.CHECK)
    service.run()
    return redirect("checks")
