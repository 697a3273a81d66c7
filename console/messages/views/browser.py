"""Pages that browse a queue's messages: by number, time and selector, with a live view and saved selectors."""

from __future__ import annotations

from django.contrib import messages as notes
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET, require_POST

from analytics.model.routing_coverage import policy_of
from brokerapp.errors import DestinationNotFound, RequestRefused, SelectorSyntaxError
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsePage
from brokerapp.openwire.shown_messages import jms_form
from brokerapp.selectors import compile_selector
from console.access.masking import check_selector, mask_message
from console.access.permissions import Permission, has_permission, permission_required, queue_from_url
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.destinations.views.deleted import deleted_page
from console.messages.body_format import render_body
from console.messages.browse_query import PAGE_SIZE, BrowseRequest, newest_seq
from console.messages.dead_letter_groups import is_dead_letter_queue
from console.messages.jobs import job_service
from console.messages.jobs.models import SavedSelector
from console.messages.message_view import MessageView
from console.ui.formatting.url_query import query_string
from console.ui.preferences import timezones

#: Selectors that one user may save.
MAX_SELECTORS = 100


@require_GET
@permission_required(Permission.BROWSE, queue_from_url)
def messages(request: HttpRequest, name: str) -> HttpResponse:
    """Show a page of a queue's messages: `after` is the number to continue from, `selector` filters."""
    queue = Destination.queue(name)
    if request.GET.get("at"):
        return _jump(request, queue)
    if request.htmx and request.htmx.target == "selector-state":
        return render(request, "messages/selector_state.html", _selector_state(request, queue))
    try:
        context = _list(request, queue)
    except DestinationNotFound:
        if request.htmx:
            raise
        return deleted_page(request, queue)
    if request.htmx and request.htmx.target == "follow":
        page = query_string(selector=context["selector"], end=1)  # of the live view, not of its request for new rows
        return render(request, "messages/new_rows.html", context | {"query": page})
    return render(request, "messages/browser.html", context)


@require_GET
@permission_required(Permission.BROWSE, queue_from_url)
def message(request: HttpRequest, name: str, seq: int) -> HttpResponse:
    """Show one message: only the panel for htmx, else the list with the panel open.

    A message that is no longer in the queue redirects to its journey if the link has its `id`.
    """
    destination, id = Destination.queue(name), request.GET.get("id", "")
    try:
        found = gateway().message(destination, seq).messages
    except DestinationNotFound:
        if not (id or request.htmx):
            return deleted_page(request, destination)
        found = []
    if not found and not request.htmx:
        if id:
            return redirect("message-page", id=id)
        raise Http404(job_service.not_found_text(destination, seq))
    panel = {
        "destination": destination,
        "seq": seq,
        "query": _query(request),
        "id": id,
        "is_dlq": _is_dlq(destination),
    }
    if not found:
        panel["not_found"] = job_service.not_found_text(destination, seq)
    else:
        shown = mask_message(request.user, found[0], destination)
        panel |= {
            "row": MessageView(shown),
            "renderings": [] if shown.withheld else render_body(shown.body, jms_form(shown.headers)),
        }
    if request.htmx:
        return render(request, "messages/message_panel.html", panel)
    return render(request, "messages/browser.html", _list(request, destination) | {"selected": seq} | panel)


@require_GET
@permission_required(Permission.READ, queue_from_url)
def body(request: HttpRequest, name: str, seq: int) -> HttpResponse:
    """Return the whole body as a file, masked for the user."""
    queue = Destination.queue(name)
    found = gateway().message(queue, seq).messages
    if not found:
        raise Http404(job_service.not_found_text(queue, seq))
    shown = mask_message(request.user, found[0], queue)
    if shown.withheld:
        raise RequestRefused(shown.withheld)
    file = f"{name.rpartition('.')[2][:60]}-{seq}.bin"
    response = HttpResponse(shown.body, content_type="application/octet-stream")
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=file)
    return response


def _selector_state(request: HttpRequest, queue: Destination) -> dict:
    """Validate a selector while it is typed; nothing is searched."""
    selector = request.GET.get("selector", "").strip()
    try:
        check_selector(request.user, selector, queue)
    except SelectorSyntaxError as wrong:
        return {"wrong": wrong}
    except RequestRefused as refused:
        return {"problem": str(refused)}
    return {"is_good": bool(selector)}


