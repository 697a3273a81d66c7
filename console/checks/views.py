"""Page of the checks of the installation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.checks.results import CheckResult, Finding, Level, summary
from console.access.permissions import Permission, permission_required, require_everywhere
from console.checks import service

#: Label and look of the badge of each level.
BADGES = {
    Level.FAILURE: ("Failed", "badge-act"),
    Level.WARNING: ("Warning", "badge-look"),
    Level.OK: ("OK", "badge-good"),
    Level.SKIPPED: ("Skipped", ""),
}
#: Levels that something is to be done about, the most serious first.
PROBLEMS = (Level.FAILURE, Level.WARNING)


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result as a table shows it: a row for each finding, with the label and the look of its badge."""

    result: CheckResult

    @property
    def title(self) -> str:
        """Return the title of the check."""
        return self.result.title

    @property
    def rows(self) -> list[tuple[str, str, Finding]]:
        """Return the findings with their badges."""
        return [(*BADGES[each.level], each) for each in self.result.findings]


@require_GET
@permission_required(Permission.CHECK)
def checks(request: HttpRequest) -> HttpResponse:
    """Show what the checks found last."""
    require_everywhere(request, Permission.CHECK)
    found = service.latest()
    results = found.results if found is not None else ()
    in_order = [each for each in results if each.level not in PROBLEMS]
    context = {
        "found": found,
        "summary": summary(results),
        "problems": [ShownResult(each) for level in PROBLEMS for each in results if each.level is level],
        "sections": [
            (name, [ShownResult(each) for each in rows])
            for name, rows in groupby(in_order, lambda each: each.section)
        ],
    }
    return render(request, "checks/checks.html", context)


@require_POST
@permission_required(Permission.CHECK)
def run_checks(request: HttpRequest) -> HttpResponse:
    """Run the checks, and show what they found."""
    require_everywhere(request, Permission.CHECK)
    service.run()
    return redirect("checks")
