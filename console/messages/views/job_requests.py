"""Work on messages of a queue: what is to be done is looked at first, with its blast radius, and then asked for."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.engine.editing.message_properties import EDITABLE, TYPES
from brokerapp.engine.editing.operator_message import MAX_BODY
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import MatchCount
from console.access import redaction
from console.access.masking import mask_message
from console.access.permissions import (
    Verb,
    has_permission,
    permission_message,
    permission_required,
    queue_from_url,
    visible,
)
from console.broker.mirror import mirror
from console.messages.body_format import as_typed
from console.messages.jobs import edit_message, job_service, requests
from console.messages.jobs.edit_input import KEPT, REMOVED, Changes, shown_rows
from console.messages.jobs.message_form import FIELDS, Draft
from console.messages.jobs.models import Job
from console.messages.jobs.spec import FEW, MAX_SELECTION, SENDING_AGAIN, Wish
from console.messages.message_view import Listed
from console.ui.formatting.number_format import pluralize_count

Action = Job.Action

#: What each action is about, for the page that asks for it: what becomes of one message, or of each of several.
LEADS = {
    Action.RETRY: "{} goes back to where it failed, with who sent it again, when and how often; without its failure.",
    Action.MOVE: "{} leaves this queue and is in the other in the same moment, routed like what is sent there.",
    Action.COPY: "{} stays here, and the other destination gets it as if it had been sent there.",
    Action.EDIT: "{} gives its place to a copy with these changes, under an id of its own. All else of it stays.",
    Action.REMOVE: "{} is gone for good. What a consumer holds stays with it.",
}
#: What the form of an edit says of bodies and of persistence.
ENCODINGS = ((KEPT, "Kept"), ("text", "Text"), ("base64", "Base64"))
PERSISTENCES = (("", "as it is"), ("true", "yes: survives a restart"), ("false", "no"))


@require_http_methods(["GET", "POST"])
@permission_required(Verb.BROWSE, queue_from_url)
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Look at what an action would do, and ask for it. A form with `look` is only looked at."""
    queue = Destination.queue(name)
    given = request.POST if request.method == "POST" else request.GET
    is_asked = request.method == "POST" and "look" not in given
    if request.method == "GET" and given.get("action") == Action.EDIT and len(seqs := _seqs(given)) == 1:
        return redirect("edit-message", name=name, seq=seqs[0])
    error = ""
    try:
        wish = _wish(queue, given)
        requests.check(request, wish)
        if is_asked and not (error := _not_typed(wish, given)):
            return _asked(request, wish)
    except BrokerError as refused:
        error, wish = redaction.redact_sentence(str(refused), visible(request.user)), _wish(queue, given, lenient=True)
    chosen = requests.chosen(wish)
    requests.at_once(request, wish)
    lacked = [verb for verb in wish.verbs if not has_permission(request.user, verb, queue)]
    sees = visible(request.user, wish.verb)
    context = {
        "destination": queue, "wish": wish, "action": Action(wish.action), "error": error,
        "lead": LEADS[wish.action].format("It" if chosen.tally == MatchCount(1) else "Each"),
        "chosen": chosen, "radius": requests.blast_radius(request, wish, chosen), "few": FEW, "given": given,
        "must_type": _must_type(wish), "must_say": wish.action in SENDING_AGAIN,
        "may_at_once": not lacked, "needs": permission_message(lacked[0], queue) if lacked else "",
        "preview": requests.preview_of(request, wish, chosen), **_edit_form(wish, given),
        "destinations": sorted(each.name for each in mirror().current().stats if each.is_queue and sees(each))[:1000],
        "one": (
            Listed(mask_message(request.user, chosen.sample[0], queue))
            if wish.seqs and len(chosen.sample) == 1 else None
        ),
    }  # fmt: skip
    template = "messages/jobs/request_form.html" if request.htmx else "messages/jobs/request.html"
    return render(request, template, context, status=400 if error and not request.htmx else 200)


def _wish(queue: Destination, given: QueryDict, lenient: bool = False) -> Wish:
    action, target = given.get("action", ""), given.get("target", "").strip()
    if action not in LEADS:
        raise Http404(f"Nothing is called {action!r}.")
    try:
        to = Destination.parse(target) if target else None
    except BrokerError:
        if not lenient:
            raise
        to = None
    seqs = _seqs(given)
    rate = given.get("rate", "").strip()
    if rate and not (rate.isdecimal() and len(rate) < 7) and not lenient:
        raise RequestRefused(f"rate: {rate!r} is no number of messages a second")
    return Wish(
        action, queue, to, seqs[: MAX_SELECTION + 1], given.get("selector", "").strip(),
        int(rate) if rate.isdecimal() and len(rate) < 7 else 0, given.get("reason", ""), given.get("name", ""),
        _edit(action, given, lenient), _upto(given),
    )  # fmt: skip


