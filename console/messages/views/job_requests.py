"""Pages that request jobs on messages of a queue: preview, impact and confirmation."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.engine.editing.message_properties import EDIT_TYPES, EDITABLE
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import MatchCount
from console.access import redaction
from console.access.masking import mask_message
from console.access.permissions import (
    Permission,
    has_permission,
    permission_message,
    permission_required,
    queue_from_url,
    visible,
)
from console.broker.mirror import mirror
from console.messages.jobs import edit_message, job_service, requests, stored_form
from console.messages.jobs.edit_input import KEEP_BODY, REMOVE_PROPERTY, EditForm, rows_or_blank
from console.messages.jobs.message_form import CHOICES, FIELDS, MessageForm
from console.messages.jobs.models import Job
from console.messages.jobs.spec import MAX_SELECTION, RESENDING, SMALL_JOB, JobSpec
from console.messages.message_view import MessageView
from console.ui.formatting.number_format import pluralize_count
from console.ui.formatting.url_query import parse_integer, parse_seq

Action = Job.Action

#: Effect of each action, for the page that requests it; {} is the message or the messages.
EFFECTS = {
    Action.RETRY: "Sends {} to its original destination and records who resubmitted it, when and how often.",
    Action.MOVE: "Moves {} to another destination atomically, routed like a new message.",
    Action.COPY: "Copies {} to another destination, routed like a new message. The original is kept.",
    Action.EDIT: "Replaces {} by an edited copy with a new id. Fields without a change are kept.",
    Action.REMOVE: "Deletes {} permanently. In-flight messages are not affected.",
}
#: Examples of reasons that the form shows.
REASON_EXAMPLES = {Action.RETRY: "billing service restored", Action.EDIT: "corrected region code"}
#: Participles of the actions, for the messages that report success.
PARTICIPLES = {**job_service.REMOVING, Action.COPY: "copied"}
#: Choices of the edit form: bodies and persistence.
ENCODINGS = ((KEEP_BODY, "Unchanged"), ("text", "Text"), ("base64", "Base64"), ("hex", "Hex"))
PERSISTENCES = (("", "unchanged"), ("true", "yes (survives a restart)"), ("false", "no"))


@require_http_methods(["GET", "POST"])
@permission_required(Permission.BROWSE, queue_from_url)
def request_job(request: HttpRequest, name: str) -> HttpResponse:
    """Preview an action and request it. A form with `look` only updates the preview."""
    queue = Destination.queue(name)
    given = request.POST if request.method == "POST" else request.GET
    is_asked = request.method == "POST" and "look" not in given
    if request.method == "GET" and given.get("action") == Action.EDIT and len(seqs := _read_seqs(given)) == 1:
        return redirect("edit-message", name=name, seq=seqs[0])
    error = ""
    try:
        spec = _read_spec(queue, given)
        requests.check_request(request, spec)
        if is_asked and not (error := _typing_error(spec, given)):
            return _submit(request, spec)
    except BrokerError as refused:
        error = redaction.redact_sentence(str(refused), visible(request.user))
        spec = _read_spec(queue, given, lenient=True)
    chosen = requests.choose_messages(spec)
    requests.runs_immediately(request, spec)
    lacked = [permission for permission in spec.permissions if not has_permission(request.user, permission, queue)]
    sees, is_one = visible(request.user, spec.permission), bool(spec.seqs) and len(chosen.sample) == 1
    context = {
        "destination": queue, "spec": spec, "action": Action(spec.action), "error": error,
        "effect": EFFECTS[spec.action].format("the message" if chosen.tally == MatchCount(1) else "each message"),
        "chosen": chosen, "impact": requests.impact_of(request, spec, chosen), "few": SMALL_JOB, "given": given,
        "must_type": _must_type(spec), "must_say": spec.action in RESENDING,
        "may_at_once": not lacked, "needs": permission_message(lacked[0], queue) if lacked else "",
        "target_example": _target_example(spec, chosen),
        "reason_example": REASON_EXAMPLES.get(Action(spec.action), "sent twice by mistake"),
        "preview": requests.first_preview(request, spec, chosen), **_edit_form(spec, given),
        "destinations": sorted(each.name for each in mirror().current().stats if each.is_queue and sees(each))[:1000],
        "one": MessageView(mask_message(request.user, chosen.sample[0], queue)) if is_one else None,
    }  # fmt: skip
    template = "messages/jobs/request_form.html" if request.htmx else "messages/jobs/request.html"
    return render(request, template, context, status=400 if error and not request.htmx else 200)


def _target_example(spec: JobSpec, chosen: requests.ChosenMessages) -> str:
    """Return what the field of the target shows while it is empty."""
    if spec.action == Action.EDIT:
        return "same queue, or original destination"
    if spec.action != Action.RETRY:
        return "orders, /topic/prices, orders::orders.eu"
    is_one = bool(spec.seqs) and len(chosen.sample) == 1
    return (chosen.sample[0].came_from if is_one else None) or "original destination"


def _read_spec(queue: Destination, given: QueryDict, lenient: bool = False) -> JobSpec:
    action, target = given.get("action", ""), given.get("target", "").strip()
    if action not in EFFECTS:
        raise Http404(f"Unknown action {action!r}.")
    try:
        to = Destination.parse(target) if target else None
    except BrokerError:
        if not lenient:
            raise
        to = None
    seqs = _read_seqs(given)
    rate = given.get("rate", "").strip()
    if rate and not (rate.isdecimal() and len(rate) < 7) and not lenient:
        raise RequestRefused(f"rate: {rate!r} must be a number of messages/s")
    return JobSpec(
        action, queue, to, seqs[: MAX_SELECTION + 1], given.get("selector", "").strip(),
        parse_integer(rate), given.get("reason", ""), given.get("name", ""),
        _read_edit(action, given, lenient), parse_seq(given.get("upto")),
    )  # fmt: skip


def _read_edit(action: str, given: QueryDict, lenient: bool) -> MessageEdit | None:
    """Return the edit of each message; None for other actions."""
    if action != Action.EDIT:
        return None
    try:
        return EditForm.read(given).to_edit()
    except RequestRefused:
        if not lenient:
            raise
        return MessageEdit()


def _edit_form(spec: JobSpec, given: QueryDict) -> dict[str, Any]:
    if spec.action != Action.EDIT:
        return {}
    changes = EditForm.read(given)
    return {
        "changes": changes,
        "rows": rows_or_blank(changes.rows),
        "types": [*EDIT_TYPES, REMOVE_PROPERTY],
        "editable": EDITABLE,
        "encodings": ENCODINGS,
        "persistence": PERSISTENCES,
        "looked": "look" in given,
    }


def _read_seqs(given: QueryDict) -> tuple[int, ...]:
    """Return the numbers of the selected messages. Raises Http404: without any number a job is about all messages."""
    texts = given.getlist("seq")
    if wrong := [each for each in texts if not (each.isdecimal() and len(each) < 19)]:
        raise Http404(f"{wrong[0][:40]!r} is not a message number.")
    return tuple(dict.fromkeys(map(int, texts)))


def _must_type(spec: JobSpec) -> bool:
    """Return whether the queue's name must be typed, as for deleting many or all messages."""
    return spec.action == Action.REMOVE and not 0 < len(spec.seqs) <= SMALL_JOB


