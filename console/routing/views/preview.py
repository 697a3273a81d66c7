"""Preview the route of a message that is not sent, and test selectors on it, clause by clause."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from brokerapp.errors import BrokerError, DestinationNotFound, InvalidDestination, SelectorSyntaxError
from brokerapp.model.definitions import CompositeDestination, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG
from console.access.masking import mask_message
from console.access.permissions import Permission, has_permission, pattern_filter, permission_required, require
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft
from console.routing.map.graph import consumer_queues_by_topic
from console.routing.preview.route_test import preview_route, test_selector, visible_stats
from console.routing.preview.sample_message import SampleMessage

#: Maximum characters of the permanent link of a preview.
MAX_LINK = 1500
#: Queues that are searched for the latest message of a topic.
MAX_SCANNED_QUEUES = 8
#: Maximum drafts offered.
MAX_DRAFTS = 20


@require_http_methods(["GET", "POST"])
@permission_required(Permission.SEE)
def preview(request: HttpRequest) -> HttpResponse:
    """Preview the route of a message: entered, or picked by `queue` and `seq`; with a draft's definitions if named."""
    form = request.POST if request.method == "POST" else request.GET
    sample, picked = _read_sample(request, form)
    draft = _draft(request, form)
    context: dict[str, Any] = {
        "sample": sample, "picked": picked, "why": form.get("why", "").strip(), "draft": draft,
        "drafts": draft_service.list_visible(Draft.OPEN_STATES, pattern_filter(request.user), MAX_DRAFTS),
        "names": sorted(str(each) for each in visible_stats(request))[:500],
    }  # fmt: skip
    if sample.destination and not sample.error:
        try:
            context |= _route_context(request, sample, draft, context["why"])
            context["link"] = _link(form)
        except BrokerError as error:
            context["refused"] = str(error)
    status = 400 if sample.error or "refused" in context else 200
    return render(request, "routing/preview/preview.html", context, status=status if request.method == "POST" else 200)


def _route_context(request: HttpRequest, sample: SampleMessage, draft: Draft | None, why: str) -> dict[str, Any]:
    result = preview_route(request, sample, draft, why)
    target = sample.target
    context: dict[str, Any] = {
        "preview": result.preview,
        "start": target,
        "start_exists": target in visible_stats(request),
    }
    return context | ({"reasons": result.reasons} if result.reasons is not None else {})


def _read_sample(request: HttpRequest, form: QueryDict) -> tuple[SampleMessage, Destination | None]:
    queue, seq = form.get("queue", ""), form.get("seq", "")
    if request.method == "GET" and queue and seq.isdecimal() and len(seq) < 20:
        where = Destination.queue(queue)
        require(request, Permission.BROWSE, where)
        found = gateway().message(where, int(seq)).messages
        if not found:
            return SampleMessage(error="Message not found. It was consumed, deleted or has expired."), None
        return _masked_sample(request, found[0], where), where
    return SampleMessage.read(form), None


def _masked_sample(request: HttpRequest, message: Any, where: Destination) -> SampleMessage:
    """Copy a browsed message, masked for this user."""
    shown = mask_message(request.user, message, where)
    return SampleMessage.of(shown, shown.withheld)


def _draft(request: HttpRequest, form: QueryDict) -> Draft | None:
    wanted = form.get("draft", "")
    if not (wanted.isdecimal() and len(wanted) < 10):
        return None
    draft = get_object_or_404(Draft, pk=int(wanted))
    if not draft_service.is_visible(draft, pattern_filter(request.user)):
        raise Http404("Draft not found.")
    return draft


def _link(form: QueryDict) -> str:
    """Return an address that shows the same preview; "" if it would be too long."""
    names = ("destination", "headers", "body", "draft", "why", "queue", "seq")
    query = urlencode({name: form[name] for name in names if form.get(name)})
    return f"?{query}" if query and len(query) <= MAX_LINK else ""


# -- the selector tester


@require_http_methods(["GET", "POST"])
@permission_required(Permission.SEE)
def tester(request: HttpRequest) -> HttpResponse:
    """Test a selector on a message: each clause is true, false or unknown, with the reason.

    For htmx only a part: a dialog with the latest message of the destination `near`, or the result.
    """
    form = request.POST if request.method == "POST" else request.GET
    sample, picked = _read_sample(request, form)
    if request.method == "GET" and form.get("near") and not sample.headers:
        sample, picked = _sample_near(request, form)
    selector, is_strict = form.get("selector", "").strip(), form.get("strict") == "on"
    context = {"sample": sample, "picked": picked, "selector": selector, "is_strict": is_strict}
    context |= _selector_context(selector, sample, is_strict)
    if not request.htmx:
        return render(request, "routing/preview/selector_tester.html", context)
    part = "result" if request.method == "POST" else "form"
    return render(request, f"routing/preview/tester_{part}.html", context | {"is_dialog": True})


def _selector_context(selector: str, sample: SampleMessage, is_strict: bool) -> dict[str, Any]:
    if not selector or sample.error:
        return {}
    try:
        return {"clause": test_selector(selector, sample, is_strict)}
    except SelectorSyntaxError as wrong:
        return {"wrong": wrong}


def _sample_near(request: HttpRequest, form: QueryDict) -> tuple[SampleMessage, Destination | None]:
    """Return the latest message of a destination, for a topic from one of the queues that it is copied to."""
    try:
        near = Destination.parse(form["near"])
    except InvalidDestination:
        return SampleMessage(), None
    for queue in _queues_of(near):
        if not has_permission(request.user, Permission.BROWSE, queue):
            continue
        try:
            page = gateway().browse_back(queue, END_OF_LOG, limit=1, selector=None)
        except DestinationNotFound:
            continue
        if page.messages:
            return _masked_sample(request, page.messages[-1], queue), queue
    return SampleMessage(destination=str(near)), None


def _queues_of(near: Destination) -> list[Destination]:
    """Return the queues that may hold messages sent to a destination: itself or its targets."""
    found = [near] if near.is_queue else []
    existing = list(mirror().current().stats)
    for each in gateway().definitions().virtual_destinations:
        match each:
            case VirtualTopic() if not near.is_queue:
                queues = consumer_queues_by_topic(each, existing).get(near.name, [])
                found += [Destination.queue(name) for name in queues]
            case CompositeDestination() if each.destination == near:
                found += [leg.destination for leg in each.legs if leg.destination.is_queue]
    return list(dict.fromkeys(found))[:MAX_SCANNED_QUEUES]