def _list(request: HttpRequest, destination: Destination) -> dict:
    browse = BrowseRequest.from_query(request.GET)
    selector, follows = browse.selector, request.GET.get("follow") == "1"
    context = {
        "destination": destination, "selector": selector, "browse": browse, "query": _query(request),
        "follows": follows, "saved": _saved(request, destination),
        "is_dlq": _is_dlq(destination), "at": request.GET.get("from", ""),
        "can": {each.name.lower(): has_permission(request.user, each, destination) for each in Permission},
    }  # fmt: skip
    try:
        check_selector(request.user, selector, destination)
        known = (
            newest_seq(destination) if follows else 0
        )  # read before the page: messages that arrive meanwhile are not skipped
        page = browse.read_page(destination)
    except SelectorSyntaxError as wrong:
        return context | {"wrong": wrong}
    asked = compile_selector(selector).properties if selector else frozenset()
    older, newer = browse.older(page), browse.newer(page)
    partial = page.next is not None and len(page.messages) < PAGE_SIZE
    return context | {
        "page": page,
        "rows": [MessageView(mask_message(request.user, each, destination), asked) for each in browse.ordered(page)],
        "partial": partial,
        "older": older and older.url(),
        "newer": newer and newer.url(),
        "turns": _page_links(browse, older, newer, partial),
        "switch": len(page.messages) > 1 or bool(page.next) or not browse.at_start,
        "oldest": BrowseRequest(selector).url(),
        "newest": BrowseRequest(selector, newest_first=True).url(),
        "follow": query_string(selector=selector, end=1, follow=1),
        "tally": None if request.htmx else browse.count_matches(destination, page),
        "last": max(known, _last(browse, page)),
        "in_turn": browse.at_start and not _has_priorities(destination),
    }


def _page_links(
    browse: BrowseRequest, older: BrowseRequest | None, newer: BrowseRequest | None, partial: bool
) -> list[tuple[str, str, str]]:
    """Return the links to the neighboring pages in reading order: relation, URL, label."""
    back = (older, "Scan older messages" if partial and browse.is_backwards else "Older")
    on = (newer, "Scan newer messages" if partial and not browse.is_backwards else "Newer")
    pages = zip(("prev", "next"), (on, back) if browse.newest_first else (back, on), strict=True)
    return [(rel, page.url(), label) for rel, (page, label) in pages if page]


def _last(browse: BrowseRequest, page: BrowsePage) -> int:
    """Return the number from which the live view continues."""
    if page.next is not None and not browse.is_backwards:
        return page.next
    return page.messages[-1].seq if page.messages else browse.after


def _has_priorities(queue: Destination) -> bool:
    """Return whether messages of the queue are consumed by priority."""
    policy = policy_of(gateway().definitions(), queue)
    return policy is not None and bool(policy.prioritized_messages)


def _is_dlq(queue: Destination) -> bool:
    stats = mirror().current().stats.get(queue)
    return stats is not None and is_dead_letter_queue(stats)


def _jump(request: HttpRequest, queue: Destination) -> HttpResponse:
    """Redirect to the page that starts at `at`, or ends there if newest first.

    `at` is a message number, or a time in the user's time zone.
    """
    text, browse = request.GET["at"].strip(), BrowseRequest.from_query(request.GET)
    if text.isdecimal() and len(text) < 19:
        after, before = max(0, int(text) - 1), int(text) + 1
    else:
        moment = timezones.parse_moment(text, timezones.current_zone_name())
        if moment is None:
            raise RequestRefused(f"{text[:40]!r} must be a message number or a time such as 2026-01-31T14:30")
        after = gateway().seq_at(queue, int(moment.timestamp() * 1000))
        before = after + 1
    place = {"before": before, "end": 1} if browse.newest_first else {"after": after}
    path = reverse("messages", kwargs={"name": queue.name})
    return redirect(path + query_string(selector=browse.selector, **place, **{"from": text}))


def _query(request: HttpRequest) -> str:
    kept = QueryDict(mutable=True)
    for name in ("selector", "after", "from", "end", "before"):
        if request.GET.get(name):
            kept[name] = request.GET[name]
    return f"?{kept.urlencode()}" if kept else ""


# -- saved selectors


def _saved(request: HttpRequest, queue: Destination):
    mine = Q(owner=request.user) | Q(shared=True)
    return SavedSelector.objects.filter(mine, Q(queue=queue.name) | Q(queue="")).select_related("owner")


@require_POST
@permission_required(Permission.BROWSE, queue_from_url)
def save_selector(request: HttpRequest, name: str) -> HttpResponse:
    """Save a selector under a name, for this queue or all, private or shared."""
    text, title = request.POST.get("selector", "").strip(), request.POST.get("title", "").strip()
    if not title or len(title) > 100:
        raise RequestRefused("Enter a name of at most 100 characters.")
    if not text:
        raise RequestRefused("Enter a selector.")
    compile_selector(text)
    if SavedSelector.objects.filter(owner=request.user).exclude(name=title).count() >= MAX_SELECTORS:
        raise RequestRefused(f"You have {MAX_SELECTORS} saved selectors, which is the limit. Delete one first.")
    fields = {
        "text": text, "queue": "" if request.POST.get("everywhere") == "true" else name,
        "shared": request.POST.get("shared") == "true",
    }  # fmt: skip
    with trail.recording(request, "keep selector", title) as change:
        SavedSelector.objects.update_or_create(owner=request.user, name=title, defaults=fields)
        change.after = fields
    notes.success(request, f"Selector {title} saved.")
    return redirect(reverse("messages", kwargs={"name": name}) + query_string(selector=text))


@require_POST
@permission_required(Permission.BROWSE, queue_from_url)
def delete_selector(request: HttpRequest, name: str, saved_id: int) -> HttpResponse:
    """Delete one of the user's own selectors."""
    saved = get_object_or_404(SavedSelector, pk=saved_id, owner=request.user)
    with trail.recording(request, "delete selector", saved.name):
        saved.delete()
    return redirect("messages", name=name)
