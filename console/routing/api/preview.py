"""REST operations that preview routes, test selectors and list routing issues. Nothing is sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Router, Schema
from pydantic import BeforeValidator, Field

from brokerapp.model.jms.typed_text import ALL_TYPE_NAMES
from console.access.permissions import pattern_filter, visible
from console.access.roles import Permission
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Text
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.routing.definitions.visibility import visible_definitions
from console.routing.drafts import draft_service
from console.routing.map.findings import find_routing_issues
from console.routing.preview import route_test
from console.routing.preview.sample_message import MAX_BODY, SampleMessage

router = Router(tags=["routing"])


class SampleMessageIn(RequestBody):
    """A message that is not sent."""

    destination: str
    headers: dict[str, str] = Field({}, description="Headers and properties")
    types: dict[str, Literal[ALL_TYPE_NAMES]] = Field(
        {}, description="Of a message from a JMS client: types of its properties by name"
    )
    body: str = Field("", max_length=MAX_BODY)

    def sample_message(self) -> SampleMessage:
        """Return the message as pages have it."""
        if self.types:
            return SampleMessage.typed(self.destination, self.headers, self.types, self.body)
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

    at: Text
    target: Text
    depth: int
    outcome: bool | None
    by: str
    words: str = Field(validation_alias="result")
    selector: str
    clause: ClauseOut | None


class RouteTargetOut(Schema):
    """A destination that receives a copy."""

    destination: Text
    seen_as: Text
    exists: bool
    sentence: str


class RouteOut(Schema):
    """The route that a message would take."""

    steps: list[RouteStepOut]
    places: list[RouteTargetOut] = Field(validation_alias="targets")
    unnamed: int = Field(
        validation_alias="hidden_targets", description="Number of further targets, hidden (no permission)"
    )
    untold: int = Field(validation_alias="hidden_steps", description="Number of steps left out")
    problem: str


class SelectorTestIn(SampleMessageIn):
    """A selector and the message to test it on."""

    destination: str = ""
    selector: str
    strict: bool = Field(False, description="Do not convert text headers to numbers, as ActiveMQ")


@operation(router, "POST", "/preview", Permission.SEE, response=RouteOut)
def preview_route(request: HttpRequest, wanted: RoutePreviewIn) -> Any:
    """Preview the route of a message. Nothing is sent."""
    draft = (
        draft_service.get_open_draft(str(wanted.draft), pattern_filter(request.user))
        if wanted.draft is not None
        else None
    )
    if wanted.draft is not None and draft is None:
        raise Http404(f"No open draft {wanted.draft}.")
    return route_test.preview_route(request, wanted.sample_message(), draft).preview


@operation(router, "POST", "/selector", Permission.SEE, response=ClauseOut)
def test_selector(request: HttpRequest, wanted: SelectorTestIn) -> Any:
    """Test a selector on a message: each clause is true, false or unknown, with the reason."""
    return route_test.test_selector(wanted.selector, wanted.sample_message(), wanted.strict)


class RoutingFindingOut(Schema):
    """An unused, shadowed or ineffective routing definition."""

    sort: Annotated[str, BeforeValidator(lambda kind: kind.name.lower())] = Field(validation_alias="kind")
    title: str
    sentence: str
    definition: str
    destination: Text | None
    urgent: bool = Field(validation_alias="is_urgent")


@operation(router, "GET", "/findings", Permission.SEE, response=list[RoutingFindingOut])
def list_findings(request: HttpRequest) -> Any:
    """List unused, shadowed or ineffective routing definitions."""
    stats = visible_snapshot(mirror().current(), visible(request.user)).stats
    return find_routing_issues(visible_definitions(gateway().definitions(), pattern_filter(request.user)), stats)
