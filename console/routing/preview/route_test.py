"""Preview routes and test selectors for one user, within the user's permissions. Nothing is sent."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.selectors import compile_selector
from brokerapp.selectors.explain import ClauseExplanation, explain
from console.access.permissions import Permission, pattern_filter, require, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.routing.definitions.changes import apply_changes
from console.routing.definitions.visibility import visible_definitions, visible_route
from console.routing.drafts.models import Draft
from console.routing.preview.route_preview import RoutePreview, Stats, build_preview, explain_missing
from console.routing.preview.sample_message import SampleMessage


@dataclass(frozen=True, slots=True)
class RouteTestResult:
    """A previewed route and its definitions; `reasons`: why a destination does not receive the message, if asked."""

    preview: RoutePreview
    definitions: Definitions
    reasons: list | None = None


def visible_stats(request: HttpRequest) -> Stats:
    """Return the statistics of the destinations that the user sees."""
    return visible_snapshot(mirror().current(), visible(request.user)).stats


def preview_route(request: HttpRequest, sample: SampleMessage, draft: Draft | None, why: str = "") -> RouteTestResult:
    """Preview the route by the active definitions or a draft's. Raises BrokerError, PermissionDenied."""
    require(request, Permission.SEE, sample.target)
    asked = Destination.parse(why, DestinationKind.QUEUE) if why else None
    if asked is not None:
        require(request, Permission.SEE, asked)
    current = gateway().definitions()
    definitions = apply_changes(current, draft.read_changes()) if draft else current
    told = gateway().explain(sample.target, sample.values, sample.body, definitions if draft else None)
    definitions = visible_definitions(definitions, pattern_filter(request.user))
    found = build_preview(visible_route(told, visible(request.user)), sample, definitions, visible_stats(request))
    return RouteTestResult(
        found, definitions, explain_missing(asked, found, sample.target, definitions) if asked else None
    )


def test_selector(selector: str, sample: SampleMessage, is_strict: bool) -> ClauseExplanation:
    """Evaluate a selector on a message, clause by clause. Raises SelectorSyntaxError."""
    return explain(compile_selector(selector, is_strict), sample.selector_view({"destination": sample.destination}))
