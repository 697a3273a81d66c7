"""REST operations that preview routes, test selectors and list routing issues. Nothing is sent."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router, Schema
from pydantic import Field

from brokerapp.selectors.explain import ClauseExplanation
from console.access.permissions import pattern_filter, visible
from console.access.roles import Verb
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.routing.definitions.visibility import visible_definitions
from console.routing.drafts import draft_service
from console.routing.map.findings import find_routing_issues
from console.routing.preview import route_test
from console.routing.preview.route_preview import RouteStep
from console.routing.preview.sample_message import MAX_BODY, SampleMessage

router = Router(tags=["routing"])


class SampleMessageIn(RequestBody):
    """A message that is not sent."""

    destination: str
    headers: dict[str, str] = {}
    body: str = Field("", max_length=MAX_BODY)

    def sample_message(self) -> SampleMessage:
        """Return the message as pages have it."""
        return SampleMessage(self.destination, body=self.body, values=self.headers)


class RoutePreviewIn(SampleMessageIn):
    """A message to preview the route of."""

    draft: Count | None = Field(None, description="Draft whose definitions to use; without: the active definitions")


class ClauseOut(Schema):
    """A condition with its value (null: unknown), the reason, and its parts."""

    text: str
    value: bool | None
    reason: str
    clauses: list[ClauseOut]


class RouteStepOut(Schema):
    """A step of a route: the definition that applied, its target and the result."""

    at: str
    target: str
    depth: int
    outcome: bool | None
    by: str
    words: str
    selector: str
    clause: ClauseOut | None


class RouteTargetOut(Schema):
    """A destination that receives a copy."""

    destination: str
    seen_as: str
    exists: bool
    sentence: str


class RouteOut(Schema):
    """The route that a message would take."""

    steps: list[RouteStepOut]
    places: list[RouteTargetOut]
    unnamed: int = Field(description="Number of further targets, hidden (no permission)")
    untold: int = Field(description="Number of steps left out")
    problem: str


class SelectorTestIn(SampleMessageIn):
    """A selector and the message to test it on."""

    destination: str = ""
    selector: str
    strict: bool = Field(False, description="Do not convert text headers to numbers, as ActiveMQ")


@operation(router, "POST", "/preview", Verb.SEE, response=RouteOut)
def preview_route(request: HttpRequest, wanted: RoutePreviewIn) -> Any:
    """Preview the route of a message. Nothing is sent."""
    draft = (
        draft_service.get_open_draft(str(wanted.draft), pattern_filter(request.user))
        if wanted.draft is not None
        else None
    )
    if wanted.draft is not None and draft is None:
        raise Http404(f"No open draft {wanted.draft}.")
    found = route_test.preview_route(request, wanted.sample_message(), draft).preview
    places = [
        {"destination": str(e.destination), "seen_as": str(e.seen_as), "exists": e.exists, "sentence": e.sentence}
        for e in found.targets
    ]
    return {
        "steps": list(map(_step_out, found.steps)),
        "places": places,
        "unnamed": found.hidden_targets,
        "untold": found.hidden_steps,
        "problem": found.problem,
    }


@operation(router, "POST", "/selector", Verb.SEE, response=ClauseOut)
def test_selector(request: HttpRequest, wanted: SelectorTestIn) -> Any:
    """Test a selector on a message: each clause is true, false or unknown, with the reason."""
    return clause_out(route_test.test_selector(wanted.selector, wanted.sample_message(), wanted.strict))


def _step_out(step: RouteStep) -> dict[str, Any]:
    return {
        "at": str(step.at), "target": str(step.target), "depth": step.depth, "outcome": step.outcome, "by": step.by,
        "words": step.result, "selector": step.selector, "clause": step.clause and clause_out(step.clause),
    }  # fmt: skip


def clause_out(clause: ClauseExplanation) -> dict[str, Any]:
    """Return a clause as ClauseOut has it."""
    parts = list(map(clause_out, clause.clauses))
    return {"text": clause.text, "value": clause.value, "reason": clause.reason, "clauses": parts}


class RoutingFindingOut(Schema):
    """An unused, shadowed or ineffective routing definition."""

    sort: str
    title: str
    sentence: str
    definition: str
    destination: str | None
    urgent: bool


@operation(router, "GET", "/findings", Verb.SEE, response=list[RoutingFindingOut])
def list_findings(request: HttpRequest) -> Any:
    """List unused, shadowed or ineffective routing definitions."""
    stats = visible_snapshot(mirror().current(), visible(request.user)).stats
    return [
        {"sort": each.kind.name.lower(), "title": each.title, "sentence": each.sentence, "definition": each.definition,
         "destination": str(each.destination) if each.destination else None, "urgent": each.is_urgent}
        for each in find_routing_issues(
            visible_definitions(gateway().definitions(), pattern_filter(request.user)), stats
        )
    ]  # fmt: skip
