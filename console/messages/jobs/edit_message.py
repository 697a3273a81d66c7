"""Replaces a stored message by an edited one atomically, for pages and the REST API."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest

from brokerapp.engine.editing.jms_edit import with_jms_form
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.access.masking import mask_message
from console.access.permissions import Permission, require
from console.audit import trail
from console.broker.gateway import gateway
from console.messages.jobs import job_service
from console.messages.jobs.models import Replacement


def get_editable(request: HttpRequest, queue: Destination, seq: int) -> BrowsedMessage:
    """Return a message that the user may read unmasked. Raises Http404, RequestRefused, PermissionDenied."""
    require(request, Permission.READ, queue)
    found = gateway().message(queue, seq).messages
    if not found:
        raise Http404(job_service.not_found_text(queue, seq))
    mask_message(request.user, found[0], queue).require_unmasked()
    return found[0]


def replace_message(
    request: HttpRequest, queue: Destination, message: BrowsedMessage, changed: OperatorMessage, reason: str
) -> dict[str, Any]:
    """Send `changed` and delete the message atomically. Raises RequestRefused.

    Returns the `id` of the new message and its destinations as `places`.
    """
    if not reason:
        raise RequestRefused("Enter a reason. It is recorded in the audit log and the journey.")
    for each in Destination.parse_list(changed.destination):
        require(request, Permission.EDIT, each)
    changed = with_jms_form(changed, message.headers, message.body)
    user = request.user.get_username()
    with trail.recording(request, "edit", queue, before={"message": message.id, "reason": reason}) as change:
        answer = gateway().edit(queue, message.seq, changed.to_json(), user)
        answer["places"] = list(map(str, answer["places"]))
        change.after = {"message": answer["id"], "places": answer["places"]}
    Replacement.objects.create(
        queue=str(queue), message_id=message.id, new_id=answer["id"], places=", ".join(answer["places"]),
        edited_by=user, reason=reason,
    )  # fmt: skip
    return answer
