"""REST operations on the checks of the installation."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router, Schema
from pydantic import Field

from brokerapp.checks.report import result_json
from brokerapp.checks.results import summary, worst
from console.access.permissions import require_everywhere
from console.access.roles import Permission
from console.api.common.operations import operation
from console.checks import service

router = Router(tags=["checks"])
_LEVELS = "skipped, ok, warning or failure"


class FindingOut(Schema):
    """One thing that a check found."""

    level: str = Field(description=_LEVELS)
    text: str = Field(description="What was found")
    action: str = Field(description="What to do; empty where nothing has to be done")


class CheckOut(Schema):
    """What one check found."""

    id: str
    section: str
    title: str
    level: str = Field(description=f"The most serious level of its findings: {_LEVELS}")
    milliseconds: int = Field(description="Time that it took")
    findings: list[FindingOut]


class ChecksOut(Schema):
    """What all checks found, and when."""

    taken: datetime
    level: str = Field(description=f"The most serious level of all checks: {_LEVELS}")
    summary: str
    checks: list[CheckOut]


@operation(router, "GET", "", Permission.CHECK, response=ChecksOut)
def get_checks(request: HttpRequest) -> Any:
    """Return what the checks found last."""
    require_everywhere(request, Permission.CHECK)
    found = service.latest()
    if found is None:
        raise Http404("No checks were run since the process started.")
    return _to_json(found)


@operation(router, "POST", "", Permission.CHECK, response=ChecksOut)
def run_checks(request: HttpRequest) -> Any:
    """Run all checks, and return what they found. It takes some seconds."""
    require_everywhere(request, Permission.CHECK)
    return _to_json(service.run())


def _to_json(found: service.CheckRun) -> dict[str, Any]:
    return {
        "taken": found.taken,
        "level": worst(each.level for each in found.results).value,
        "summary": summary(found.results),
        "checks": [result_json(each) for each in found.results],
    }
