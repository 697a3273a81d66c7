"""Parses and validates the form of a message to send: typed properties, schedule, headers. No I/O."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from brokerapp.admin.handlers.operator_send import MAX_COUNT, OperatorMessage
from brokerapp.engine.editing.message_edit import MessageEdit, body_of
from brokerapp.engine.editing.message_properties import BROKER_ONLY, STANDARD, check_properties, check_type, type_of
from brokerapp.engine.editing.operator_message import check_size
from brokerapp.engine.editing.resubmit_target import edit_target
from brokerapp.engine.scheduling.delivery_schedule import CRON, DELAY, HEADERS, PERIOD, REPEAT
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.messages.body_format import editable_text

#: Standard headers with fields of their own in the form.
FIELDS = ("correlation-id", "reply-to", "type", "content-type", "JMSXGroupID")
MAX_PROPERTIES = 64


@dataclass(frozen=True, slots=True)
class MessageForm:
    """The values of the form, as text."""

    destination: str = ""
    body: str = ""
    encoding: str = "text"  #: of `body`: text, or base64
    properties: tuple[tuple[str, str, str], ...] = ()  #: name, type, value
    fields: Mapping[str, str] = field(default_factory=dict)
    persistent: bool = True
    priority: str = "4"
    expires: str = ""  #: seconds from now
    delay: str = ""  #: seconds
    period: str = ""
    repeat: str = ""
    cron: str = ""
    count: str = "1"

    @staticmethod
    def read(form: Any) -> MessageForm:
        """Read the posted form."""
        names, types, values = (form.getlist(f"property-{part}") for part in ("name", "type", "value"))
        rows = zip(names, types, values, strict=False)
        return MessageForm(
            form.get("destination", "").strip(), form.get("body", "").replace("\r\n", "\n"),
            form.get("encoding", "text"),
            tuple((name.strip(), kind, value) for name, kind, value in rows if name.strip() or value),
            {name: form.get(f"field-{name}", "").strip() for name in FIELDS},
            form.get("persistent", "") == "true",
            **{name: form.get(name, "").strip() for name in _NUMERIC_FIELDS}, cron=form.get("cron", "").strip(),
        )  # fmt: skip

    @staticmethod
    def from_message(message: BrowsedMessage, queue: Destination) -> MessageForm:
        """Fill the form with a message of a queue to edit; the target is its original destination, or the queue."""
        home = edit_target(message.headers, message.came_from, queue)
        copy = MessageEdit().applied(message.headers, message.body, home.stomp, _now_ms())
        text = editable_text(copy.body)
        own = [each for each in sorted(copy.properties.items()) if each[0] not in FIELDS and each[0] not in BROKER_ONLY]
        rows = [(name, type_of(value), value) for name, value in own]
        if len(rows) > MAX_PROPERTIES:
            raise RequestRefused(f"the message has {len(rows)} properties; at most {MAX_PROPERTIES} can be edited here")
        left = -((_now_ms() - copy.expires) // 1000)
        return MessageForm(
            copy.destination,
            text if text is not None else base64.b64encode(copy.body).decode(),
            "text" if text is not None else "base64",
            tuple(rows),
            {name: copy.properties.get(name, "") for name in FIELDS},
            copy.persistent,
            str(copy.priority),
            str(left) if copy.expires and left > 0 else "",
        )

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MessageForm:
        """Load a template; fields unknown to this version are ignored."""
        known = {name: value for name, value in data.items() if name in MessageForm.__dataclass_fields__}
        rows = tuple(tuple(map(str, row)) for row in known.get("properties", ()) if len(row) == 3)
        return MessageForm(**{**known, "properties": rows})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"fields": dict(self.fields)}

    @property
    def message_count(self) -> int:
        """Return how many messages to send. Raises RequestRefused."""
        return _parse_number("count", self.count or "1", 1, MAX_COUNT)

    def to_message(self) -> OperatorMessage:
        """Return the message. Raises RequestRefused, which names the field and the rule."""
        if not self.destination:
            raise RequestRefused("Enter a destination, for example orders, /topic/prices or orders::orders.eu.")
        Destination.parse_list(self.destination)
        properties = {name: value for name, value in self.fields.items() if value}
        for name, kind, value in self.properties:
            properties[self._checked(name, kind, value, properties)] = value
        check_properties(properties)
        if len(properties) > MAX_PROPERTIES:
            raise RequestRefused(f"{len(properties)} properties: at most {MAX_PROPERTIES} are allowed")
        body = check_size(body_of(self.body, self.encoding))
        expires = _parse_number("expires", self.expires, 1, 10**9) * 1000 + _now_ms() if self.expires else 0
        return OperatorMessage(
            self.destination, properties | self._schedule_headers(), body, self.persistent,
            _parse_number("priority", self.priority or "4", 0, 9), expires, self.encoding == "base64",
        )  # fmt: skip

    def _checked(self, name: str, kind: str, value: str, others: Mapping[str, str]) -> str:
        if not name:
            raise RequestRefused(f"a property with the value {value[:40]!r} has no name")
        if name in STANDARD or name in HEADERS:
            raise RequestRefused(f"property {name!r} is a header; use its own field")
        if name in others:
            raise RequestRefused(f"property {name!r} is given twice")
        check_type(name, kind, value)
        return name

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

    def with_blank_rows(self) -> MessageForm:
        """Return the form with two blank rows for more properties."""
        return replace(self, properties=(*self.properties, *([("", "text", "")] * 2)))


_NUMERIC_FIELDS = ("priority", "expires", "delay", "period", "repeat", "count")


def _parse_number(name: str, text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"-?\d{1,10}", text) or not least <= int(text) <= most:
        raise RequestRefused(f"{name}: {text[:40]!r} must be a whole number from {least} to {most:,}")
    return int(text)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
