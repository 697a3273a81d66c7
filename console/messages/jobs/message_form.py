"""Parses and validates the form of a message to send: kind, body, typed properties, schedule, headers. No I/O."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from brokerapp.admin.handlers.operator_send import MAX_COUNT, OperatorMessage
from brokerapp.engine.editing.message_edit import body_of
from brokerapp.engine.editing.message_properties import check_properties
from brokerapp.engine.editing.operator_message import MAX_BODY, check_size
from brokerapp.engine.editing.typed_message import WRITTEN_KINDS, typed_headers, typed_message
from brokerapp.engine.scheduling.delivery_schedule import CRON, DELAY, PERIOD, REPEAT
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JmsKind
from brokerapp.model.jms.properties import PropertyType
from brokerapp.model.jms.typed_text import ENTRY_TYPE_NAMES, PROPERTY_TYPE_NAMES, STRING
from brokerapp.openwire.written_maps import encode_written_map

#: Standard headers with fields of their own in the form.
FIELDS = ("correlation-id", "reply-to", "type", "content-type", "JMSXGroupID")
MAX_PROPERTIES = 64
#: How the body of a bytes message is written; that of a text message is always text.
TEXT, BASE64, HEX, FILE = "text", "base64", "hex", "file"
#: What the fields of the form offer.
CHOICES: Mapping[str, Any] = {
    "kinds": [kind.value for kind in WRITTEN_KINDS],
    "encodings": ((TEXT, "Text"), (BASE64, "Base64"), (HEX, "Hex"), (FILE, "File")),
    "types": PROPERTY_TYPE_NAMES,
    "entry_types": ENTRY_TYPE_NAMES,
    "max_body": MAX_BODY,
}

#: Name, name of the type, and value as text.
Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class KeptContent:
    """What an edit keeps of a stored message, as no field of the form can hold it."""

    headers: Mapping[str, str] = field(default_factory=dict)  #: of properties
    types: Mapping[str, PropertyType] = field(default_factory=dict)  #: of these properties
    clashing: frozenset[str] = frozenset()  #: properties with the name of a header
    kind: JmsKind = JmsKind.TEXT
    body: bytes = b""
    has_body: bool = True
    is_jms: bool = False  #: the message came from a JMS client


@dataclass(frozen=True, slots=True)
class MessageForm:
    """The values of the form, as text."""

    destination: str = ""
    kind: str = JmsKind.TEXT.value  #: for JMS clients
    body: str = ""
    encoding: str = TEXT  #: of `body`
    entries: tuple[Row, ...] = ()  #: of a map message
    properties: tuple[Row, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    persistent: bool = True
    priority: str = "4"
    expires: str = ""  #: seconds from now
    delay: str = ""  #: seconds
    period: str = ""
    repeat: str = ""
    cron: str = ""
    count: str = "1"
    keeps_body: bool = False  #: of an edit: the body is none that a form can show
    is_coded: bool = False  #: of an edit: the text is written in `encoding`, as it holds control characters
    file_bytes: int = 0  #: bytes of a file that was too large to be read

    @staticmethod
    def read(form: Any, files: Any = None) -> MessageForm:
        """Read the posted form; the file of a body becomes base64."""
        encoding, body = form.get("encoding", TEXT), form.get("body", "").replace("\r\n", "\n")
        kind = form.get("kind") or (JmsKind.BYTES if encoding != TEXT else JmsKind.TEXT).value
        file, file_bytes = (files or {}).get("body-file") if encoding == FILE else None, 0
        if file is not None and file.size > MAX_BODY:
            file_bytes = file.size
        elif file is not None:
            encoding, body = BASE64, base64.b64encode(file.read()).decode()
        return MessageForm(
            form.get("destination", "").strip(), kind, body, encoding, _rows(form, "entry"), _rows(form, "property"),
            {name: form.get(f"field-{name}", "").strip() for name in FIELDS},
            form.get("persistent", "") == "true",
            **{name: form.get(name, "").strip() for name in _NUMERIC_FIELDS}, cron=form.get("cron", "").strip(),
            keeps_body=form.get("keeps-body") == "true", is_coded=form.get("is-coded") == "true",
            file_bytes=file_bytes,
        )  # fmt: skip

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MessageForm:
        """Load a template; fields unknown to this version are ignored, those of former ones are converted."""
        known = {name: value for name, value in data.items() if name in MessageForm.__dataclass_fields__}
        if "kind" not in known and known.get("encoding") == BASE64:
            known["kind"] = JmsKind.BYTES.value
        lists = {name: known.get(name, ()) for name in ("properties", "entries")}
        rows = {name: tuple(_current_row(*map(str, row)) for row in rows if len(row) == 3)
                for name, rows in lists.items()}  # fmt: skip
        return MessageForm(**{**known, **rows})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"fields": dict(self.fields)}

    @property
    def body_bytes(self) -> int:
        """Return about how many bytes the body and the entries of a template take."""
        return len(self.body.encode()) + sum(len(name) + len(value) for name, _, value in self.entries)

    @property
    def message_count(self) -> int:
        """Return how many messages to send. Raises RequestRefused."""
        return _parse_number("count", self.count or "1", 1, MAX_COUNT)

    def to_message(self, kept: KeptContent | None = None) -> OperatorMessage:
        """Return the message; `kept`: of the one that it replaces.

        Raises RequestRefused, which names the field and the rule.
        """
        if not self.destination:
            raise RequestRefused("Enter a destination, for example orders, /topic/prices or orders::orders.eu.")
        Destination.parse_list(self.destination)
        kept = kept or KeptContent()
        headers, types = typed_headers(self.properties, kept.clashing)
        properties = {**kept.headers, **{name: value for name, value in self.fields.items() if value}}
        if twice := sorted(properties.keys() & headers.keys()):
            raise RequestRefused(f"property {twice[0]!r} is given twice")
        properties |= headers
        check_properties(properties)
        if len(properties) > MAX_PROPERTIES:
            raise RequestRefused(f"{len(properties)} properties: at most {MAX_PROPERTIES} are allowed")
        kind, body = (kept.kind, kept.body) if self.keeps_body else self._content()
        expires = _parse_number("expires", self.expires, 1, 10**9) * 1000 + _now_ms() if self.expires else 0
        return typed_message(
            self.destination, kind=kind, body=_checked_size(body), properties=properties | self._schedule_headers(),
            types={**kept.types, **types}, persistent=self.persistent,
            priority=_parse_number("priority", self.priority or "4", 0, 9), expires=expires,
            has_body=kept.has_body or body != kept.body, is_jms=kept.is_jms,
        )  # fmt: skip

    def _content(self) -> tuple[JmsKind, bytes]:
        """Return the kind and the body as they are written. Raises RequestRefused."""
        if self.kind not in WRITTEN_KINDS:
            raise RequestRefused(f"kind: {self.kind[:40]!r} must be text, bytes or map")
        kind = JmsKind(self.kind)
        if kind is JmsKind.MAP:
            return kind, encode_written_map(self.entries)
        if kind is JmsKind.BYTES and self.encoding == FILE:
            check_size(self.file_bytes)
            raise RequestRefused("body: choose a file")
        return kind, body_of(self.body, self.encoding if kind is JmsKind.BYTES or self.is_coded else TEXT)

    def _schedule_headers(self) -> dict[str, str]:
        asked = {}
        for header, name in ((DELAY, "delay"), (PERIOD, "period")):
            if text := getattr(self, name):
                asked[header] = str(_parse_number(name, text, 1, 10**9) * 1000)
        if self.repeat:
            asked[REPEAT] = str(_parse_number("repeat", self.repeat, -1, 10**9))
        if self.cron:
            asked[CRON] = self.cron
        if REPEAT in asked and not asked.keys() & {PERIOD, CRON}:
            raise RequestRefused("repeat requires a repeat interval or a cron expression")
        return asked

    def with_blank_entries(self) -> MessageForm:
        """Return the form with blank rows for the entries of a map, where it has none."""
        return replace(self, entries=self.entries or (_BLANK, _BLANK))

    def with_blank_rows(self) -> MessageForm:
        """Return the form with blank rows for properties, too, where it has none."""
        return replace(self.with_blank_entries(), properties=self.properties or (_BLANK, _BLANK))


_BLANK: Row = ("", STRING, "")
_NUMERIC_FIELDS = ("priority", "expires", "delay", "period", "repeat", "count")
#: Types that templates and scripts of former versions name -> those that they mean today.
_FORMER_TYPES = {"text": STRING, "number": "double"}


def _current_row(name: str, type: str, value: str) -> Row:
    """Return a row of the form with a type of today."""
    if type == "number" and re.fullmatch(r"-?\d{1,18}", value):
        return name, "long", value
    return name, _FORMER_TYPES.get(type, type), value


def _rows(form: Any, what: str) -> tuple[Row, ...]:
    names, types, values = (form.getlist(f"{what}-{part}") for part in ("name", "type", "value"))
    rows = zip(names, types, values, strict=False)
    return tuple(_current_row(name.strip(), type, value) for name, type, value in rows if name.strip() or value)


def _parse_number(name: str, text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"-?\d{1,10}", text) or not least <= int(text) <= most:
        raise RequestRefused(f"{name}: {text[:40]!r} must be a whole number from {least} to {most:,}")
    return int(text)


def _checked_size(body: bytes) -> bytes:
    check_size(len(body))
    return body


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
