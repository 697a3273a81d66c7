"""Messages of a queue, browsed without consuming them: by number and time, filtered by a selector, followed live."""

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
from brokerapp.selectors import compile_selector
from console.access.masking import check_selector, mask_message
from console.access.permissions import Verb, has_permission, permission_required, queue_from_url
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.destinations.views.deleted import gone
from console.messages.body_format import readings
from console.messages.browse_query import PAGE_SIZE, Look, newest, url
from console.messages.dead_letter_groups import is_dead_letter_queue
from console.messages.jobs import job_service
from console.messages.jobs.models import SavedSelector
from console.messages.message_view import Listed
from console.ui.preferences import timezones

#: Selectors one user may keep.
MAX_SELECTORS = 100


@require_GET
@permission_required(Verb.BROWSE, queue_from_url)
def messages(request: HttpRequest, name: str) -> HttpResponse:
    """A page of the queue's messages: `after` is the seq to go on from, `selector` what they must match."""
    queue = Destination.queue(name)
    if request.GET.get("at"):
        return _at(request, queue)
    if request.htmx and request.htmx.target == "selector-state":
        return render(request, "messages/selector_state.html", _state(request, queue))
    try:
        context = _list(request, queue)
    except DestinationNotFound:
        if request.htmx:
            raise
        return gone(request, queue)
    if request.htmx and request.htmx.target == "follow":
        page = url(selector=context["selector"], end=1)  # of the page that follows, and not of what it asks for
        return render(request, "messages/new_rows.html", context | {"query": page})
    return render(request, "messages/browser.html", context)


@require_GET
@permission_required(Verb.BROWSE, queue_from_url)
def message(request: HttpRequest, name: str, seq: int) -> HttpResponse:
    """One message: the panel alone to htmx, else the list with the panel open. `id`, when the link knew it, leads to
    the permanent page of a message that is not there any more."""
    destination, id = Destination.queue(name), request.GET.get("id", "")
    try:
        found = gateway().message(destination, seq).messages
    except DestinationNotFound:
        if not (id or request.htmx):
            return gone(request, destination)
        found = []
    if not found and not request.htmx:
        if id:
            return redirect("message-page", id=id)
        raise Http404(job_service.gone(destination, seq))
    panel = {
        "destination": destination,
        "seq": seq,
        "query": _query(request),
        "id": id,
        "is_dead": _is_dead(destination),
    }
    if not found:
        panel["gone"] = job_service.gone(destination, seq)
    else:
        shown = mask_message(request.user, found[0], destination)
        panel |= {"row": Listed(shown), "readings": [] if shown.withheld else readings(shown.body)}
    if request.htmx:
        return render(request, "messages/message_panel.html", panel)
    return render(request, "messages/browser.html", _list(request, destination) | {"selected": seq} | panel)


@require_GET
@permission_required(Verb.READ, queue_from_url)
def body(request: HttpRequest, name: str, seq: int) -> HttpResponse:
    """The whole body as a file; masked as everywhere."""
    queue = Destination.queue(name)
    found = gateway().message(queue, seq).messages
    if not found:
        raise Http404(job_service.gone(queue, seq))
    shown = mask_message(request.user, found[0], queue)
    if shown.withheld:
        raise RequestRefused(shown.withheld)
    file = f"{name.rpartition('.')[2][:60]}-{seq}.bin"
    response = HttpResponse(shown.body, content_type="application/octet-stream")
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=file)
    return response


def _state(request: HttpRequest, queue: Destination) -> dict:
    """Whether what is typed is a selector that may be asked for, told while one types; nothing is looked for."""
    selector = request.GET.get("selector", "").strip()
    try:
        check_selector(request.user, selector, queue)
    except SelectorSyntaxError as wrong:
        return {"wrong": wrong}
    except RequestRefused as refused:
        return {"problem": str(refused)}
    return {"is_good": bool(selector)}


