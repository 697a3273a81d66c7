"""Previews of what a job does to a message: its target, and the result of an edit. No I/O."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from brokerapp.engine.editing.message_properties import EDITABLE, is_own
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.engine.policy.broker_headers import FAILURE, ORIGIN
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JmsForm
from brokerapp.model.jms.properties import property_name
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.openwire.shown_messages import jms_form, own_name, typed_property
from console.messages.body_format import editable_text
from console.messages.jobs import job_service
from console.messages.jobs.impact import PlannedSend
from console.messages.jobs.models import Job
from console.messages.jobs.spec import JobSpec
from console.ui.formatting.json_diff import ValueDifference
from console.ui.formatting.url_query import parse_integer

#: Characters of a body that a preview shows.
MAX_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class EditPreview:
    """A message before and after an edit; hidden if it is masked for the user, because the edit would be refused."""

    seq: int
    id: str
    rows: tuple[ValueDifference, ...] = ()
    body: ValueDifference | None = None
    is_hidden: bool = False


def edited_message(message: BrowsedMessage, spec: JobSpec, now_ms: int | None = None) -> OperatorMessage:
    """Return the message that would replace a message of the job's queue. Raises InvalidDestination."""
    home = spec.target or job_service.target_of(spec.action, message, spec.queue) or spec.queue
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return spec.edit.applied(message.headers, message.body, home.stomp, now_ms)


def planned_send(message: BrowsedMessage, spec: JobSpec) -> PlannedSend:
    """Return the target of a message of the job's queue and its headers there."""
    if spec.edit is not None:
        made = edited_message(message, spec)
        return Destination.parse(made.destination), routed_headers(made)
    again = spec.action == Job.Action.RETRY
    kept = {name: text for name, text in message.headers.items() if not (again and name in FAILURE)}
    to = spec.target or (job_service.target_of(spec.action, message, spec.queue) if again else None)
    return to, {**kept, ORIGIN: spec.queue.stomp}


def preview_edit(
    message: BrowsedMessage, spec: JobSpec, is_hidden: bool = False, now_ms: int | None = None
) -> EditPreview:
    """Return a message of the job's queue before and after the edit."""
    if is_hidden:
        return EditPreview(message.seq, message.id, is_hidden=True)
    made = edited_message(message, spec, now_ms)
    rows = tuple(_rows({**message.headers, "destination": spec.queue.stomp}, routed_headers(made)))
    body = (
        ValueDifference("body", _format_body(message.body), _format_body(made.body))
        if message.body != made.body
        else None
    )
    return EditPreview(message.seq, message.id, rows, body)


def routed_headers(made: OperatorMessage) -> dict[str, str]:
    """Return the headers of a message as the routing reads them."""
    standard = {"destination": made.destination, "expires": str(made.expires), "priority": str(made.priority)}
    return {**made.headers, **standard, **({"persistent": "true"} if made.persistent else {})}


def _rows(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[ValueDifference]:
    yield ValueDifference("destination", before["destination"], after["destination"])
    for name in ("persistent", "priority", "expires"):
        row = ValueDifference(name, _format_header(name, before.get(name)), _format_header(name, after.get(name)))
        if name == "persistent" or row.kind != "same" or row.after not in ("4", "never"):
            yield row
    own = {name for name in (*before, *after) if is_own(name)}
    forms = jms_form(before), jms_form(after)
    for header in sorted(own, key=lambda each: (each not in EDITABLE, own_name(each))):
        values = [_value_text(*each, header) for each in zip(forms, (before, after), strict=True)]
        yield ValueDifference(own_name(header), *values)


def _value_text(form: JmsForm | None, headers: Mapping[str, str], header: str) -> str | None:
    """Return the value of a header or property, that of a JMS type other than string with its type."""
    value = headers.get(header)
    if form is None or value is None or property_name(header) not in form.types:
        return value
    told = typed_property(form, header, value)
    return f"{told.value} ({told.type})"


def _format_header(name: str, value: str | None) -> str:
    """Format a header that has a default value when it is absent."""
    if name == "persistent":
        return "yes" if value == "true" else "no"
    if name == "priority":
        return value or "4"
    number = parse_integer(value, digits=14)
    return f"{datetime.fromtimestamp(number / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if number else "never"


def _format_body(body: bytes) -> str:
    text = editable_text(body)
    if text is None:
        return f"{len(body):,} bytes, not text"
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}… ({len(body):,} bytes)"
