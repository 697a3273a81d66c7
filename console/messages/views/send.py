"""Page that sends messages: a form with typed properties, templates, and the route of what was sent."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from brokerapp.errors import BrokerError, InvalidDestination, RequestRefused, TooLarge
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JmsKind
from console.access import redaction
from console.access.permissions import Permission, permission_required, require, visible
from console.access.roles import Sees, everything
from console.audit import trail
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.messages.jobs.message_form import CHOICES, FIELDS, MessageForm
from console.messages.jobs.models import Template

#: Templates that one user may save.
MAX_TEMPLATES = 100
#: Bytes of the body of a template: templates stay in the database, and pages list them.
MAX_TEMPLATE_BODY = 1024 * 1024
#: Destination names suggested by the form.
MAX_SUGGESTIONS = 1_000


@require_http_methods(["GET", "POST"])
@permission_required(Permission.SEND)
def send(request: HttpRequest) -> HttpResponse:
    """Show the form; when posted, send messages or save a template."""
    form, error, sent, status = _read_form(request), "", None, 200
    if request.method == "POST":
        try:
            if request.POST.get("do") == "keep":
                return _save_template(request, form)
            sent = _send(request, form)
        except BrokerError as refused:
            error = redaction.redact_sentence(str(refused), visible(request.user))
            status = 413 if isinstance(refused, TooLarge) else 400
    sees = visible(request.user, Permission.SEND)
    names = [each for each in sorted(mirror().current().stats) if each.name and sees(each)][:MAX_SUGGESTIONS]
    context = {
        "form": form.with_blank_rows(), "fields": [(name, form.fields.get(name, "")) for name in FIELDS],
        "templates": _templates(request), "error": error, "sent": sent, **CHOICES,
        "destinations": [each.name if each.is_queue else each.stomp for each in names],
    }  # fmt: skip
    return render(request, "messages/send.html", context, status=status)


def _read_form(request: HttpRequest) -> MessageForm:
    if request.method == "POST":
        return MessageForm.read(request.POST, request.FILES)
    if (number := request.GET.get("template", "")).isdecimal():
        template = next((each for each in _templates(request) if each.pk == int(number)), None)
        if template is not None:
            return MessageForm.from_json(template.form)
    return MessageForm(destination=request.GET.get("to", ""))


def _send(request: HttpRequest, form: MessageForm) -> dict[str, Any]:
    message, count = form.to_message(), form.message_count
    targets = Destination.parse_list(message.destination)
    for each in targets:
        require(request, Permission.SEND, each)
    about = {"count": count, "bytes": len(message.body), "properties": dict(message.properties)}
    about |= {"kind": form.kind} if form.kind != JmsKind.TEXT else {}
    with trail.recording(request, "send", targets[0], before=about) as change:
        answer = gateway().send(message.to_json(), count, request.user.get_username())
        change.after = {"first": answer["id"], "queues": answer["queues"]}
    stats, sees = mirror().current().stats, visible(request.user)
    queues = [Destination.parse(name) for name in answer["queues"]]
    topics = [(Destination.parse(name), listeners) for name, listeners in answer["topics"]]
    return {
        "id": answer["id"],
        "count": answer["count"],
        "places": (len(queues), len(topics)),
        "queues": [(each, stats.get(each)) for each in queues if sees(each)],
        "topics": [(each, listeners) for each, listeners in topics if sees(each)],
        "unnamed": sum(not sees(each) for each in (*queues, *(topic for topic, _ in topics))),
        "hops": [hop for hop in answer["hops"] if sees(Destination.parse(hop[0])) and sees(Destination.parse(hop[2]))],
        "waits": any(name.startswith("AMQ_SCHEDULED_") for name in message.properties),
    }


# -- templates


def _templates(request: HttpRequest) -> list[Template]:
    """Return the user's templates, and shared ones for destinations the user may send to."""
    found = Template.objects.filter(Q(owner=request.user) | Q(shared=True)).select_related("owner")
    sees = visible(request.user, Permission.SEND)
    return [each for each in found if each.owner == request.user or _is_for(each, sees)]


def _is_for(template: Template, sees: Sees) -> bool:
    try:
        return all(map(sees, Destination.parse_list(MessageForm.from_json(template.form).destination)))
    except InvalidDestination:  # no valid destination yet
        return sees is everything


def _save_template(request: HttpRequest, form: MessageForm) -> HttpResponse:
    name = request.POST.get("template-name", "").strip()
    if not name:
        raise RequestRefused("Enter a name for the template.")
    if len(name) > 100:
        raise RequestRefused(f"The template name has {len(name)} characters. At most 100 are allowed.")
    if (size := form.body_bytes) > MAX_TEMPLATE_BODY:
        raise TooLarge(f"The body has {size:,} bytes. At most {MAX_TEMPLATE_BODY:,} bytes can be saved in a template.")
    if Template.objects.filter(owner=request.user).exclude(name=name).count() >= MAX_TEMPLATES:
        raise RequestRefused(f"You have {MAX_TEMPLATES} templates, which is the limit. Delete one first.")
    shared = request.POST.get("template-shared") == "true"
    with trail.recording(request, "keep template", name):
        template, _ = Template.objects.update_or_create(
            owner=request.user, name=name, defaults={"form": form.to_json(), "shared": shared}
        )
    messages.success(request, f"Template {name} saved.")
    return redirect(f"{request.path}?template={template.pk}")


@require_POST
@permission_required(Permission.SEND)
def delete_template(request: HttpRequest, template_id: int) -> HttpResponse:
    """Delete one of the user's own templates."""
    template = get_object_or_404(Template, pk=template_id, owner=request.user)
    with trail.recording(request, "delete template", template.name):
        template.delete()
    messages.success(request, f"Template {template.name} deleted.")
    return redirect("send")
