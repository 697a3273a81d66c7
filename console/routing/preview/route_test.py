"""Trying: the way of a message that nobody sends, and a selector on it, as far as its asker may know."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.selectors import compile_selector
from brokerapp.selectors.explain import ClauseExplanation, explain
from console.access.permissions import Verb, pattern_filter, require, visible
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
    """What came of it, by which definitions; `reasons`: why it does not come to a place, where that was asked."""

    preview: RoutePreview
    definitions: Definitions
    reasons: list | None = None


def visible_stats(request: HttpRequest) -> Stats:
    """The numbers of what one sees."""
    return visible_snapshot(mirror().current(), visible(request.user)).stats


def preview_route(request: HttpRequest, specimen: SampleMessage, draft: Draft | None, why: str = "") -> RouteTestResult:
    """The way of the message by what is in force, or by a draft's definitions. Raises BrokerError, PermissionDenied."""
    require(request, Verb.SEE, specimen.target)
    asked = Destination.parse(why, DestinationKind.QUEUE) if why else None
    if asked is not None:
        require(request, Verb.SEE, asked)
    current = gateway().definitions()
    definitions = apply_changes(current, draft.read_changes()) if draft else current
    told = gateway().explain(specimen.target, specimen.values, specimen.body, definitions if draft else None)
    definitions = visible_definitions(definitions, pattern_filter(request.user))
    found = build_preview(visible_route(told, visible(request.user)), specimen, definitions, visible_stats(request))
    return RouteTestResult(
        found, definitions, explain_missing(asked, found, specimen.target, definitions) if asked else None
    )


def test_selector(selector: str, specimen: SampleMessage, is_strict: bool) -> ClauseExplanation:
    """The selector on the message, clause by clause. Raises SelectorSyntaxError."""
    return explain(compile_selector(selector, is_strict), specimen.selector_view({"destination": specimen.destination}))