def _upto(given: QueryDict) -> int:
    """Return the number of the newest message that was counted when the form was shown; 0: none was said."""
    text = given.get("upto", "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _edit(action: str, given: QueryDict, lenient: bool) -> MessageEdit | None:
    """What is to be changed of each message, where that is the action."""
    if action != Action.EDIT:
        return None
    try:
        return Changes.read(given).edit()
    except RequestRefused:
        if not lenient:
            raise
        return MessageEdit()


def _edit_form(wish: Wish, given: QueryDict) -> dict[str, Any]:
    if wish.action != Action.EDIT:
        return {}
    changes = Changes.read(given)
    return {
        "changes": changes,
        "rows": shown_rows(changes.rows),
        "types": [*TYPES, REMOVED],
        "editable": EDITABLE,
        "encodings": ENCODINGS,
        "persistence": PERSISTENCES,
        "looked": "look" in given,
    }


def _seqs(given: QueryDict) -> tuple[int, ...]:
    """The numbers of the messages chosen. What is none is not passed over: without any, all messages are meant."""
    texts = given.getlist("seq")
    if wrong := [each for each in texts if not (each.isdecimal() and len(each) < 19)]:
        raise Http404(f"{wrong[0][:40]!r} is no message's number.")
    return tuple(dict.fromkeys(map(int, texts)))


def _must_type(wish: Wish) -> bool:
    """Whether the queue's name must be typed: what deletes many, or all, is not done by a slip."""
    return wish.action == Action.REMOVE and not 0 < len(wish.seqs) <= FEW


def _not_typed(wish: Wish, given: QueryDict) -> str:
    typed = given.get("typed", "")
    return f"{typed!r} is not {wish.queue.name!r}." if _must_type(wish) and typed != wish.queue.name else ""


def _asked(request: HttpRequest, wish: Wish) -> HttpResponse:
    job = requests.ask(request, wish)
    is_few = job.state != Job.State.ASKED and 0 < len(wish.seqs) <= FEW
    if job.state == Job.State.ASKED:
        messages.info(request, "It is above your limit: an operator is asked to approve it.")
    elif is_few and not request.htmx:
        _tell(request, job)
    if request.htmx:
        sees = visible(request.user)
        rows = [(row, job_service.detail_of(row, sees)) for row in job.outcomes.all()[:FEW]] if is_few else []
        return render(
            request, "messages/jobs/request_result.html", {"job": job, "rows": rows, "action": Action(job.action)}
        )
    back = request.POST.get("back", "")
    if is_few and back.startswith("/") and not back.startswith("//"):
        return redirect(back)
    return redirect("job", job_id=job.id)


def _tell(request: HttpRequest, job: Job) -> None:
    sees = visible(request.user)
    failed = [f"{row.get_outcome_display()}{f': {job_service.detail_of(row, sees)}' if row.detail else ''}"
              for row in job.outcomes.all() if row.outcome != "done"]  # fmt: skip
    if job.done:
        messages.success(request, f"{Action(job.action).label}: done with {pluralize_count(job.done, 'message')}.")
    for each in failed[:3]:
        messages.error(request, each)


# -- edit one and send it again


@require_http_methods(["GET", "POST"])
@permission_required(Verb.EDIT, queue_from_url)
def edit(request: HttpRequest, name: str, seq: int) -> HttpResponse:
    """Change a message and send it, in its own place or elsewhere; the old one goes in the same moment. A form with
    `look` is only looked at: where it would come."""
    queue = Destination.queue(name)
    message, error, reason = edit_message.to_edit(request, queue, seq), "", request.POST.get("reason", "").strip()
    draft = Draft.read(request.POST) if request.method == "POST" else Draft.of(message, queue)
    if request.method == "POST" and "look" not in request.POST:
        try:
            answer = edit_message.send_instead(request, queue, message, draft.message(), reason)
            places = ", ".join(redaction.redact_names(answer["places"], visible(request.user)))
            messages.success(request, f"Sent as {answer['id']} to {places or 'nowhere: nothing keeps it'}.")
            return redirect(reverse("message-page", kwargs={"id": answer["id"]}))
        except BrokerError as refused:
            error = redaction.redact_sentence(str(refused), visible(request.user))
    looked = None
    try:
        looked = requests.radius_of_edited(request, queue, message, draft.message())
    except BrokerError as refused:
        error = error or redaction.redact_sentence(str(refused), visible(request.user))
    is_wrong = bool(error) and request.method == "POST" and not request.htmx
    context = {
        "destination": queue, "message": message, "radius": looked, "draft": draft, "error": error, "reason": reason,
        "types": list(TYPES), "max_body": MAX_BODY, "is_text": as_typed(message.body) is not None,
        "fields": [(each, draft.fields.get(each, "")) for each in FIELDS],
    }  # fmt: skip
    return render(request, "messages/jobs/edit_message.html", context, status=400 if is_wrong else 200)