def _typing_error(spec: JobSpec, given: QueryDict) -> str:
    typed = given.get("typed", "")
    return f"{typed!r} does not match {spec.queue.name!r}." if _must_type(spec) and typed != spec.queue.name else ""


def _submit(request: HttpRequest, spec: JobSpec) -> HttpResponse:
    job = requests.submit(request, spec)
    is_few = job.state != Job.State.ASKED and 0 < len(spec.seqs) <= SMALL_JOB
    if job.state == Job.State.ASKED:
        messages.info(request, "This exceeds your limit and needs approval by an operator.")
    elif is_few and not request.htmx:
        _show_outcome(request, job)
    if request.htmx:
        sees = visible(request.user)
        rows = (
            [(row, job_service.visible_detail(row, sees)) for row in job.outcomes.all()[:SMALL_JOB]] if is_few else []
        )
        return render(
            request,
            "messages/jobs/request_result.html",
            {"job": job, "rows": rows, "action": Action(job.action), "participle": PARTICIPLES[job.action]},
        )
    back = request.POST.get("back", "")
    if is_few and back.startswith("/") and not back.startswith("//"):
        return redirect(back)
    return redirect("job", job_id=job.id)


def _show_outcome(request: HttpRequest, job: Job) -> None:
    sees = visible(request.user)
    failed = [f"{row.get_outcome_display()}{f': {job_service.visible_detail(row, sees)}' if row.detail else ''}"
              for row in job.outcomes.all() if row.outcome != "done"]  # fmt: skip
    if job.done:
        messages.success(request, f"{pluralize_count(job.done, 'message')} {PARTICIPLES[job.action]}.")
    for each in failed[:3]:
        messages.error(request, each)


# -- edit and resubmit one message


@require_http_methods(["GET", "POST"])
@permission_required(Permission.EDIT, queue_from_url)
def edit_one(request: HttpRequest, name: str, seq: int) -> HttpResponse:
    """Show the form that edits a message, and replace the message atomically.

    A form with `look` only updates the preview of its targets.
    """
    queue = Destination.queue(name)
    message, error, reason = edit_message.get_editable(request, queue, seq), "", request.POST.get("reason", "").strip()
    kept = stored_form.kept_content(message)
    is_posted = request.method == "POST"
    form = MessageForm.read(request.POST, request.FILES) if is_posted else stored_form.form_of(message, queue)
    if is_posted and "look" not in request.POST:
        try:
            answer = edit_message.replace_message(request, queue, message, form.to_message(kept), reason)
            places = ", ".join(redaction.redact_names(answer["places"], visible(request.user)))
            messages.success(
                request, f"Sent as {answer['id']}{f' to {places}' if places else '; not routed to any queue'}."
            )
            return redirect(reverse("message-page", kwargs={"id": answer["id"]}))
        except BrokerError as refused:
            error = redaction.redact_sentence(str(refused), visible(request.user))
    impact = None
    try:
        impact = requests.impact_of_edit(request, queue, message, form.to_message(kept))
    except BrokerError as refused:
        error = error or redaction.redact_sentence(str(refused), visible(request.user))
    is_wrong = bool(error) and is_posted and not request.htmx
    context = {
        "destination": queue, "message": message, "impact": impact, "error": error, "reason": reason,
        "form": form.with_blank_entries(),
        "kept_properties": stored_form.kept_properties(message), **CHOICES,
        "fields": [(each, form.fields.get(each, "")) for each in FIELDS],
    }  # fmt: skip
    return render(request, "messages/jobs/edit_message.html", context, status=400 if is_wrong else 200)