def _list(request: HttpRequest, destination: Destination) -> dict:
    look = Look.asked(request.GET)
    selector, follows = look.selector, request.GET.get("follow") == "1"
    context = {
        "destination": destination, "selector": selector, "look": look, "query": _query(request),
        "follows": follows, "saved": _saved(request, destination),
        "is_dead": _is_dead(destination), "at": request.GET.get("from", ""),
        "can": {verb.name.lower(): has_permission(request.user, verb, destination) for verb in Verb},
    }  # fmt: skip
    try:
        check_selector(request.user, selector, destination)
        known = newest(destination) if follows else 0  # before the look: what comes meanwhile is not passed over
        page = look.page(destination)
    except SelectorSyntaxError as wrong:
        return context | {"wrong": wrong}
    asked = compile_selector(selector).properties if selector else frozenset()
    older, newer = look.older(page), look.newer(page)
    partial = page.next is not None and len(page.messages) < PAGE_SIZE
    return context | {
        "page": page,
        "rows": [Listed(mask_message(request.user, each, destination), asked) for each in look.ordered(page)],
        "partial": partial,
        "older": older and older.url(),
        "newer": newer and newer.url(),
        "turns": _turns(look, older, newer, partial),
        "switch": len(page.messages) > 1 or bool(page.next) or not look.at_start,
        "oldest": Look(selector).url(),
        "newest": Look(selector, newest_first=True).url(),
        "follow": url(selector=selector, end=1, follow=1),
        "tally": None if request.htmx else look.tally(destination, page),
        "last": max(known, _last(look, page)),
        "in_turn": look.at_start and not _has_priorities(destination),
    }


def _turns(look: Look, older: Look | None, newer: Look | None, partial: bool) -> list[tuple[str, str, str]]:
    """The pages around one, in the order in which it is read: what each is to it, its address, its label."""
    back = (older, "Look further back" if partial and look.goes_back else "Older")
    on = (newer, "Look further" if partial and not look.goes_back else "Newer")
    pages = zip(("prev", "next"), (on, back) if look.newest_first else (back, on), strict=True)
    return [(rel, page.url(), label) for rel, (page, label) in pages if page]


def _last(look: Look, page: BrowsePage) -> int:
    """The number behind which there is what the page does not have: who follows goes on from there."""
    if page.next is not None and not look.goes_back:
        return page.next
    return page.messages[-1].seq if page.messages else look.after


def _has_priorities(queue: Destination) -> bool:
    """Whether the urgent are consumed before the old."""
    policy = policy_of(gateway().definitions(), queue)
    return policy is not None and bool(policy.prioritized_messages)


def _is_dead(queue: Destination) -> bool:
    stats = mirror().current().stats.get(queue)
    return stats is not None and is_dead_letter_queue(stats)


def _at(request: HttpRequest, queue: Destination) -> HttpResponse:
    """Where the messages of a moment begin, or end where the newest are first: `at` is a number, or a time by the clock
    of whoever asks.
    """
    text, look = request.GET["at"].strip(), Look.asked(request.GET)
    if text.isdecimal() and len(text) < 19:
        after, before = max(0, int(text) - 1), int(text) + 1
    else:
        moment = timezones.parse_moment(text, timezones.current_zone_name())
        if moment is None:
            raise RequestRefused(f"{text[:40]!r} is neither a number nor a time such as 2026-01-31T14:30")
        after = gateway().place_at(queue, int(moment.timestamp() * 1000))
        before = after + 1
    place = {"before": before, "end": 1} if look.newest_first else {"after": after}
    path = reverse("messages", kwargs={"name": queue.name})
    return redirect(path + url(selector=look.selector, **place, **{"from": text}))


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
@permission_required(Verb.BROWSE, queue_from_url)
def save_selector(request: HttpRequest, name: str) -> HttpResponse:
    """Keep a selector under a name, for this queue or for all, for oneself or for everybody."""
    text, title = request.POST.get("selector", "").strip(), request.POST.get("title", "").strip()
    if not title or len(title) > 100:
        raise RequestRefused("give the selector a name of at most 100 characters")
    if not text:
        raise RequestRefused("there is no selector to keep: write one first")
    compile_selector(text)
    if SavedSelector.objects.filter(owner=request.user).exclude(name=title).count() >= MAX_SELECTORS:
        raise RequestRefused(f"you have {MAX_SELECTORS} selectors, as many as there can be: delete one first")
    fields = {
        "text": text, "queue": "" if request.POST.get("everywhere") == "true" else name,
        "shared": request.POST.get("shared") == "true",
    }  # fmt: skip
    with trail.recording(request, "keep selector", title) as change:
        SavedSelector.objects.update_or_create(owner=request.user, name=title, defaults=fields)
        change.after = fields
    notes.success(request, f"The selector {title} is kept.")
    return redirect(reverse("messages", kwargs={"name": name}) + url(selector=text))


@require_POST
@permission_required(Verb.BROWSE, queue_from_url)
def forget_saved(request: HttpRequest, name: str, saved_id: int) -> HttpResponse:
    """Delete a selector of one's own."""
    saved = get_object_or_404(SavedSelector, pk=saved_id, owner=request.user)
    with trail.recording(request, "delete selector", saved.name):
        saved.delete()
    return redirect("messages", name=name)
