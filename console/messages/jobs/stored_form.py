"""Fills the form of a message with a stored one to edit, and finds what the form cannot hold. No I/O."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.engine.editing.message_properties import BROKER_ONLY, is_own
from brokerapp.engine.editing.resubmit_target import edit_target
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.model.jms.properties import CLASH_PREFIX, PropertyType
from brokerapp.model.jms.typed_text import ENTRY_TYPE_NAMES, PROPERTY_TYPE_NAMES, STRING, TYPE_NAMES
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.openwire.shown_messages import jms_form, own_name, read_content
from console.messages.body_format import editable_text
from console.messages.jobs.message_form import BASE64, FIELDS, MAX_PROPERTIES, TEXT, KeptContent, MessageForm, Row

_STRINGS_ONLY: Mapping[str, PropertyType] = {}


def form_of(message: BrowsedMessage, queue: Destination) -> MessageForm:
    """Return the form of a message of a queue to edit; the target is its original destination, or the queue."""
    home = edit_target(message.headers, message.came_from, queue)
    now_ms = time.time_ns() // 1_000_000
    copy = MessageEdit().applied(message.headers, message.body, home.stomp, now_ms)
    rows = [row for row in _property_rows(message, copy.properties) if _fits_field(row)]
    if len(rows) > MAX_PROPERTIES:
        raise RequestRefused(f"the message has {len(rows)} properties; at most {MAX_PROPERTIES} can be edited here")
    left = -((now_ms - copy.expires) // 1000)
    kind, entries = kind_of(message), _entries(message)
    text = editable_text(copy.body) if kind in (JmsKind.TEXT, JmsKind.BYTES) else ""
    return MessageForm(
        destination=copy.destination, kind=kind.value, entries=entries or (),
        body=text if text is not None else base64.b64encode(copy.body).decode(),
        encoding=TEXT if text is not None else BASE64, is_coded=text is None and kind is JmsKind.TEXT,
        keeps_body=entries is None if kind is JmsKind.MAP else kind not in (JmsKind.TEXT, JmsKind.BYTES),
        properties=tuple(rows), fields={name: copy.properties.get(name, "") for name in FIELDS},
        persistent=copy.persistent, priority=str(copy.priority),
        expires=str(left) if copy.expires and left > 0 else "",
    )  # fmt: skip


def kept_content(message: BrowsedMessage) -> KeptContent:
    """Return what an edit by form_of keeps of a message."""
    form = jms_form(message.headers)
    types = form.types if form else _STRINGS_ONLY
    own = {name: value for name, value in message.headers.items() if is_own(name)}
    kept = {name for name, *_ in (row for row in _property_rows(message, own) if not _fits_field(row))}
    return KeptContent(
        headers={header: value for header, value in own.items() if own_name(header) in kept},
        types={name: type for name, type in types.items() if name in kept},
        clashing=frozenset(own_name(header) for header in own if header.startswith(CLASH_PREFIX)),
        kind=kind_of(message), body=message.body, has_body=form.has_body if form else True, is_jms=form is not None,
    )  # fmt: skip


def kept_properties(message: BrowsedMessage) -> list[str]:
    """Return the names of the properties that an edit keeps without showing them."""
    return sorted(map(own_name, kept_content(message).headers))


def kind_of(message: BrowsedMessage) -> JmsKind:
    """Return what a message is for JMS clients; one of a STOMP client is text, or bytes where its length is given."""
    form = jms_form(message.headers)
    if form is not None:
        return form.kind
    return JmsKind.BYTES if "content-length" in message.headers else JmsKind.TEXT


def _property_rows(message: BrowsedMessage, properties: Mapping[str, str]) -> list[Row]:
    form = jms_form(message.headers) or JmsForm(JmsKind.TEXT)
    return [
        (name, TYPE_NAMES[type] if (type := form.types.get(name)) is not None else STRING, value)
        for header, value in sorted(properties.items())
        if header not in FIELDS and header not in BROKER_ONLY
        for name in [own_name(header)]
    ]


def _fits_field(row: Row) -> bool:
    """Return whether a property can be shown in a row of fields, and comes back from it as it is."""
    name, type, value = row
    return type in PROPERTY_TYPE_NAMES and name.strip() == name and _is_one_line(name + value)


def _is_one_line(text: str) -> bool:
    """Return whether a field of one line gives a text back as it is."""
    return not any(character in text for character in "\r\n\0")


def _entries(message: BrowsedMessage) -> tuple[Row, ...] | None:
    """Return the entries of a map message; None where a form cannot hold them."""
    form = jms_form(message.headers)
    content = read_content(form, message.body) if form is not None else None
    if content is None or content.problem or len(content.values) > MAX_PROPERTIES:
        return None
    rows = tuple((each.name, each.type, each.value) for each in content.values)
    fits = all(type in ENTRY_TYPE_NAMES and name.strip() == name and _is_one_line(name + value)
               and name for name, type, value in rows)  # fmt: skip
    return rows if fits else None
